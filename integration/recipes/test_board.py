"""The pages in ZooKeeper: written only by who may, over what was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.choice import SyncSet
from zkelect.recipes.member import Heartbeat, Member, Observed, Role
from zkelect.recipes.page import Page, Phase, Request

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

PAGE = Page(phase=Phase.STEADY, token="t", coordinator="a", primary="a")


@pytest.fixture
def session(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    with zkelect.connect(zookeeper.hosts, session_timeout=4.0, tick_time=0.2) as opened:
        yield opened


@pytest.fixture
def board(session: zkelect.Session, path: str) -> Board:
    made = Board(session, path)
    made.prepare()
    return made


@pytest.fixture
def leadership(session: zkelect.Session, board: Board) -> Iterator[zkelect.Leadership]:
    with zkelect.Election(session, board.coordinator, name="a").campaign(30.0) as granted:
        yield granted


def test_a_page_is_written_over_the_one_that_was_read_and_no_other(
    board: Board, leadership: zkelect.Leadership
) -> None:
    page, version = board.page()
    _, sync_version = board.sync()
    assert page is None
    board.turn(leadership, PAGE, version=version, sync_version=sync_version)
    assert board.page() == (PAGE, version + 1)
    with pytest.raises(zkelect.RequestFailed):
        board.turn(leadership, PAGE, version=version, sync_version=sync_version)
    board.confirm(leadership, version + 1)
    with pytest.raises(zkelect.RequestFailed):
        board.confirm(leadership, version)


def test_nobody_is_chosen_from_a_sync_set_that_has_changed_since(
    board: Board, leadership: zkelect.Leadership
) -> None:
    _, version = board.page()
    _, sync_version = board.sync()
    board.record(leadership, SyncSet(reign="t", names=("b",)), version=version)
    with pytest.raises(zkelect.RequestFailed):
        board.turn(leadership, PAGE, version=version, sync_version=sync_version)
    assert board.page() == (None, version)


def test_a_sync_set_is_recorded_under_the_page_that_was_read(
    board: Board, leadership: zkelect.Leadership
) -> None:
    _, version = board.page()
    board.turn(leadership, PAGE, version=version, sync_version=board.sync()[1])
    with pytest.raises(zkelect.RequestFailed):
        board.record(leadership, SyncSet(reign="t"), version=version)


def test_whoever_leads_no_more_writes_nothing(board: Board, session: zkelect.Session) -> None:
    with zkelect.Election(session, board.coordinator, name="a").campaign(30.0) as over:
        pass
    with pytest.raises(zkelect.Lost):
        board.turn(over, PAGE, version=board.page()[1], sync_version=board.sync()[1])


def test_a_page_that_cannot_be_read_does_not_count_as_none(
    board: Board, session: zkelect.Session, path: str
) -> None:
    znodes = zkelect.Znodes(session)
    znodes.replace(f"{path}/page", b"{", version=board.page()[1])
    with pytest.raises(zkelect.RequestFailed, match="mend it"):
        board.page()


def test_a_heartbeat_that_cannot_be_read_is_of_nobody_who_is_there(
    board: Board, session: zkelect.Session, path: str
) -> None:
    beat = Heartbeat(member=Member(name="a"), observed=Observed(role=Role.REPLICA))
    registry = zkelect.Registry(session, f"{path}/members")
    with board.register(beat), registry.register("b", b"nonsense"):
        assert board.beats() == (beat,)


def test_a_request_takes_the_place_of_the_last_and_is_withdrawn_only_as_it_is(
    board: Board,
) -> None:
    first, second = Request(id="1", to="b"), Request(id="2", forget="c")
    board.ask(first)
    board.ask(second)
    board.withdraw(first)
    assert board.request() == second
    board.withdraw(second)
    assert board.request() is None


def test_before_any_agent_has_run_there_is_nobody_to_ask(
    session: zkelect.Session, path: str
) -> None:
    board = Board(session, path)
    with pytest.raises(zkelect.InvalidArgument, match="whose agents have run"):
        board.ask(Request(id="1"))
    assert (board.page()[0], board.holder(), board.paused()) == (None, None, "")
