"""``zkelect promote``: as processes, on a cluster that nobody looks after."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import attrs
import pytest
from cli.command import NOBODYS
from election.waiting import WITHIN, until

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.member import Member
from zkelect.recipes.notes import encode
from zkelect.recipes.page import Page, Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.command import Ended, Running

    from zkelect.testing import LocalEnsemble

MEMBERS = (Member(name="alpha"), Member(name="beta"))
QUICK = ("--session-timeout", "4")
PAGE = Page(phase=Phase.STEADY, token="t", coordinator="alpha", primary="alpha", members=MEMBERS)


@pytest.fixture
def session(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    with zkelect.connect(zookeeper.hosts, session_timeout=4.0, tick_time=0.2) as opened:
        yield opened


@pytest.fixture
def board(session: zkelect.Session, path: str) -> Board:
    """A cluster whose agents have all gone."""
    made = Board(session, path)
    made.prepare()
    assert zkelect.Znodes(session).replace(f"{path}/page", encode(PAGE), version=0)
    with zkelect.Election(session, made.primary).campaign(WITHIN):
        return made


@pytest.fixture
def act(zkelect_command: Callable[..., Ended], path: str) -> Callable[..., Ended]:
    """Run one of the commands on this test's cluster to its end."""

    def run(name: str, *options: str, **env: str | None) -> Ended:
        return zkelect_command("promote", name, path, *QUICK, *options, **env)

    return run


# --- a stranger ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["switchover", "pause", "resume"])
def test_where_nobody_was_ever_primary_there_is_nothing_to_do(
    act: Callable[..., Ended], name: str
) -> None:
    done = act(name, "--yes")
    assert (done.status, done.out) == (1, "")
    assert "there has never been a primary; look at the path" in done.err


def test_a_path_that_nobody_looks_after_is_shown_as_such(
    act: Callable[..., Ended], path: str
) -> None:
    shown = act("status")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(f"{path}: nobody looks after it yet, or it has another path")
    assert json.loads(act("status", "-o", "json").out)["phase"] is None


@pytest.mark.parametrize("name", ["status", "switchover", "pause", "resume"])
def test_a_path_that_is_none_is_refused_as_it_was_given(
    zkelect_command: Callable[..., Ended], name: str
) -> None:
    refused = zkelect_command("promote", name, "clusters/lab")
    assert refused.status == 64
    assert "path='clusters/lab'" in refused.err


@pytest.mark.parametrize("name", ["status", "switchover", "pause", "resume"])
def test_without_zookeeper_it_says_so(act: Callable[..., Ended], name: str) -> None:
    failed = act(name, "--timeout", "1", ZKELECT_HOSTS=f"{NOBODYS}:1")
    assert (failed.status, failed.out) == (69, "")
    assert f"{NOBODYS}:1" in failed.err


# --- what programs read --------------------------------------------------------------------------


@pytest.mark.usefixtures("board")
def test_members_who_are_gone_are_rows_like_the_others(act: Callable[..., Ended]) -> None:
    reason = "not there: its agent has no session"
    rows = [f"{name}\tabsent\t\t\t{reason}" for name in ("alpha", "beta")]
    assert act("status", "-o", "tsv").out.splitlines() == rows
    facts = json.loads(act("status", "-o", "json").out)
    assert [each["reason"] for each in facts["members"]] == [reason, reason]


@pytest.mark.usefixtures("board")
def test_a_pause_is_the_same_for_people_and_programs(act: Callable[..., Ended], path: str) -> None:
    paused = act("pause", "--yes", "--by", "ada", "--reason", "a disk", "-o", "json")
    assert paused.status == 0
    told = json.loads(paused.out)
    pause = told["paused"]
    assert (told["primary"], pause["by"], pause["why"]) == ("alpha", "ada", "a disk")
    assert json.loads(act("status", "-o", "json").out)["paused"] == pause
    assert "paused by 'ada'" in act("status").out
    resumed = act("resume", "--yes", "-o", "json")
    assert json.loads(resumed.out) == {"path": path, "resumed": pause}
    assert act("resume").out == f"{path} was not paused\n"


# --- a switchover that nobody takes up -----------------------------------------------------------


def test_one_that_nobody_takes_up_in_time_is_withdrawn(
    board: Board, act: Callable[..., Ended]
) -> None:
    late = act("switchover", "--to", "beta", "--yes", "--within", "0.1")
    assert (late.status, late.out) == (1, "")
    assert "not within 0.1 s; nobody had taken it up, and it is withdrawn" in late.err
    assert board.request() is None


def test_ctrl_c_withdraws_it(board: Board, begin: Callable[..., Running], path: str) -> None:
    running = begin("promote", "switchover", path, *QUICK, "--to", "beta", "--yes")
    until(lambda: board.request() is not None, "it was asked for")
    running.signal(signal.SIGINT)
    ended = running.end()
    assert (ended.status, ended.out) == (130, "")
    assert "stopped; nobody had taken it up, and it is withdrawn" in ended.err
    assert board.request() is None


def test_how_far_it_is_is_told(
    board: Board, begin: Callable[..., Running], session: zkelect.Session, path: str
) -> None:
    running = begin("promote", "switchover", path, *QUICK, "--to", "beta", "--yes")
    until(lambda: board.request() is not None, "it was asked for")
    request = board.request()
    assert request is not None
    under_way = attrs.evolve(PAGE, request=request.id, winner="beta", phase=Phase.CATCH_UP)
    znodes = zkelect.Znodes(session)
    assert znodes.replace(f"{path}/page", encode(under_way), version=1)
    assert running.complaint() == "zkelect: beta applies what it has\n"
    done = attrs.evolve(under_way, primary="beta", phase=Phase.STEADY)
    assert znodes.replace(f"{path}/page", encode(done), version=2)
    ended = running.end()
    assert (ended.status, ended.out) == (0, f"{path}: beta is primary, alpha was\n")
