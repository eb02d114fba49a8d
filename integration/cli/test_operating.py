"""``pause``, ``resume``, ``switchover``, ``resign``: as processes, on an election that runs."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.security import make_acl

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.command import Ended, Running
    from conftest import Actor, Operator

DEAF = "00000000000080008000000000000000"
"""The uuid of a candidate that looks like one of ours, and never steps back."""

QUICK = ("--session-timeout", "2")


@pytest.fixture
def queue(cast: Callable[..., Actor]) -> Callable[..., list[Actor]]:
    """Let candidates stand one after the other; the first leads."""

    def stand(*names: str) -> list[Actor]:
        actors = [cast(name, address=f"{name}:5432") for name in names]
        actors[0].lead()
        for actor in actors[1:]:
            actor.queue()
        return actors

    return stand


@pytest.fixture
def act(zkelect_command: Callable[..., Ended], path: str) -> Callable[..., Ended]:
    """Run one of the commands on this test's election to its end."""

    def run(name: str, *options: str, **env: str | None) -> Ended:
        return zkelect_command(name, path, *QUICK, *options, **env)

    return run


def acts(actor: Actor) -> list[zkelect.Act]:
    return [each for each in actor.election.history() if isinstance(each, zkelect.Act)]


# --- pause and resume ----------------------------------------------------------------------------


def test_pause_and_resume_tell_who_and_why_and_write_it(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended], path: str
) -> None:
    a, b = queue("a", "b")
    paused = act("pause", "--reason", "a disk", "--by", "ada", "--yes")
    assert (paused.status, paused.out) == (0, f"{path} is paused; a leads and stays\n")
    pause = a.election.paused()
    assert pause is not None
    assert (pause.by, pause.why) == ("ada", "a disk")
    a.election.stop()
    resumed = act("resume", "--reason", "it is changed", "--by", "bob", "--yes")
    assert resumed.status == 0
    assert resumed.out == f"{path} is resumed; it was {pause}\n"
    b.diary.wait("elected")
    assert [str(each) for each in acts(b)] == [
        "pause by 'ada': a disk",
        "resume by 'bob': it is changed",
    ]


def test_programs_read_json_and_nothing_else_is_on_standard_output(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended]
) -> None:
    (a,) = queue("a")
    paused = json.loads(act("pause", "--reason", "a disk", "-y", "-o", "json", USER="ada").out)
    leader = a.election.leader()
    assert leader is not None
    assert paused["leader"] == {
        "name": "a",
        "node": leader.node,
        "address": "a:5432",
        "token": str(leader.token),
        "phase": "serving",
        "since": leader.since,
        "foreign": False,
    }
    assert paused["paused"]["why"] == "a disk"
    assert json.loads(act("resume", "-y", "-o", "json").out) == {"resumed": paused["paused"]}
    assert json.loads(act("resume", "-y", "-o", "json").out) == {"resumed": None}


def test_a_path_is_told_in_its_one_right_spelling(
    queue: Callable[..., list[Actor]], zkelect_command: Callable[..., Ended], path: str
) -> None:
    queue("a")
    asked = zkelect_command("pause", f"{path}/", *QUICK)
    done = [zkelect_command(name, f"{path}/", *QUICK, "-y") for name in ("pause", "resume")]
    again = zkelect_command("resume", f"{path}/", *QUICK, "-y")
    assert f"Pause {path}?" in asked.err
    assert [each.out.partition(" ")[0] for each in [*done, again]] == [path] * 3


def test_a_pause_of_somebody_else_is_not_written_over(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended]
) -> None:
    (a,) = queue("a")
    a.election.pause("a disk", by="ada")
    refused = act("pause", "--by", "bob", "-y")
    assert refused.status == 1
    assert refused.out == ""
    assert "paused by 'ada' since" in refused.err
    assert "a disk" in refused.err


@pytest.mark.parametrize(
    ("name", "options"),
    [("pause", ()), ("resume", ()), ("switchover", ("--to", "b")), ("resign", ())],
)
def test_where_nobody_can_be_asked_nothing_is_done_without_yes(
    name: str,
    options: tuple[str, ...],
    queue: Callable[..., list[Actor]],
    act: Callable[..., Ended],
) -> None:
    a, b = queue("a", "b")
    if name == "resume":
        a.election.pause("a disk", by="ada")
    before = a.election.history()
    refused = act(name, *options)
    assert refused.status == os.EX_USAGE
    assert "say --yes" in refused.err
    assert refused.out == ""
    assert b.election.history() == before


# --- switchover and resign -----------------------------------------------------------------------


def test_a_switchover_tells_who_leads_in_place_of_whom(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended], path: str
) -> None:
    a, _, c = queue("a", "b", "c")
    done = act("switchover", "--to", "c", "--reason", "a new kernel", "--by", "ada", "-y")
    token = c.diary.wait("elected").leadership.token
    assert done.status == 0
    assert done.out == f"c leads {path} in place of a, token {token}\n"
    assert [str(each) for each in acts(a)] == ["switchover 'c' by 'ada': a new kernel"]
    again = act("switchover", "--to", "c")  # nothing would change, so nothing is asked
    assert again.out == f"c leads {path} already, token {token}\n"


def test_resign_lets_the_next_in_the_queue_lead_and_says_who(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended]
) -> None:
    a, b, _ = queue("a", "b", "c")
    done = json.loads(act("resign", "--by", "ada", "-y", "-o", "json").out)
    term = b.diary.wait("elected").leadership
    assert (done["leader"]["name"], done["leader"]["token"]) == ("b", str(term.token))
    assert done["former"]["name"] == "a"
    assert a.diary.wait("deposed").leadership.reason == "switched-over"
    assert [str(each) for each in acts(a)] == ["switchover 'b' by 'ada'"]


def test_who_stands_alone_does_not_resign(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended]
) -> None:
    (a,) = queue("a")
    refused = act("resign", "-y")
    assert refused.status == 1
    assert "nobody else stands" in refused.err
    assert not a.diary.all("deposed")


def test_a_name_that_nobody_bears_is_answered_with_those_who_stand(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended]
) -> None:
    queue("a", "b")
    refused = act("switchover", "--to", "z", "-y")
    assert refused.status == 1
    assert "'z' does not stand; 'a', 'b' do" in refused.err


def test_without_a_leader_there_is_nobody_to_hand_over(
    cast: Callable[..., Actor], act: Callable[..., Ended]
) -> None:
    a = cast("a")
    a.lead()
    a.election.stop()
    assert act("resign", "-y").status == 1
    assert "nobody leads" in act("switchover", "--to", "a", "-y").err


def test_names_are_shown_without_what_a_terminal_would_obey(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended]
) -> None:
    hostile = "b\x1b[2J\u202e"
    queue("a", hostile)
    done = act("switchover", "--to", hostile, "-y")
    assert done.status == 0
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
    assert done.out.startswith(r"b\x1b[2J\u202e leads ")


class Blocked:
    """A leader, a candidate that waits, and between them one that does not step back."""

    def __init__(self, leader: Actor, target: Actor, operator: Operator, path: str) -> None:
        self.leader, self.target = leader, target
        self._operator, self._path = operator, path

    def page(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self._operator.kazoo.get(f"{self._path}.zkelect/switchover")[0]
        )
        return found


@pytest.fixture
def blocked(cast: Callable[..., Actor], operator: Operator, path: str) -> Blocked:
    leader = cast("a")
    leader.lead()
    operator.stand(path, uuid=DEAF)
    return Blocked(leader, cast("c").queue(), operator, path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_withdraws_the_switchover_and_the_leader_goes_on(
    number: signal.Signals, blocked: Blocked, begin: Callable[..., Running], path: str
) -> None:
    running = begin("switchover", path, *QUICK, "--to", "c", "--by", "ada", "-y")
    assert "1 still to step back between a and c" in running.complaint()
    running.signal(number)
    ended = running.end()
    assert ended.status == 128 + number
    assert ended.out == ""
    assert "no switchover to 'c': ada stopped waiting" in ended.err
    page = blocked.page()
    assert (page["state"], page["reason"]) == ("withdrawn", "ada stopped waiting")
    assert not blocked.leader.diary.all("deposed")


def test_one_that_is_not_done_in_time_says_who_did_not_step_back(
    blocked: Blocked, act: Callable[..., Ended]
) -> None:
    late = act("switchover", "--to", "c", "--within", "0.5", "-y")
    assert late.status == 1
    assert "did not step back within 0.5 s" in late.err
    assert late.out == ""
    assert not blocked.leader.diary.all("deposed")


# --- at a time -----------------------------------------------------------------------------------


def test_at_a_time_it_is_done_then(
    queue: Callable[..., list[Actor]], begin: Callable[..., Running], path: str
) -> None:
    a, b = queue("a", "b")
    running = begin("switchover", path, *QUICK, "--to", "b", "--at", "+3", "-y")
    assert "waiting until" in running.complaint()
    running.signal(signal.SIGSTOP)  # so that it is not done before we have looked
    assert a.election.history() == ()
    running.signal(signal.SIGCONT)
    assert running.end().status == 0
    b.diary.wait("elected")


def test_one_that_waits_for_its_time_is_cancelled_by_ctrl_c(
    queue: Callable[..., list[Actor]], begin: Callable[..., Running], path: str
) -> None:
    a, _ = queue("a", "b")
    running = begin("switchover", path, *QUICK, "--to", "b", "--at", "+3600", "-y")
    assert "waiting until" in running.complaint()
    running.signal(signal.SIGINT)
    ended = running.end()
    assert ended.status == 128 + signal.SIGINT
    assert "nothing was done" in ended.err
    assert a.election.history() == ()


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pause", "resume", "resign"])
def test_an_election_that_nobody_has_stood_for_is_told(
    name: str, act: Callable[..., Ended]
) -> None:
    refused = act(name, "-y")
    assert refused.status == os.EX_USAGE
    assert refused.out == ""
    assert "ever stood for such an election" in refused.err


def test_without_a_server_it_is_unavailable(act: Callable[..., Ended]) -> None:
    failed = act("pause", "-y", "--timeout", "0.5", ZKELECT_HOSTS="127.0.0.1:1")
    assert failed.status == os.EX_UNAVAILABLE
    assert failed.out == ""


def test_without_permission_it_is_said_which(
    queue: Callable[..., list[Actor]], act: Callable[..., Ended], operator: Operator, path: str
) -> None:
    queue("a")
    operator.kazoo.set_acls(f"{path}.zkelect", [make_acl("world", "anyone", read=True, admin=True)])
    refused = act("pause", "-y")
    assert refused.status == os.EX_NOPERM
    assert f"{path}.zkelect" in refused.err


def test_a_leader_that_appears_meanwhile_is_seen_when_the_time_has_come(
    queue: Callable[..., list[Actor]],
    begin: Callable[..., Running],
    path: str,
) -> None:
    a, b, _ = queue("a", "b", "c")
    running = begin("switchover", path, *QUICK, "--to", "c", "--at", "+3", "-y", "-o", "json")
    assert "waiting until" in running.complaint()
    running.signal(signal.SIGSTOP)
    a.election.stop()
    b.diary.wait("elected")
    running.signal(signal.SIGCONT)
    done = json.loads(running.end().out)
    assert (done["former"]["name"], done["leader"]["name"]) == ("b", "c")
