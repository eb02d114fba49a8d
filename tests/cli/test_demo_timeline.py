"""What people and programs are shown of the demo: words, widths, and nothing in between."""

from __future__ import annotations

import io
import json
import os
from typing import Any, Final

import pytest
from rich.console import Console

from zkelect.cli.demo.board import Board
from zkelect.cli.demo.event import Event
from zkelect.cli.demo.json_lines import JsonLines
from zkelect.cli.demo.sentences import say, say_duration, shorten
from zkelect.cli.demo.timeline import Timeline
from zkelect.cli.demo.watchers import parse_watches
from zkelect.token import Token

LATE: Final = 99.94
"""Seconds since the start: as wide as the column takes."""


def token(czxid: int) -> str:
    return str(Token.issue(lineage="0" * 16, generation=1, czxid=czxid, session_id=czxid))


def happened(kind: str, name: str = "", at: float = LATE, **facts: Any) -> Event:
    return Event(kind=kind, at=at, name=name, facts=facts)


OLD, NEW = token(0x1_0000_0011), token(0x1_0000_001D)
HOSTS = "127.0.0.1:40001,127.0.0.1:40002,127.0.0.1:40003"
SUMMARY: Final[dict[str, Any]] = {
    "ok": True,
    "elections": 4,
    "leaders": ["host-a", "host-b", "host-c", "host-a"],
    "tokens": [OLD, OLD, NEW, NEW],
    "hand_over_seconds": 0.0123,
    "fail_over_seconds": {"frozen": 2.04, "killed": 1.96},
    "lease_overlaps": 0,
    "rows": 83,
    "acked": 83,
    "acked_lost": 0,
    "stale_refused": 1,
    "stale_accepted": 0,
    "problems": [],
}
# One of each kind, in an order in which they may come.
STORY = [
    happened("servers_launched", at=0.0, servers=3, origin="/usr/share/java/zookeeper.jar"),
    happened("servers_ready", version="3.8.0", hosts=HOSTS, pids=[1, 2, 3], directory="/d"),
    happened("act_began", act=1, title="election"),
    happened("connected", "host-a", pid=4194304),
    happened("stood", "host-a"),
    happened("elected", "host-a", token=OLD, lease=1.5),
    happened("claimed", "host-a", token=OLD, lease=1.5),
    happened("committed", "host-a", token=OLD, lease=1.5, row=1),
    happened("committed", "host-a", token=OLD, lease=1.5, row=2),
    happened("queued", queue=["host-a", "host-b", "host-c"]),
    happened("act_began", act=2, title="planned handover"),
    happened("watchers_listed", "host-a", watchers=2, others=0),
    happened("resigned", "host-a", token=OLD),
    happened("elected", "host-b", token=NEW, lease=1.5),
    happened("handed_over", "host-b", former="host-a", took=0.0123),
    happened("act_began", act=3, title="frozen leader"),
    happened("held", "host-b", token=NEW, lease=1.5),
    happened("frozen", "host-b", token=NEW, pid=4194304),
    happened("lapsed", "host-b", token=NEW),
    happened("failed_over", "host-c", former="host-b", took=2.04),
    happened("woken", "host-b", pid=4194304),
    happened("check_failed", "host-b", token=OLD, reason="machine-suspended"),
    happened("refused", "host-b", token=OLD, mark=NEW, domain="demo"),
    happened("lost", "host-b", token=OLD, reason="machine-suspended"),
    happened("lost", "host-c", token=NEW, reason="machine-suspended"),
    happened("act_began", act=4, title="killed leader"),
    happened("killed", "host-c", token=NEW, pid=4194304),
    happened("accepted", "host-b", token=OLD, row=83),
    happened("ended", "host-c", status=-9),
    happened("summary", **SUMMARY),
]


def shown(*events: Event, width: int = 80, terminal: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=terminal,
        force_interactive=False,  # no line at the bottom, which is redrawn all the time
        highlight=False,
        color_system=None,
    )
    timeline = Timeline(console)
    for event in events:
        timeline.show(event)
    timeline.close()
    return stream.getvalue()


# --- the timeline -------------------------------------------------------------------------


def test_the_whole_story_fits_into_80_columns_of_ascii() -> None:
    text = shown(*STORY, width=1000, terminal=True)
    assert text.isascii()
    too_long = [line for line in text.splitlines() if len(line.rstrip()) > 80]
    assert too_long == [line for line in too_long if "tokens, in order" in line]


def test_a_file_gets_plain_lines_that_are_not_wrapped() -> None:
    text = shown(*STORY, width=20)
    assert "\x1b" not in text
    served = "ZooKeeper 3.8.0 serves at 127.0.0.1:40001, :40002, :40003"
    assert f" 99.9  server  {served}\n" in text


def test_a_narrow_terminal_wraps_within_the_column() -> None:
    text = shown(happened("stood", "host-a"), width=24, terminal=True)
    assert [line.rstrip() for line in text.splitlines()] == [
        "  0.0  host-a  stands",
        "               for",
        "               election",
    ]


def test_no_event_is_shown_to_people_that_has_no_sentence() -> None:
    assert shown(happened("ended", "host-c", status=-9)) == ""


def test_seconds_count_from_the_first_event() -> None:
    text = shown(happened("stood", "host-a", at=1000.0), happened("stood", "host-b", at=1002.34))
    assert text.splitlines() == [
        "  0.0  host-a  stands for election",
        "  2.3  host-b  stands for election",
    ]


def test_a_refusal_names_both_tokens_in_full() -> None:
    text = shown(happened("refused", "host-b", token=OLD, mark=NEW, domain="demo"))
    assert f"token   {OLD}\n" in text
    assert f"mark    {NEW}\n" in text


def test_the_short_form_is_explained_at_the_first_token_only() -> None:
    text = shown(*STORY)
    assert f"token   {OLD}\n               1:100000011 is generation and czxid" in text
    assert text.count("is generation and czxid") == 1


def test_of_a_terms_rows_only_the_first_is_told_and_the_last_named_at_its_end() -> None:
    text = shown(*STORY)
    assert "appends rows from number 1 on" in text
    assert "number 2" not in text
    assert "resigns after row 2\n" in text


def test_the_end_of_a_refused_leader_is_not_told_twice() -> None:
    text = shown(*STORY)
    assert "host-b  has lost its leadership" not in text
    assert "host-c  has lost its leadership (machine-suspended)" in text


def test_a_herd_is_told() -> None:
    text = shown(happened("watchers_listed", "host-a", watchers=3, others=1))
    assert "its znode is watched by 3 sessions, 1 of them in vain" in text
    assert "no one else" not in text


def test_the_account_says_that_all_is_as_promised() -> None:
    text = shown(STORY[-1])
    assert text.endswith("All as promised.\n")
    for line in (
        "   hand-over             12 ms  from the resignation to the next leader",
        "   fail-over             2.0 s  from SIGSTOP to the next leader",
        "   acknowledged, lost        0  acknowledged, but not in the log",
        "   stale, refused            1  writes that came with too low a token",
    ):
        assert line in text.splitlines()


def test_the_account_says_what_is_not() -> None:
    problems = ["the server has ended", "acknowledged writes missing from the log: 1"]
    text = shown(happened("summary", **{**SUMMARY, "ok": False, "problems": problems}))
    assert "All as promised" not in text
    assert text.endswith("".join(f"NOT as promised: {problem}\n" for problem in problems))


def test_the_account_of_a_run_that_never_began_has_no_figures_to_show() -> None:
    none: dict[str, Any] = {"elections": 0, "leaders": [], "tokens": []}
    untimed: dict[str, Any] = {"hand_over_seconds": None, "fail_over_seconds": {}}
    text = shown(happened("summary", **{**SUMMARY, **none, **untimed}))
    assert "hand-over" not in text and "fail-over" not in text


def test_every_sentence_is_told_somewhere_in_the_story() -> None:
    """So that the widths above are those of all sentences."""
    from zkelect.cli.demo.sentences import _SENTENCES

    assert set(_SENTENCES) == {event.kind for event in STORY} & set(_SENTENCES)


# --- words --------------------------------------------------------------------------------


def test_an_unknown_event_has_no_sentence() -> None:
    assert say(happened("ended", "host-a", status=0), last=0) is None


def test_the_short_form_is_generation_and_czxid() -> None:
    assert shorten(OLD) == "1:100000011"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0004, "0 ms"), (0.0123, "12 ms"), (2.04, "2.0 s"), (12.0, "12.0 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert say_duration(seconds) == text


# --- the line at the bottom ---------------------------------------------------------------


def test_the_board_shows_who_leads_and_for_how_long() -> None:
    board = Board()
    board.follow(happened("elected", "host-a", at=10.0, token=OLD, lease=1.5))
    board.follow(happened("committed", "host-a", at=10.5, token=OLD, lease=1.0, row=7))
    assert board.draw(10.7).split() == (
        ["host-a", "leads", "token", "1:100000011", "row", "7", "lease", "0.8", "s", "########"]
    )


def test_the_board_shows_a_frozen_leaders_lease_run_out() -> None:
    board = Board()
    board.follow(happened("elected", "host-a", at=10.0, token=OLD, lease=1.5))
    board.follow(happened("frozen", "host-a", at=10.1, token=OLD, pid=1))
    assert "host-a is frozen" in board.draw(11.0)
    assert "lease 0.0 s" in board.draw(99.0)
    board.follow(happened("lapsed", "host-a", at=11.5, token=OLD))
    assert "nobody leads" in board.draw(11.6)


def test_the_late_end_of_an_old_leader_leaves_the_new_one_on_the_board() -> None:
    board = Board()
    board.follow(happened("elected", "host-b", at=10.0, token=NEW, lease=1.5))
    board.follow(happened("lost", "host-a", at=10.1, token=OLD, reason="lapsed"))
    assert "host-b leads" in board.draw(10.2)


def test_the_board_fits_into_80_columns() -> None:
    board = Board()
    board.follow(happened("elected", "host-a", at=0.0, token=OLD, lease=1.96))
    board.follow(happened("committed", "host-a", at=0.0, token=OLD, lease=1.96, row=1000))
    board.follow(happened("frozen", "host-a", at=0.0, token=OLD, pid=1))
    assert len(board.draw(0.0)) <= 80


# --- JSON ---------------------------------------------------------------------------------


def test_json_is_one_object_a_line() -> None:
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.show(happened("stood", "host-a", at=1000.0))
    lines.show(happened("queued", at=1002.3456, queue=["host-a"]))
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"event": "stood", "seconds": 0.0, "name": "host-a"},
        {"event": "queued", "seconds": 2.346, "queue": ["host-a"]},
    ]


def test_a_reader_that_has_gone_ends_the_demo() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream, pytest.raises(SystemExit) as ended:
        JsonLines(stream).show(happened("stood", "host-a"))
    assert ended.value.code == 1


def test_what_a_candidate_writes_is_read_as_it_was() -> None:
    told = happened("elected", "host-a", token=OLD, lease=1.5)
    assert Event.decode(told.encode(), "host-a") == told
    assert told.deadline == LATE + 1.5
    assert told.token == Token.parse(OLD)


# --- watchers -----------------------------------------------------------------------------


def test_watches_are_read_by_path() -> None:
    watches = parse_watches("/e/a\n\t0x1\n\t0x2\n/e/b\n\t0x2\n\n")
    assert watches == {"/e/a": {"0x1", "0x2"}, "/e/b": {"0x2"}}
    assert parse_watches("") == {}
