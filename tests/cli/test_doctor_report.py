"""How findings are told: to people at any width, to monitoring, to programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import attrs
import pytest
from cli.patients import (
    HEALTHY,
    KAZOO_UUID,
    PATH,
    look_with,
    ours,
    serving,
    with_election,
    with_ensemble,
)

from zkelect.cli.doctor.diagnosis import diagnose
from zkelect.cli.doctor.facts import Facts
from zkelect.cli.doctor.finding import SEVERITIES, Code, Finding
from zkelect.cli.doctor.report import HEADINGS, field_rows, headline, json_object, report
from zkelect.cli.drawing import Page
from zkelect.core.pause import Pause

PAGE: Final = Path(__file__).parents[2] / "docs" / "cli_doctor.md"
DOWN: Final = serving("zk3:2181", problem="Connection refused", connect=None)
SICK: Final = attrs.evolve(
    with_election(look_with(ours(1)), pause=Pause(by="ada\x1b[31m", why="\u202ekcatta")),
    ensemble=with_ensemble(
        serving("zk1:2181", "leader", synced=1, silent=("conf",)), serving("zk2:2181"), DOWN
    ).ensemble,
)
SAMPLE: Final = attrs.evolve(
    with_election(
        look_with(ours(1), ours(2)),
        acls={PATH: ("world:anyone:cdrwa",), f"{PATH}.zkelect": ("world:anyone:cdrwa",)},
    ),
    ensemble=with_ensemble(
        serving("zk1:2181", "leader", synced=1, handshake=0.0041),
        serving("zk2:2181", connect=0.0004),
        serving("zk3:2181", problem="Connection refused", connect=None, version=None),
    ).ensemble,
)
"""What the page shows."""

NOBODY: Final = attrs.evolve(
    HEALTHY,
    ensemble=with_ensemble(DOWN, voters=None).ensemble,
    session=attrs.evolve(
        HEALTHY.session, granted=None, reads=None, commits=None, problem="no session"
    ),
    host=None,
    election=None,
)


def lines(facts: Facts, width: int = 80) -> list[str]:
    return [line.text for line in report(Page(width=width), facts, diagnose(facts))]


def test_the_first_line_is_what_monitoring_shows() -> None:
    assert lines(HEALTHY, 200)[0] == f"OK {HEALTHY.hosts}: 0 critical, 0 warnings, 0 notes"
    assert lines(SICK, 200)[0] == f"WARNING {SICK.hosts}: 0 critical, 4 warnings, 1 note"
    assert lines(NOBODY, 200)[0] == f"CRITICAL {NOBODY.hosts}: 1 critical, 1 warning, 0 notes"


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("facts", [HEALTHY, SICK, NOBODY], ids=["healthy", "sick", "nobody"])
def test_nothing_is_wider_than_the_page_and_nothing_of_a_finding_is_cut(
    width: int, facts: Facts
) -> None:
    told = lines(facts, width)
    findings = "\n".join(told).split("\n\nserver")[0]
    assert all(len(line) <= width for line in findings.splitlines())
    joined = re.sub(r"\s+", "", findings.replace("->", ""))
    for finding in diagnose(facts):
        assert re.sub(r"\s+", "", finding.advice) in joined


def test_what_came_from_zookeeper_is_shown_escaped() -> None:
    told = "\n".join(lines(SICK, 200))
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "ada\\\\x1b[31m" in told or "ada\\x1b[31m" in told


def test_a_healthy_patient_is_described_all_the_same() -> None:
    told = "\n".join(lines(HEALTHY))
    for expected in (
        "zk1:2181  leader",
        "4-40 s",
        "timeout 10 s asked, 10 s granted",
        "a lease of 7.08 s is left at each answer (tick_time 2 s)",
        "commits 1.0 ms, slowest 2.0 ms; reads 1.0 ms, slowest 2.0 ms",
        "longest pause 2.0 ms in 3.0 s",
        "wall clock +0.010 s from the servers', to within 0.010 s",
        f"election {PATH}",
        "2 candidates",
        "host-a is in office",
        "next number 3 of 2147483646",
    ):
        assert expected in told, told


def test_an_election_that_may_not_be_read_is_said_so() -> None:
    assert "   may not be read" in lines(with_election(look_with(), now=None))


def test_rows_have_a_field_for_each_heading() -> None:
    rows = [*field_rows(diagnose(SICK))]
    assert {len(row) for row in rows} == {len(HEADINGS)}
    assert {row[0] for row in rows} == {"warning", "note"}
    assert {row[1] for row in rows} <= {*Code}


def test_a_program_gets_all_of_it_without_session_ids() -> None:
    look = look_with(ours(1), f"{KAZOO_UUID}__lock__0000000002")
    ids = {entry: 0x1000B2C5E4F0000 + place for place, entry in enumerate(look.roll.entries)}
    secret = serving("zk1:2181", "leader", sessions=frozenset(ids.values()))
    facts = attrs.evolve(
        with_election(attrs.evolve(look, owners=ids)), ensemble=with_ensemble(secret).ensemble
    )
    text = json.dumps(json_object(facts, diagnose(facts)))
    assert not [number for number in ids.values() if str(number) in text or f"{number:x}" in text]
    found = json.loads(text)
    assert found["servers"][0]["sessions"] == 2
    assert found["election"]["candidates"] == 2
    assert found["session"]["lease"] == pytest.approx(7.08, abs=0.01)
    assert found["host"]["timeout_needed"] == pytest.approx(2.1)
    assert [each["finding"] for each in found["findings"]] == [
        str(finding.code) for finding in diagnose(facts)
    ]


def test_a_program_gets_it_also_when_nothing_answers() -> None:
    found = json.loads(json.dumps(json_object(NOBODY, diagnose(NOBODY))))
    assert (found["severity"], found["host"], found["election"]) == ("critical", None, None)


def test_one_of_each_is_counted() -> None:
    each = [Finding(code, "what", "advice") for code in Code]
    critical = sum(severity == 2 for severity in SEVERITIES.values())
    assert headline(each).startswith(f"{critical} critical, ")


def test_every_finding_is_explained_in_the_documentation() -> None:
    row = re.compile(r"^\| `([a-z-]+)` \| (\w+) \|(.+)\|(.+)\|$", re.MULTILINE)
    rows = row.findall(PAGE.read_text("utf-8"))
    told = {code: severity for code, severity, *_ in rows}
    assert told == {str(code): severity.name.lower() for code, severity in SEVERITIES.items()}
    assert all(meaning.strip() and advice.strip() for *_, meaning, advice in rows)


def test_the_sample_in_the_documentation_is_what_is_shown() -> None:
    (sample,) = re.findall(
        r"^```text\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert sample.splitlines() == lines(SAMPLE)
