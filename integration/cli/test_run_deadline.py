"""H72: the command is dead by the deadline, whatever sleeps; an election does not touch it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

import attrs
import pytest
from cli.household import HEART, await_death, frozen, stop
from election.waiting import boottime

from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.household import Household

    Begin = Callable[..., Household]

GRACE: Final = 0.3
LINGERING: Final = ("--", *HEART, "SIGTERM")
"""A command that tells of TERM and goes on."""


@attrs.define
class Life:
    """What a command has told of itself.

    :ivar beats: instants. :ivar deadline: the latest it has read. :ivar asked: when TERM came.
    """

    pid: int
    token: str
    beats: list[float] = attrs.field(factory=list)
    deadline: float = 0.0
    asked: list[float] = attrs.field(factory=list)

    @classmethod
    def begin(cls, run: Household) -> Life:
        """Wait until it is born."""
        _, pid, token = run.run.line().split()
        life = cls(int(pid), token)
        life.follow(run, 1)
        return life

    def follow(self, run: Household, beats: int) -> None:
        """Read on for so many beats."""
        wanted = len(self.beats) + beats
        while len(self.beats) < wanted:
            self.take(run.run.line())

    def take(self, line: str) -> None:
        """Take one line in; empty: it is dead, as are all who could write there."""
        match line.split():
            case ["beat", at, deadline]:
                self.beats.append(float(at))
                self.deadline = max(self.deadline, float(deadline))
            case ["SIGTERM", at]:
                self.asked.append(float(at))
            case other:
                raise AssertionError(f"it said {other}")

    def conclude(self, out: str) -> None:
        """Take in what was left to read; the last line may be cut off."""
        for line in out.splitlines(keepends=True):
            if line.endswith("\n"):
                self.take(line)

    def assert_ended_in_time(self) -> None:
        """Asked when the grace began, dead by the deadline."""
        assert max(self.beats) < self.deadline
        (asked,) = self.asked
        assert self.deadline - GRACE - 0.06 <= asked
        print(f"asked {self.deadline - asked:.3f} s before the deadline, ", end="")
        print(f"last alive {self.deadline - max(self.beats):.3f} s before it")


@pytest.fixture
def lingering(household: Begin, doomed: LocalEnsemble) -> Household:
    return household("--grace", str(GRACE), *LINGERING, hosts=doomed.hosts)


# --- dead by the deadline -----------------------------------------------------------------------


def test_h72_servers_frozen(lingering: Household, doomed: LocalEnsemble) -> None:
    life = Life.begin(lingering)
    doomed.servers[0].pause()
    ended = lingering.end()
    life.conclude(ended.out)
    life.assert_ended_in_time()
    assert ended.status == 70
    assert "lost (lapsed)" in ended.err


def test_h72_zkelect_stopped(lingering: Household) -> None:
    life = Life.begin(lingering)
    lingering.run.signal(signal.SIGSTOP)
    await_death(life.pid)
    lingering.run.signal(signal.SIGCONT)
    ended = lingering.end()
    life.conclude(ended.out)
    life.assert_ended_in_time()
    assert ended.status == 70
    assert "lost (lapsed)" in ended.err


def test_h72_zkelect_killed(lingering: Household) -> None:
    """Nobody renews the lease any more: all is dead long before its end."""
    life = Life.begin(lingering)
    lingering.run.signal(signal.SIGKILL)
    lingering.await_none()
    life.conclude(lingering.run.end().out)
    assert max(life.beats) < life.deadline
    assert life.asked == []


def test_h72_the_keeper_hangs_and_the_servers_are_frozen(
    lingering: Household, doomed: LocalEnsemble
) -> None:
    """Not even SIGCONT helps it: then the elector does its work."""
    life = Life.begin(lingering)
    with frozen(lingering.keeper):
        doomed.servers[0].pause()
        ended = lingering.end()
    life.conclude(ended.out)
    assert ended.status == 70
    assert "the keeper hangs" in ended.err
    assert life.asked == []
    assert max(life.beats) < life.deadline
    print(f"last alive {life.deadline - max(life.beats):.3f} s before the deadline")


def test_h72_the_successor_starts_after_the_last_beat(
    household: Begin, doomed: LocalEnsemble
) -> None:
    """The elector is stopped for good; the ensemble expires its session, and the next one leads."""
    first = household("--grace", str(GRACE), *LINGERING, hosts=doomed.hosts)
    old = Life.begin(first)
    second = household(*LINGERING, hosts=doomed.hosts)
    first.run.signal(signal.SIGSTOP)
    new = Life.begin(second)
    first.run.signal(signal.SIGCONT)
    old.conclude(first.end().out)
    assert max(old.beats) < new.beats[0]
    assert old.token < new.token


# --- not touched --------------------------------------------------------------------------------


def test_h72_an_election_of_three_seconds_does_not_touch_it(
    household: Begin, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("tick_time = 0.5\n")
    with LocalEnsemble(3, tick_time=0.5, max_session_timeout=20.0) as servers:
        run = household(
            "--config", str(config), "--session-timeout", "20", *LINGERING, hosts=servers.hosts
        )
        life = Life.begin(run)
        granted = life.deadline
        while life.deadline == granted:  # the first lease is longer than those that follow
            life.follow(run, 1)
        leader = servers.leader()
        follower = servers.servers[(leader + 1) % 3]
        follower.pause()
        servers.servers[leader].kill()
        until = boottime() + 3.0  # without a quorum
        while life.beats[-1] < until:
            life.follow(run, 1)
        follower.resume()
        before = life.deadline
        while life.deadline == before:
            life.follow(run, 1)
        assert life.asked == []
        run.run.signal(signal.SIGTERM)
        run.run.signal(signal.SIGKILL)
        run.await_none()


def test_a_command_that_is_stopped_for_less_than_the_lease_goes_on(
    household: Begin, patient: LocalEnsemble
) -> None:
    run = household("--session-timeout", "30", *LINGERING, hosts=patient.hosts)
    life = Life.begin(run)
    stop(run.run.process.pid)
    stop(life.pid)
    run.run.signal(signal.SIGCONT)
    os.kill(life.pid, signal.SIGCONT)
    before = life.deadline
    while life.deadline == before:
        life.follow(run, 1)
    assert life.asked == []
