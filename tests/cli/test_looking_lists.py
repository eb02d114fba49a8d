"""What ``list``, ``history``, ``top`` and ``watch`` say, from values."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import pytest
from cli.queues import NOW, PATH, RECORD, election, handover, kazoo, ours, standings, term
from click.testing import CliRunner
from rich.cells import cell_len

import zkelect
from zkelect.cli.drawing import Line, Page
from zkelect.cli.looking import history, listing, top
from zkelect.cli.looking.facts import columns_of
from zkelect.cli.looking.following import Sight
from zkelect.cli.looking.watch import sentence, variables
from zkelect.cli.main import command
from zkelect.core.acts import Act, ActKind
from zkelect.core.pause import Pause
from zkelect.core.record import TermPhase
from zkelect.session.roll import leader_of

PAUSE = Pause(by="ada@host-a", why="the disk", since=NOW)
EVIL = "\u202evil\x1b[31m\n" + "x" * 9000


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


def item(*children: str, **changes: Any) -> listing.Item:
    overview = election(*children, **changes)
    return listing.Item(path=PATH, overview=overview, standings=standings(overview))


def candidate(**changes: Any) -> zkelect.Candidate:
    overview = election(ours(0))
    assert overview.first is not None
    return leader_of(term(ours(0), **changes), overview.first)


# --- list ----------------------------------------------------------------------------------------


def test_an_election_is_one_line_with_what_is_the_matter() -> None:
    preparing = term(ours(0), phase=TermPhase.PREPARING)
    busy = election(ours(0), ours(2)).term
    assert busy is not None
    items = [
        item(ours(0), ours(1)),
        item(ours(0), serving=False),
        item(kazoo(0), serving=False, record=None),
        item(ours(0), record=attrs.evolve(RECORD, paused=PAUSE)),
        item(ours(0), term=preparing),
        item(ours(0), ours(2), handover=handover(ours(2), busy)),
        item(ours(0), counter=2**31 - 1),
        item(),
        listing.Item(path="/secret", error="no permission"),
    ]
    lines = listing.draw(Page(width=120), items, NOW)
    assert [line.text.split(maxsplit=1)[1] for line in lines[2:-1]] == [
        "host-0  1 h           2",
        "nobody    ─           1",
        "host-0  0 s           1  foreign: kazoo",
        "host-0  1 h           1  paused by ada@host-a",
        "host-0  1 h           1  preparing",
        "host-0  1 h           2  switchover to host-2",
        "host-0  1 h           1  its numbers are used up",
        "nobody    ─           0",
    ]
    assert lines[-1].text.split() == ["/secret", "?", "─", "?", "no", "permission"]
    assert [line.style for line in lines[2:]] == [
        "",
        "bold red",
        *["yellow"] * 5,
        "dim",
        "red",
    ]


def test_no_elections_are_said_to_be_none() -> None:
    assert texts(listing.draw(Page(), [], NOW)) == ["no elections here"]


def test_a_line_for_programs_has_the_columns_that_the_help_names() -> None:
    paused = item(ours(0), kazoo(1), record=attrs.evolve(RECORD, paused=PAUSE))
    token = str(term(ours(0)).token)
    line = [PATH, "host-0", "", token, "serving", NOW - 3600, 2, 1, "ada@host-a", None]
    assert columns_of(paused.fields()) == line
    unread = listing.Item(path=PATH, error="no permission")
    assert columns_of(unread.fields()) == [PATH, *[None] * 8, "no permission"]
    assert unread.facts() == {"path": PATH, "error": "no permission"}


# --- history -------------------------------------------------------------------------------------


def test_terms_and_acts_are_told_in_their_order_with_how_long_and_why() -> None:
    events: list[zkelect.Term | zkelect.Act] = [
        term(ours(0), since=NOW - 3700, ended=NOW - 100, reason="switched-over"),
        Act(kind=ActKind.SWITCHOVER, by="ada", why="a kernel", target="host-1", at=NOW - 100),
        term(ours(1), name="host-1", since=NOW - 100, ended=NOW - 160, reason="died"),
        term(ours(2), since=math.nan, ended=NOW, reason="expired"),
    ]
    facts = [history.event_facts(event) for event in events]
    assert texts(history.draw(Page(width=120), facts, NOW)) == [
        "since (UTC)          what        who     lasted  ended by, or why  token",
        "───────────────────  ──────────  ──────  ──────  ────────────────  ─────",
        "2027-01-15 06:58:20  term        host-0     1 h  switched-over     1:2a",
        "2027-01-15 07:58:20  switchover  host-1       ─  by ada: a kernel  ─",
        "2027-01-15 07:58:20  term        host-1     0 s  died              1:2a",
        "?                    term        host-0       ?  expired           1:2a",
    ]
    json.dumps(facts, allow_nan=False)


def test_nothing_is_said_to_be_nothing() -> None:
    assert texts(history.draw(Page(), [], NOW)) == ["nobody has led yet"]


# --- top -----------------------------------------------------------------------------------------


def test_the_board_says_how_many_it_does_not_show() -> None:
    sights = [
        Sight(path="/a", candidates=2, known=True, changed=NOW - 5),
        Sight(path="/b", leader="host-b", since=NOW - 60, candidates=1, known=True, paused=PAUSE),
        Sight(path="/c", leader="", foreign=True),
        Sight(path="/d"),
    ]
    lines = top.board(Page(), "below /", sights, 3, NOW)
    assert texts(lines) == [
        "2027-01-15 08:00:00 UTC  4 elections, 1 without a leader  below /",
        "",
        "election  leader       for  candidates  changed  remarks",
        "────────  ─────────  ─────  ──────────  ───────  ────────────────────",
        "/a        nobody         ─           2  5 s ago",
        "/b        host-b     1 min           1        ─  paused by ada@host-a",
        "/c        (no name)      ─           ?        ─  foreign",
        "and 1 more",
    ]
    assert [line.style for line in lines[4:7]] == ["bold red", "yellow", "yellow"]


def test_top_needs_a_terminal() -> None:
    result = CliRunner().invoke(command, ["top", "-H", "127.0.0.1:1"])
    assert result.exit_code == 64
    assert "use list, or watch" in result.stderr


# --- watch ---------------------------------------------------------------------------------------


def test_a_change_is_one_sentence() -> None:
    page = Page()
    assert sentence(page, None) == "nobody leads"
    assert sentence(page, candidate()) == "host-0 leads, token 1:2a"
    preparing = candidate(phase=TermPhase.PREPARING, address="10.0.0.1:80")
    assert sentence(page, preparing) == "host-0 prepares to lead, token 1:2a, at 10.0.0.1:80"
    assert sentence(page, candidate(name=EVIL)).isprintable()


def test_a_hook_gets_what_is_printable_and_not_too_long() -> None:
    told = variables(PATH, candidate(name=EVIL, address="10.0.0.1:80"))
    assert told["ZKELECT_PATH"] == PATH
    assert told["ZKELECT_LEADER_NAME"].startswith(r"\u202evil\x1b[31m\nxxx")
    assert all(value.isprintable() and len(value) < 10_000 for value in told.values())
    assert told["ZKELECT_LEADER_ADDRESS"] == "10.0.0.1:80"
    assert told["ZKELECT_LEADER_PHASE"] == "serving"
    nobody = variables(PATH, None)
    assert {key for key, value in nobody.items() if value} == {"ZKELECT_PATH"}
    assert nobody.keys() == told.keys()


# --- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_whatever_it_is_called_it_stays_within_its_line(width: int, encoding: str) -> None:
    page = Page(width=width, encoding=encoding)
    evil = election(ours(0), term=term(ours(0), name=EVIL))
    listed = [listing.Item(path="/" + "p" * 300, overview=evil)]
    acted = [history.event_facts(Act(kind=ActKind.EVICT, by=EVIL, why=EVIL, target=EVIL))]
    seen = [Sight(path="/" + "p" * 300, leader=EVIL, error=EVIL)]
    for lines in (
        listing.draw(page, listed, NOW),
        history.draw(page, acted, NOW),
        top.board(page, "below /" + "p" * 300, seen, 9, NOW),
    ):
        told = texts(lines)
        assert max(map(cell_len, told)) <= width
        assert all(line.isprintable() for line in told)
        "\n".join(told).encode(encoding)


@pytest.mark.parametrize("name", ["status", "history", "watch", "list"])
def test_a_path_is_judged_before_anything_is_reached(name: str) -> None:
    result = CliRunner().invoke(command, [name, "-H", "127.0.0.1:1", "--timeout", "9", "billing"])
    assert result.exit_code == 64
    assert "a relative path" in result.stderr
