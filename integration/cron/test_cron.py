"""Exactly-once cron on a real server: five hosts whose clocks disagree, and leaders that change."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until

import zkelect
from zkelect.recipes.cron import Cron, Run
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator

    from zkelect.testing import LocalEnsemble

SECOND = timedelta(seconds=1)


class Clock:
    """A wall clock that is wrong, and can be set."""

    def __init__(self, off: float = 0.0) -> None:
        self.off = timedelta(seconds=off)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.off


class Host:
    """One host: a candidate whose body is a cron with one job, each second."""

    def __init__(self, hosts: str, path: str, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.runs: list[Run] = []
        self.stop = threading.Event()
        self.begun: Callable[[Run], None] = lambda _: None
        self.session = zkelect.connect(hosts, session_timeout=2.0, tick_time=0.2)
        self.election = zkelect.Election(self.session, path, name=name)
        self.cron = Cron(self.session, now=clock)
        self.cron.job("* * * * * *", name="tick", interrupted="again")(self._tick)
        self._thread = threading.Thread(target=self._lead, daemon=True)
        self._thread.start()

    def _lead(self) -> None:
        while not self.stop.is_set():
            with suppress(zkelect.NotElected):  # told to resign while it waited
                self.election.run_forever(self.cron.lead, self.stop)

    def _tick(self, run: Run) -> None:
        self.runs.append(run)
        self.begun(run)

    def close(self) -> None:
        self.stop.set()
        self._thread.join(WITHIN)
        self.session.close()


class Crowd:
    """Hosts, and all that they have run."""

    def __init__(self, hosts: list[Host]) -> None:
        self.hosts = hosts

    @property
    def runs(self) -> list[Run]:
        return [run for host in self.hosts for run in list(host.runs)]

    @property
    def slots(self) -> list[datetime]:
        return sorted(run.slot for run in self.runs)

    def leading(self) -> Host | None:
        leader = self.hosts[0].election.leader()
        return next((host for host in self.hosts if leader and host.name == leader.name), None)

    def wait(self, more: int) -> None:
        """Wait until so many more slots were run."""
        wanted = len(self.runs) + more
        until(lambda: len(self.runs) >= wanted, f"{more} more runs")


@pytest.fixture
def gather(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Crowd]]:
    with ExitStack() as stack:

        def make(*clocks: Clock) -> Crowd:
            hosts = []
            for number, clock in enumerate(clocks):
                host = Host(zookeeper.hosts, path, f"host-{number}", clock)
                stack.callback(host.close)
                hosts.append(host)
            return Crowd(hosts)

        yield make


def assert_each_once(slots: list[datetime]) -> None:
    """Each slot between the first and the last one, once, and on the second."""
    expected = [slots[0] + SECOND * number for number in range(len(slots))]
    assert slots == expected
    assert slots[0].microsecond == 0


def test_h80_five_hosts_with_clocks_that_disagree_run_each_slot_once(
    gather: Callable[..., Crowd],
) -> None:
    crowd = gather(*(Clock(off) for off in (0.3, -0.3, 0.15, -0.15, 0.0)))
    for _ in range(6):
        crowd.wait(2)
        leader = crowd.leading()
        if leader is not None:
            leader.election.resign()
    assert_each_once(crowd.slots)
    assert len({host.name for host in crowd.hosts if host.runs}) > 1


@pytest.mark.parametrize("off", [-0.005, 0.0, 0.005])
def test_h80_a_change_of_leader_at_the_slot_runs_it_once(
    gather: Callable[..., Crowd], off: float
) -> None:
    crowd = gather(Clock(0.3), Clock(-0.3))
    for _ in range(3):
        crowd.wait(1)
        leader = crowd.leading()
        if leader is not None:
            now = leader.clock()
            left = (SECOND - timedelta(microseconds=now.microsecond)).total_seconds() + off
            threading.Timer(left, leader.election.resign).start()
            crowd.wait(2)
    assert_each_once(crowd.slots)


def test_h80_a_change_of_leader_while_a_job_runs_waits_for_it_and_runs_it_once(
    gather: Callable[..., Crowd],
) -> None:
    crowd = gather(Clock(), Clock())
    crowd.wait(1)
    leader = crowd.leading()
    assert leader is not None
    other = next(host for host in crowd.hosts if host is not leader)
    overlapped: list[bool] = []

    def resign_within(run: Run) -> None:
        leader.begun = lambda _: None
        leader.election.resign()
        overlapped.append(run.leadership.wait_lost(timeout=WITHIN) and bool(other.runs))

    leader.begun = resign_within
    until(lambda: overlapped, "the job that resigns has run")
    until(lambda: other.runs, "the other host runs the next slot")
    assert overlapped == [False]
    assert_each_once(crowd.slots)
    assert not [run for run in crowd.runs if run.again]


def test_h80_a_wall_clock_that_is_set_back_runs_nothing_twice(
    gather: Callable[..., Crowd],
) -> None:
    clock = Clock()
    crowd = gather(clock)
    crowd.wait(2)
    clock.off = timedelta(seconds=-2)
    crowd.wait(2)
    assert_each_once(crowd.slots)


def test_a_run_cut_short_by_a_death_is_begun_again_when_asked_to(
    gather: Callable[..., Crowd], operator: Operator, path: str
) -> None:
    slot = datetime.now(UTC).replace(microsecond=0)
    data = b'{"slot": "%s", "ended": false}' % slot.isoformat().encode()
    operator.kazoo.create(f"{path}.cron/tick", data, makepath=True)
    crowd = gather(Clock())
    crowd.wait(2)
    first, second = crowd.runs[:2]
    assert (first.slot, first.again) == (slot, True)
    assert (second.slot, second.again) == (slot + SECOND, False)


def test_a_job_that_raises_is_logged_and_its_next_slot_comes(
    gather: Callable[..., Crowd], caplog: pytest.LogCaptureFixture
) -> None:
    crowd = gather(Clock())

    def fail(_: Run) -> None:
        raise ValueError("the disk is full")

    crowd.hosts[0].begun = fail
    crowd.wait(3)
    assert_each_once(crowd.slots)
    assert "the disk is full" in caplog.text


def test_when_a_slot_cannot_be_written_the_host_leaves_and_comes_again(
    zookeeper: LocalEnsemble, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        FaultProxy(zookeeper.hosts) as proxy,
        zkelect.connect(proxy.hosts, session_timeout=2.0, tick_time=0.2) as session,
    ):
        cron, stop = Cron(session), threading.Event()
        runs: list[Run] = []
        cron.job("* * * * * *", name="tick")(runs.append)
        proxy.fail("multi", "SystemError", path=f"{path}.cron/tick", nth=2)
        election = zkelect.Election(session, path)
        leading = threading.Thread(target=election.run_forever, args=(cron.lead, stop))
        leading.start()
        until(lambda: len(runs) >= 3, "three slots are begun")
        stop.set()
        leading.join(WITHIN)
    assert "this host stops leading" in caplog.text
    assert_each_once([run.slot for run in runs])


def test_a_mark_that_cannot_be_read_stops_the_job_and_says_so(
    zookeeper: LocalEnsemble, operator: Operator, path: str
) -> None:
    operator.kazoo.create(f"{path}.cron/tick", b"no JSON", makepath=True)
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0, tick_time=0.2) as session:
        cron = Cron(session)
        cron.job("* * * * * *", name="tick")(lambda run: run)
        with pytest.raises(zkelect.InvalidArgument, match=r"tick.*mend it"):
            zkelect.Election(session, path).run(cron.lead, timeout=WITHIN)


def test_two_jobs_of_one_name_and_names_that_are_no_znodes_are_refused(
    zookeeper: LocalEnsemble,
) -> None:
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0, tick_time=0.2) as session:
        cron = Cron(session)
        cron.job("* * * * *", name="a")(lambda run: run)
        for name in ("a", "", "a/b"):
            with pytest.raises(zkelect.InvalidArgument):
                cron.job("* * * * *", name=name)(lambda run: run)
