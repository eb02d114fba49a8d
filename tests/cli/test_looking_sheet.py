"""The page of one election: what is said of it, at 80 columns and at 200."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from cli.queues import NOW, PATH, RECORD, curator, election, handover, kazoo, ours, standings, term
from rich.cells import cell_len

from zkelect.cli.drawing import Page
from zkelect.cli.looking.facts import COLUMNS, candidate_facts, columns_of, overview_facts
from zkelect.cli.looking.lineup import line_up
from zkelect.cli.looking.sheet import Sheet
from zkelect.core.pause import Pause
from zkelect.core.record import TermPhase
from zkelect.core.znodes import WORN_SEQUENCE
from zkelect.session.overview import Overview, Standing

if TYPE_CHECKING:
    from collections.abc import Mapping

PAUSE = Pause(by="ada@host-a\x1b[2J", why="the disk of host-b", since=NOW)
EVIL = "\u202evil\x1b[31m\n" + "x" * 9000


def sheet(overview: Overview, known: Mapping[str, Standing] | None = None, **options: Any) -> Sheet:
    page = Page(width=options.pop("width", 80), encoding=options.pop("encoding", "utf-8"))
    return Sheet.of(page, overview, known or standings(overview), NOW, **options)


def head(overview: Overview, **options: Any) -> dict[str, str]:
    """Return the lines of the head by their keys."""
    lines = sheet(overview, **options).head()
    assert lines[0].text == PATH
    told: dict[str, str] = {}
    for line in lines[1:]:
        key, text = line.text[2:13].strip(), line.text[13:]
        told[key or [*told][-1]] = f"{told[[*told][-1]]} {text}" if not key else text
    return told


def drawn(drawing: Sheet) -> list[str]:
    count = len(drawing.places)
    table = drawing.table(count)
    lines = [*drawing.head(), *drawing.titles(table), *drawing.rows(table, 0, count)]
    return [line.text for line in lines]


# --- the head ------------------------------------------------------------------------------------


def test_the_leader_its_token_its_phase_and_its_age_come_first() -> None:
    serving = term(ours(0), address="10.0.0.1:8080")
    told = head(election(ours(0), ours(1), term=serving))
    assert [*told] == ["leader", "token", "address", "queue", "lineage", "counter"]
    assert told["leader"] == "host-0, serving for 1 h (since 2027-01-15 07:00:00 UTC)"
    assert told["token"] == str(serving.token)
    assert told["address"] == "10.0.0.1:8080"
    assert told["queue"] == "2 candidates"
    assert told["lineage"] == f"{RECORD.lineage}, generation 1, 7 terms so far"
    assert told["counter"] == "the next number is 2 of 2147483646 (0% used)"


def test_a_leader_that_still_prepares_is_said_to() -> None:
    preparing = term(ours(0), phase=TermPhase.PREPARING, since=NOW - 3)
    assert head(election(ours(0), term=preparing))["leader"].startswith("host-0, preparing for 3 s")


def test_an_age_that_is_no_number_is_no_age() -> None:
    told = head(election(ours(0), term=term(ours(0), since=math.nan)))
    assert told["leader"] == "host-0, serving for ? (since ? UTC)"


@pytest.mark.parametrize(
    ("overview", "reason"),
    [
        (election(), "nobody stands"),
        (
            election(ours(0), serving=False),
            "host-0 is first, and has not begun its term",
        ),
        (
            election(ours(0), serving=False, record=attrs.evolve(RECORD, paused=PAUSE)),
            "host-0 is first, and the election is paused",
        ),
        (
            election(ours(0), serving=False, counter=2**31 - 1),
            "host-0 is first, and the numbers are used up",
        ),
    ],
)
def test_that_nobody_leads_is_said_with_the_reason(overview: Overview, reason: str) -> None:
    assert head(overview)["leader"] == f"nobody: {reason}"


def test_a_leader_of_another_library_has_no_lease() -> None:
    told = head(election(kazoo(0), serving=False, record=None))
    assert told["leader"] == "host-0, of another library (kazoo): it has no lease"
    assert told["queue"] == "1 candidate, 1 of another library"
    assert told["lineage"] == "none: no candidate of this library has ever stood"
    assert "token" not in told


def test_a_pause_and_a_switchover_are_told_with_who_and_why() -> None:
    overview = election(ours(0), ours(2), record=attrs.evolve(RECORD, paused=PAUSE))
    assert overview.term is not None
    overview = attrs.evolve(overview, handover=handover(ours(2), overview.term))
    told = head(overview)
    since = "since 2027-01-15 08:00:00 UTC"
    assert told["paused"] == rf"by ada@host-a\x1b[2J {since}: the disk of host-b"
    assert told["switchover"] == "to host-2 (driven), asked by ada@host-a: a new kernel"


def test_what_is_odd_is_told_with_a_few_names() -> None:
    nodes = [ours(0), *(ours(place, uuid=7) for place in range(1, 6)), curator(6)]
    told = head(election(*nodes, "config", "a\tb"))
    assert told["orphans"] == "4: host-2, host-3, host-4 and 1 more"
    assert told["strangers"] == r"2: a\tb, config (no candidates)"
    assert told["dialects"] == "curator-latch, kazoo: these do not see each other; two may lead"


def test_a_worn_counter_is_marked() -> None:
    styles = {
        used: next(
            line.style
            for line in sheet(election(ours(0), counter=used)).head()
            if "counter" in line.text
        )
        for used in (WORN_SEQUENCE - 1, WORN_SEQUENCE)
    }
    assert styles == {WORN_SEQUENCE - 1: "", WORN_SEQUENCE: "bold red"}


# --- the queue -----------------------------------------------------------------------------------


def test_eighty_columns_have_the_number_of_each_znode() -> None:
    overview = election(ours(0), ours(1, priority=9), kazoo(2))
    assert drawn(sheet(overview))[-5:] == [
        "#  candidate  state  waits for  number    for  remarks",
        "─  ─────────  ─────  ─────────  ──────  ─────  ──────────────",
        "1  host-0     leads  ─               0    0 s",
        "2  host-1     heir   host-0          1  1 min  priority 9",
        "3  host-2     waits  host-1          2  2 min  foreign: kazoo",
    ]


def test_two_hundred_have_its_whole_name() -> None:
    overview = election(ours(0), ours(1))
    assert drawn(sheet(overview, width=200))[-1].startswith(
        f"2  host-1     heir   host-0     {ours(1)}  1 min"
    )


@pytest.mark.parametrize("width", [60, 80, 149, 150, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_whatever_it_is_called_the_page_holds_it(width: int, encoding: str) -> None:
    overview = election(ours(0), kazoo(1), curator(2), term=term(ours(0), name=EVIL, address=EVIL))
    known = {node: Standing(name=EVIL, size=10**6, since=NOW) for node in standings(overview)}
    lines = drawn(sheet(overview, known, width=width, encoding=encoding))
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)
    "\n".join(lines).encode(encoding)


def test_who_has_left_is_left_out_and_who_may_not_be_read_is_told() -> None:
    overview = election(ours(0), ours(1), ours(2))
    known = {ours(0): standings(overview)[ours(0)], ours(2): Standing(name=None)}
    rows = drawn(sheet(overview, known))[-2:]
    assert rows[0].startswith("1  host-0")
    assert rows[1].split() == [
        "3",
        "number",
        "2",
        "waits",
        "number",
        "1",
        "2",
        "?",
        *rows[1].split()[8:],
    ]
    assert "its name may not be read" in drawn(sheet(overview, known, width=200))[-1]


def test_a_session_id_is_shown_only_when_asked_for() -> None:
    overview = election(ours(0), ours(1))
    hidden = "\n".join(drawn(sheet(overview, width=200)))
    shown = "\n".join(drawn(sheet(overview, width=200, show_session_id=True)))
    assert "0x101" not in hidden
    assert "0x101" in shown


def test_the_last_number_of_a_long_queue_has_its_room_from_the_first_row_on() -> None:
    overview = election(*(ours(number) for number in range(2000)))
    drawing = sheet(overview)
    table = drawing.table(10)
    rows = [line.text for line in (*drawing.rows(table, 0, 1), *drawing.rows(table, 1999, 2000))]
    assert rows[0].index("host-0") == rows[1].index("host-1999") == len("2000  ")


# --- for programs --------------------------------------------------------------------------------


def test_facts_have_everything_under_its_own_name() -> None:
    overview = election(ours(0), kazoo(1), "config")
    facts = overview_facts(overview, standings(overview), show_session_id=False)
    assert facts["leader"]["name"] == "host-0"
    assert (facts["candidates"], facts["foreign"], facts["orphans"]) == (2, 1, 0)
    assert facts["strangers"] == ["config"]
    assert facts["counter"] == {"next": 3, "last": 2147483646, "exhausted": False}
    assert [*facts["queue"][0]] == [*COLUMNS]
    assert facts["queue"][1]["behind"] == ours(0)
    assert facts["paused"] is None and facts["switchover"] is None


def test_a_line_has_the_columns_the_help_names_in_their_order() -> None:
    overview = election(ours(0), ours(1))
    place, known = line_up(overview)[1], standings(overview)
    line = columns_of(candidate_facts(place, known, {}, show_session_id=True))
    assert line == [
        2,
        "heir",
        "host-1",
        ours(1),
        1,
        ours(0),
        "kazoo",
        False,
        0,
        NOW - 60,
        None,
        "0x101",
    ]


def test_a_leader_of_another_library_is_told_as_far_as_it_is_known() -> None:
    overview = election(kazoo(0), serving=False)
    leader = overview_facts(overview, standings(overview), show_session_id=False)["leader"]
    assert leader["name"] == "host-0" and leader["foreign"] and leader["token"] is None
