"""The account of the demo: each promise, broken once, is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zkelect.cli.demo.event import Event
from zkelect.cli.demo.log import DOMAIN, Row, append, open_log, read
from zkelect.cli.demo.report import Report, audit
from zkelect.errors import Fenced
from zkelect.stores import SqliteFence
from zkelect.token import Token


def token(czxid: int) -> Token:
    return Token.issue(lineage="0" * 16, generation=1, czxid=czxid, session_id=czxid)


def event(kind: str, at: float, name: str, czxid: int, **facts: Any) -> Event:
    return Event(kind=kind, at=at, name=name, facts={"token": str(token(czxid)), **facts})


def elected(at: float, name: str, czxid: int) -> Event:
    return event("elected", at, name, czxid, lease=1.0)


def committed(at: float, name: str, czxid: int, number: int) -> Event:
    return event("committed", at, name, czxid, lease=1.0, row=number, entry=f"entry {number}")


def row(number: int, czxid: int, name: str) -> Row:
    return Row(number, token(czxid), name, f"entry {number}")


RUN = [
    elected(0.0, "a", 5),
    committed(1.0, "a", 5, 1),
    Event(kind="watchers_listed", at=1.1, name="a", facts={"watchers": 2, "others": 0}),
    event("resigned", 1.2, "a", 5),
    elected(1.25, "b", 6),
    committed(2.0, "b", 6, 2),
    event("frozen", 2.5, "b", 6, pid=1),
    elected(4.5, "c", 7),
    committed(5.0, "c", 7, 3),
    event("refused", 6.0, "b", 6, mark=str(token(7))),
    event("killed", 6.5, "c", 7, pid=2),
    elected(8.5, "a", 9),
    committed(9.0, "a", 9, 4),
]
ROWS = [row(1, 5, "a"), row(2, 6, "b"), row(3, 7, "c"), row(4, 9, "a")]


def audited(
    *, without: str = "", extra: list[Event] | None = None, rows: list[Row] | None = None
) -> Report:
    events = [event for event in RUN if event.kind != without] + (extra or [])
    return audit(events, ROWS if rows is None else rows, token(9))


def test_a_run_as_promised_has_no_problems() -> None:
    report = audited()
    assert report.problems == ()
    assert report.facts == {
        "ok": True,
        "elections": 4,
        "leaders": ["a", "b", "c", "a"],
        "tokens": [str(token(czxid)) for czxid in (5, 6, 7, 9)],
        "hand_over_seconds": 0.05,
        "fail_over_seconds": {"frozen": 2.0, "killed": 2.0},
        "rows": 4,
        "acked": 4,
        "acked_lost": 0,
        "unacked": 0,
        "stale_refused": 1,
        "stale_accepted": 0,
        "lease_overlaps": 0,
        "others_woken": 0,
        "problems": [],
    }


# --- acknowledged writes ------------------------------------------------------------------


def test_an_acknowledged_row_that_is_not_there_is_lost() -> None:
    report = audited(rows=[ROWS[0], *ROWS[2:]])
    assert report.acked_lost == 1
    assert report.problems == ("acknowledged writes missing from the log: 1",)


@pytest.mark.parametrize(
    "other", [row(2, 7, "b"), row(2, 6, "c"), Row(2, token(6), "b", "a later entry")]
)
def test_an_acknowledged_row_that_was_overwritten_is_lost(other: Row) -> None:
    assert audited(rows=[ROWS[0], other, *ROWS[2:]]).acked_lost == 1


def test_a_killed_writer_may_leave_a_row_that_it_could_not_acknowledge() -> None:
    rows = [*ROWS[:3], row(4, 7, "c"), row(5, 9, "a")]
    report = audited(extra=[committed(9.1, "a", 9, 5)], rows=rows)
    assert report.acked_lost == 1  # row 4 was told to be a's, in RUN
    assert report.unacknowledged == 1
    assert "acknowledged writes missing from the log: 1" in report.problems
    assert len(report.problems) == 1


def test_a_row_of_a_living_writer_that_nobody_acknowledged_is_told() -> None:
    report = audited(rows=[*ROWS, row(5, 9, "a")])
    assert report.problems == ("rows acknowledged by nobody, though their writers lived: 1",)


# --- stale writes -------------------------------------------------------------------------


def test_a_row_whose_token_falls_is_a_stale_write_that_passed() -> None:
    rows = [*ROWS, row(5, 6, "b"), row(6, 9, "a")]
    report = audited(extra=[committed(9.1, "a", 9, 6)], rows=rows)
    assert report.stale_accepted == 1
    assert report.problems == ("stale writes accepted by the store: 1",)


def test_a_stale_write_that_the_store_says_it_took_counts_without_its_row() -> None:
    report = audited(extra=[event("accepted", 6.0, "b", 6, row=4)])
    assert report.stale_accepted == 1


def test_a_row_and_its_acceptance_are_one_stale_write() -> None:
    stale = event("accepted", 9.1, "b", 6, row=5)
    assert audited(extra=[stale], rows=[*ROWS, row(5, 6, "b")]).stale_accepted == 1


def test_a_run_in_which_no_stale_write_was_tried_shows_nothing() -> None:
    assert audited(without="refused").problems == (
        "no stale write was refused: the fence has shown nothing",
    )


# --- leaders ------------------------------------------------------------------------------


def test_a_leader_elected_within_the_lease_before_it_is_an_overlap() -> None:
    report = audited(extra=[committed(4.0, "b", 6, 2)])  # its lease: until 5.0, c leads from 4.5
    assert report.lease_overlaps == 1
    assert report.problems == ("leaders elected while the lease before was valid: 1",)


def test_who_resigns_gives_up_the_rest_of_its_lease() -> None:
    assert audited().lease_overlaps == 0
    assert audited(without="resigned").lease_overlaps == 1


def test_tokens_must_rise_from_leader_to_leader() -> None:
    report = audited(extra=[elected(10.5, "b", 8)])
    assert report.problems == ("the tokens of the leaders do not rise",)


def test_a_herd_is_told() -> None:
    herd = Event(kind="watchers_listed", at=1.0, name="a", facts={"watchers": 4, "others": 2})
    assert audited(extra=[herd]).problems == ("candidates woken in vain by a handover: 2",)


@pytest.mark.parametrize("mark", [None, token(7), token(10)])
def test_the_mark_must_be_the_last_leaders_token(mark: Token | None) -> None:
    report = audit(RUN, ROWS, mark)
    assert report.problems == (f"the fence's mark is {mark}, the last leader's token {token(9)}",)


def test_what_kept_the_run_from_its_end_is_told_first_and_what_it_omits_is_not() -> None:
    report = audit(RUN[:2], [], None, ["the server has ended"])
    assert report.problems == (
        "the server has ended",
        "acknowledged writes missing from the log: 1",
    )


def test_a_run_that_never_began_is_told_by_its_failure_alone() -> None:
    assert audit([], [], None, ["no session"]).problems == ("no session",)


# --- the log ------------------------------------------------------------------------------


def test_rows_are_read_back_as_they_were_appended(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    fence = SqliteFence(path, domain=DOMAIN)
    open_log(fence, token(5))
    rows = [append(fence, token(5), "a"), append(fence, token(5), "a")]
    open_log(fence, token(6))
    rows.append(append(fence, token(6), "b"))
    assert read(path) == tuple(rows)
    assert [(row.number, row.token, row.name) for row in rows] == [
        (1, token(5), "a"),
        (2, token(5), "a"),
        (3, token(6), "b"),
    ]
    assert len({row.entry for row in rows}) == 3


def test_a_stale_token_appends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    fence, successor = (SqliteFence(path, domain=DOMAIN) for _ in range(2))
    open_log(fence, token(5))
    open_log(successor, token(6))
    with pytest.raises(Fenced) as refused:
        append(fence, token(5), "a")
    assert (refused.value.token, refused.value.mark) == (token(5), token(6))
    assert read(path) == ()


def test_a_log_that_was_never_made_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    assert read(path) == ()
    SqliteFence(path, domain=DOMAIN).claim(token(5))  # killed before it could make the table
    assert read(path) == ()
