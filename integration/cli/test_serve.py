"""The page of each process: the old leader's 503 precedes the next one's 200, however it ends."""

from __future__ import annotations

import signal
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import attrs
import pytest
from cli.household import Household
from cli.polling import Poll, Poller, assert_never_two, assert_remaining_kept
from election.actor import SESSION_TIMEOUT, TICK
from election.process import Process
from election.waiting import boottime, until

import zkelect
from zkelect import server
from zkelect.testing import Forwarder
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.command import Ended
    from conftest import Operator

    from zkelect.testing import LocalEnsemble

T = SESSION_TIMEOUT


# --- a program that serves its election -------------------------------------------------------


@attrs.define
class Pair:
    """A leader, behind a link of its own, who waits behind it, and the pages of both."""

    server: LocalEnsemble
    path: str
    link: Forwarder
    old: Process
    new: Process
    old_page: Poller
    new_page: Poller

    def polls(self) -> list[Poll]:
        return [*self.old_page.polls, *self.new_page.polls]

    def wait_succession(self) -> None:
        """Wait until a page says yes in another term than the first one."""
        until(lambda: len({p.token for p in self.polls() if p.status == 200}) > 1, "another leads")


@pytest.fixture
def pair(doomed: LocalEnsemble, path: str) -> Iterator[Pair]:
    with ExitStack() as stack:
        link = stack.enter_context(Forwarder(doomed.hosts))

        def stand(name: str, hosts: str) -> tuple[Process, Poller]:
            times = (f"--session-timeout={SESSION_TIMEOUT}", f"--tick-time={TICK}")
            process = Process(hosts, path, name, *times, "--serve=127.0.0.1:0")
            stack.callback(process.close)
            port = process.wait("served")["port"]
            process.wait("standing")
            return process, stack.enter_context(Poller(port))

        old, old_page = stand("A", link.hosts)
        old.wait("elected")
        new, new_page = stand("B", doomed.hosts)
        old_page.wait(200)
        new_page.wait(503)
        yield Pair(doomed, path, link, old, new, old_page, new_page)


def resign(pair: Pair) -> None:
    pair.old.does("resign")


def close(pair: Pair) -> None:
    pair.old.does("close")


def evict(pair: Pair) -> None:
    with zkelect.connect(pair.server.hosts) as session:
        zkelect.Election(session, pair.path).evict("A")


def evict_hung(pair: Pair) -> None:
    """It is deleted when its lease is over; then it goes on."""
    pair.old.signal(signal.SIGSTOP)
    evict(pair)
    pair.wait_succession()
    pair.old.signal(signal.SIGCONT)


def expire(pair: Pair) -> None:
    """Nothing passes any more, so the servers expire its session."""
    pair.link.cut()
    pair.wait_succession()
    pair.link.heal()


def stop(pair: Pair) -> None:
    pair.old.signal(signal.SIGSTOP)
    led = pair.new_page.wait(200)
    pair.new_page.wait(200, after=led.answered + SESSION_TIMEOUT / 2)
    pair.old.signal(signal.SIGCONT)
    waited = pair.old_page.wait_answered(boottime())
    stale = [poll for poll in waited if poll.asked > led.answered]
    print(f"{len(stale)} questions had waited for the old one to go on")
    assert {poll.status for poll in stale} == {503}
    assert len(stale) > 10


def stop_in_a_step(pair: Pair) -> None:
    """When it goes on, nothing of it can take note of anything; the page has the lease alone."""
    pair.old.does("hold")
    stop(pair)
    pair.old.order("let go")


def freeze(pair: Pair) -> None:
    pair.server.servers[0].pause()
    pair.old_page.wait(503, after=boottime())
    pair.server.servers[0].resume()


ON_PURPOSE = {"resigned": resign, "closed": close, "evicted": evict}
BY_FORCE = {
    "evicted-while-hung": evict_hung,
    "expired": expire,
    "stopped": stop,
    "stopped-in-a-step": stop_in_a_step,
    "servers-frozen": freeze,
}


@pytest.mark.parametrize("way", [*ON_PURPOSE, *BY_FORCE])
def test_h73_the_old_ones_503_precedes_the_new_ones_200(way: str, pair: Pair) -> None:
    began = boottime()
    (ON_PURPOSE | BY_FORCE)[way](pair)
    pair.old_page.wait(503, after=began)
    pair.wait_succession()
    assert_never_two(pair.polls())
    if way in BY_FORCE:  # on purpose one gives up what is left
        assert_remaining_kept(pair.polls())


# --- a command that runs while leading --------------------------------------------------------


@attrs.define
class Runs:
    """``zkelect run --serve`` twice: one leads, one waits, and the pages of both.

    :ivar flag: the command of the old one ends when this file is there, and not before.
    """

    old: Household
    new: Household
    old_page: Poller
    new_page: Poller
    flag: Path

    def polls(self) -> list[Poll]:
        return [*self.old_page.polls, *self.new_page.polls]


STUBBORN = "trap : TERM; until test -e {}; do sleep 0.01; done"


@pytest.fixture
def runs(zookeeper: LocalEnsemble, path: str, tmp_path: Path) -> Iterator[Runs]:
    with ExitStack() as stack:

        def start(name: str) -> tuple[Household, Poller]:
            port = Port()
            stack.callback(port.release)
            options = ("--name", name, "--serve", port.address, f"--session-timeout={T}")
            command = ("--", "sh", "-c", STUBBORN.format(tmp_path / f"end-{name}"))
            household = Household(zookeeper.hosts, path, *options, *command)
            return stack.enter_context(household), stack.enter_context(Poller(port.number))

        old, old_page = start("A")
        old_page.wait(200)
        new, new_page = start("B")
        new_page.wait(503)
        yield Runs(old, new, old_page, new_page, tmp_path / "end-A")


def exit_command(runs: Runs) -> None:
    runs.flag.touch()


def kill_elector(runs: Runs) -> None:
    runs.old.run.signal(signal.SIGKILL)


def stop_elector(runs: Runs) -> None:
    """What it is asked then is answered when it goes on."""
    runs.old.run.signal(signal.SIGSTOP)
    led = runs.new_page.wait(200)
    runs.new_page.wait(200, after=led.answered + T / 2)
    runs.old.run.signal(signal.SIGCONT)


def terminate(runs: Runs) -> None:
    """Its command does not want to end, and while it lives nobody else leads."""
    runs.old.run.signal(signal.SIGTERM)
    over = runs.old_page.wait(503)
    runs.new_page.wait(503, after=over.asked + T / 4)
    assert all(poll.status != 200 for poll in runs.new_page.polls)
    runs.flag.touch()


RUNS_END = {
    "command-exited": exit_command,
    "elector-killed": kill_elector,
    "elector-stopped": stop_elector,
    "terminated": terminate,
}


@pytest.mark.parametrize("way", RUNS_END)
def test_h73_so_with_run_which_serves_only_while_its_command_runs(way: str, runs: Runs) -> None:
    RUNS_END[way](runs)
    runs.new_page.wait(200)
    assert_never_two(runs.polls())


@pytest.fixture
def port() -> Iterator[Port]:
    held = Port()
    yield held
    held.release()


def test_h73_run_says_no_from_when_its_command_is_told_to_end(
    doomed: LocalEnsemble, path: str, port: Port, tmp_path: Path
) -> None:
    """Its lease goes on for the grace. The command notes when it was told."""
    told = tmp_path / "told"
    trap = f"trap 'cat /proc/uptime >>{told}' TERM; while :; do sleep 0.01; done"
    options = ("--serve", port.address, f"--session-timeout={2 * T}", "--grace", "0.5")
    with (
        Household(doomed.hosts, path, *options, "--", "sh", "-c", trap),
        Poller(port.number) as page,
    ):
        page.wait(200)
        doomed.servers[0].pause()
        until(lambda: told.exists() and told.read_text().endswith("\n"), "it is told to end")
        page.wait(503, after=boottime())
    at = float(told.read_text().split()[0]) + 0.01  # whose hundredths are cut off
    later = [poll for poll in page.polls if poll.asked > at]
    print(f"{len(later)} questions later than that")
    assert {poll.status for poll in later} <= {503, None}


def test_a_taken_port_is_told_before_anything_is_joined(
    zkelect_command: Callable[..., Ended], path: str, operator: Operator
) -> None:
    with closing(server.listen("127.0.0.1:0")) as taken:
        address = f"127.0.0.1:{taken.port}"
        ended = zkelect_command("run", path, "--serve", address, "--", "echo", "started")
    assert (ended.status, ended.out) == (64, "")
    assert ended.err.startswith(f"zkelect: address='{address}': cannot listen there: Address alr")
    assert not operator.kazoo.exists(path)


def test_an_address_of_another_form_is_wrong_usage(
    zkelect_command: Callable[..., Ended], path: str
) -> None:
    ended = zkelect_command("run", path, "--serve", "8008", "--", "echo", "started")
    assert (ended.status, ended.out) == (64, "")
    assert "':8008' (all addresses of this host)" in ended.err
