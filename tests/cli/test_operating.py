"""What the operating commands say: how far a switchover is, and what came of an act."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from click.testing import CliRunner

import zkelect
from zkelect.cli.formats import Format
from zkelect.cli.handing import progress
from zkelect.cli.main import command
from zkelect.cli.outcomes import candidate_fields, pause_fields, write_outcome
from zkelect.cli.switching import _find
from zkelect.core.record import TermPhase
from zkelect.core.znodes import KAZOO, Entry

UUID = "0000000000008000800000000000000"
TOKEN = zkelect.Token(lineage="0" * 16, generation=1, czxid=5, holder="1" * 16)


def entry(name: str, sequence: int) -> Entry:
    found = KAZOO.parse(f"{UUID}{name}__lock__{sequence:010}")
    assert found is not None
    return found


def candidate(each: Entry, name: str) -> zkelect.Candidate:
    return zkelect.Candidate(node=each.node, sequence=each.sequence, name=name)


A, B, C, D = (entry(name, number) for number, name in enumerate("abcd"))


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        ([A, B, C, D], "2 still to step back between host-a and host-d"),
        ([A, C, D, B], "1 still to step back between host-a and host-d"),
        ([A, D, B, C], "host-d is next; host-a ends its work"),
        ([D, B, C], "host-a has left; host-d is first, and prepares to lead"),
        ([B, D, C], "host-a has left, and host-d is not first"),
        ([A, B, C], ""),
        ([], ""),
    ],
)
def test_how_far_a_switchover_is_is_told_by_who_stands(standing: list[Entry], told: str) -> None:
    assert progress(standing, candidate(A, "host-a"), candidate(D, "host-d")) == told


LEADER = evolve(
    candidate(A, "host-a"), address="a:1", token=TOKEN, phase=TermPhase.SERVING, since=5.0
)
FIELDS = {"leader": candidate_fields(LEADER), "paused": None}


def test_an_outcome_is_a_sentence_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    write_outcome(Format.TABLE, "a\x1b[2J leads", FIELDS)
    assert capsys.readouterr().out == "a\\x1b[2J leads\n"


def test_an_outcome_is_one_line_of_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    write_outcome(Format.JSON, "host-a leads", FIELDS)
    assert json.loads(capsys.readouterr().out) == {
        "leader": {
            "name": "host-a",
            "node": A.node,
            "address": "a:1",
            "token": str(TOKEN),
            "phase": "serving",
            "since": 5.0,
            "foreign": False,
        },
        "paused": None,
    }


def test_an_outcome_is_a_key_and_a_value_in_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_outcome(Format.TSV, "host-a leads", FIELDS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "leader.name\thost-a"
    assert lines[3] == f"leader.token\t{TOKEN}"
    assert lines[-1] == "paused\t"


def test_who_has_no_token_yet_is_shown_without() -> None:
    fields = candidate_fields(candidate(B, "host-b"))
    assert fields is not None
    assert (fields["token"], fields["phase"], fields["since"]) == (None, None, None)
    assert candidate_fields(None) is None
    assert pause_fields(None) is None
    assert pause_fields(zkelect.Pause(by="ada", why="w", since=5.0)) == {
        "by": "ada",
        "why": "w",
        "since": 5.0,
    }


def test_a_name_is_looked_for_among_the_names_first() -> None:
    odd = candidate(A, C.node)  # called as another one's znode is
    roll = [candidate(B, "host-b"), odd, candidate(C, "host-c"), candidate(D, "host-b")]
    assert _find("/e", C.node, roll) == odd
    assert _find("/e", B.node, roll) == _find("/e", "host-b", roll) == roll[0]
    with pytest.raises(zkelect.NotStanding):
        _find("/e", "host-z", roll)


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        ([], "'z' does not stand; nobody does"),
        (["a"], "'z' does not stand; 'a' does"),
        (["a", "b"], "'z' does not stand; 'a', 'b' do"),
        (["a"] * 11, "and 1 more do"),
    ],
)
def test_a_name_that_nobody_bears_is_answered_in_a_sentence(standing: list[str], told: str) -> None:
    assert str(zkelect.NotStanding("/e", "z", standing)).endswith(told)


@pytest.mark.parametrize("name", ["pause", "resume", "switchover --to b", "resign", "evict"])
def test_an_act_is_not_written_down_with_an_empty_name(name: str) -> None:
    words = [*name.split(), "/e", *(["b"] if name == "evict" else []), "--by", " "]
    refused = CliRunner().invoke(command, words)
    assert refused.exit_code == 64
    assert "'--by': it names nobody" in refused.output
