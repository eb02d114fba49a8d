"""``evict``: as a process, on an election that runs."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest
from election.waiting import until

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.command import Ended, Running
    from conftest import Actor, Operator, Process

QUICK = ("--session-timeout", "2")
DEAD = "00000000000080008000000000000000"
"""The uuid of a znode that looks like one of ours, and has nobody behind it."""


@pytest.fixture
def evict(zkelect_command: Callable[..., Ended], path: str) -> Callable[..., Ended]:
    """Run it on this test's election to its end."""
    return lambda *arguments: zkelect_command("evict", path, *QUICK, *arguments)


@pytest.fixture
def queue(cast: Callable[..., Actor]) -> Callable[..., list[Actor]]:
    """Let candidates stand one after the other; the first leads."""

    def stand(*names: str) -> list[Actor]:
        actors = [cast(name) for name in names]
        actors[0].lead()
        for actor in actors[1:]:
            actor.queue()
        return actors

    return stand


def test_h08_a_leader_goes_and_the_next_one_leads_with_who_and_why_in_the_history(
    queue: Callable[..., list[Actor]], evict: Callable[..., Ended]
) -> None:
    a, b = queue("a", "b")
    node = a.diary.wait("elected").leadership.node
    done = evict("a", "--reason", "it hangs", "--by", "ada", "--yes")
    assert done.status == 0
    assert done.out == f"'a' ({node}) has gone: it gave way, or its session ended\n"
    b.diary.wait("elected")
    acts = [each for each in b.election.history() if isinstance(each, zkelect.Act)]
    assert [str(act) for act in acts] == ["evict 'a' by 'ada': it hangs"]


def test_h08_a_stopped_leader_leads_no_more_when_the_command_has_ended(
    spawn: Callable[..., Process], cast: Callable[..., Actor], evict: Callable[..., Ended]
) -> None:
    leader = spawn("a")
    leader.wait("elected")
    b = cast("b").queue()
    leader.signal(signal.SIGSTOP)
    done = evict("a", "-y")
    elected = b.diary.wait("elected")
    leader.signal(signal.SIGCONT)
    assert done.status == 0
    assert leader.wait("deposed")["reason"] in ("lapsed", "expired", "evicted")
    assert elected.leadership.check() == elected.leadership.token


def test_programs_read_json(
    queue: Callable[..., list[Actor]], evict: Callable[..., Ended], operator: Operator, path: str
) -> None:
    a, _ = queue("a", "b")
    node = operator.nodes(path)[1]
    done = evict(node, "-y", "-o", "json")
    assert json.loads(done.out) == {"name": "b", "node": node, "outcome": "deleted", "paused": None}
    until(a.election.leader, "a's term is written")
    a.election.pause("freeze", by="K")
    told = json.loads(evict("a", "-y", "-o", "json").out)
    assert (told["outcome"], told["paused"]["by"]) == ("gone", "K")


def test_where_nobody_can_be_asked_nothing_is_done_without_yes(
    queue: Callable[..., list[Actor]], evict: Callable[..., Ended], operator: Operator, path: str
) -> None:
    queue("a", "b")
    before = operator.nodes(path)
    refused = evict("b")
    assert refused.status == os.EX_USAGE
    assert f"b ({before[1]}) waits; alive, it stands again, behind. Evict it" in refused.err
    assert "say --yes" in refused.err
    assert evict("a").status == os.EX_USAGE
    assert operator.nodes(path) == before


def test_what_cannot_be_done_safely_is_refused_and_says_what_to_do(
    cast: Callable[..., Actor], evict: Callable[..., Ended], operator: Operator, path: str
) -> None:
    with cast("first").election.campaign():
        pass
    dead = operator.stand(path, uuid=DEAD)
    cast("b").queue()
    refused = evict(dead, "-y", "--timeout", "0.5")
    assert refused.status == 1
    assert "nothing tells how long its lease may last" in refused.err
    assert operator.nodes(path)[0] == dead
    done = evict(dead, "-y", "--longest-lease", "0.2")
    assert (done.status, "when its lease was over" in done.out) == (0, True)


def test_a_candidate_of_another_library_needs_a_word_more(
    cast: Callable[..., Actor], evict: Callable[..., Ended], operator: Operator, path: str
) -> None:
    peer = operator.stand(path)
    b = cast("b").queue()
    refused = evict(peer, "-y")
    assert refused.status == 1
    assert "no lease to wait for" in refused.err
    assert evict(peer, "-y", "--foreign").status == 0
    b.diary.wait("elected")


def test_who_does_not_stand_and_whose_name_two_bear(
    queue: Callable[..., list[Actor]], evict: Callable[..., Ended], operator: Operator, path: str
) -> None:
    queue("a", "a")
    nobody = evict("x", "-y")
    assert nobody.status == 1
    assert "'x' does not stand" in nobody.err
    several = evict("a", "-y")
    assert several.status == os.EX_USAGE
    assert all(node in several.err for node in operator.nodes(path))


def test_ctrl_c_says_what_it_leaves(
    cast: Callable[..., Actor],
    begin: Callable[..., Running],
    operator: Operator,
    path: str,
) -> None:
    with cast("first").election.campaign():
        pass
    dead = operator.stand(path, uuid=DEAD)
    running = begin("evict", path, *QUICK, dead, "-y", "--longest-lease", "60")
    until(lambda: b"evictions" in operator.kazoo.get(f"{path}.zkelect")[0], "it is asked to go")
    running.signal(signal.SIGINT)
    ended = running.end()
    assert ended.status == 128 + signal.SIGINT
    assert "may have been asked to go, and goes if it lives" in ended.err
    assert operator.nodes(path) == [dead]


def test_where_nobody_ever_stood_the_path_is_said_to_be_wrong(
    zkelect_command: Callable[..., Ended], path: str
) -> None:
    done = zkelect_command("evict", path, "x", "--yes")
    assert done.status == 64
    assert "has ever stood" in done.err
