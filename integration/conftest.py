"""A real server, and candidates on it: each on its own session behind its own forwarder.

Tests wait for events, never for time to pass. What cannot tell us when it happens, such as
a znode that goes, is asked again and again within an outer bound. Instants are those of the
boot clock, the same one in every process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

import zkelect
from zkelect.session.clock import SystemClock
from zkelect.testing import Forwarder, LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.session.candidacy import Callbacks

WITHIN: Final = 30.0
"""Seconds: an outer bound against a hang, never a measure."""

TICK: Final = 0.2
SESSION_TIMEOUT: Final = 2.0
CANDIDATE: Final = Path(__file__).with_name("candidate.py")

boottime: Final = SystemClock().boottime


def until(condition: Callable[[], object], what: str) -> None:
    """Ask again until something holds; only for what cannot tell when it happens."""
    deadline = boottime() + WITHIN
    while not condition():
        assert boottime() < deadline, f"it never came about that {what}"
        time.sleep(0.01)


@contextmanager
def connected(hosts: str, **options: Any) -> Iterator[KazooClient]:
    kazoo = KazooClient(hosts, timeout=2 * SESSION_TIMEOUT, **options)
    kazoo.start(timeout=WITHIN)
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()


# --- servers ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[LocalEnsemble]:
    """One server for every test that does not harm it; each test has a path of its own."""
    with LocalEnsemble(tick_time=TICK) as started:
        with connected(started.hosts) as kazoo:
            kazoo.create("/elections")  # open to all, whoever stands first
        yield started


@pytest.fixture
def doomed() -> Iterator[LocalEnsemble]:
    """A server for a test that stops or pauses it."""
    with LocalEnsemble(tick_time=TICK) as started:
        yield started


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    """The election of this test."""
    return "/elections/" + re.sub(r"\W+", "-", request.node.name)


# --- the operator ----------------------------------------------------------------------------


class Operator:
    """Somebody with another client, who looks at the znodes and deletes some."""

    def __init__(self, kazoo: KazooClient) -> None:
        self.kazoo = kazoo

    def nodes(self, path: str) -> list[str]:
        """Return the candidate znodes in order, as a quorum has them."""
        self.kazoo.sync(path)
        try:
            children = self.kazoo.get_children(path)
        except NoNodeError:
            return []
        return sorted(children, key=lambda node: int(node[-10:]))

    def delete(self, path: str, node: str) -> None:
        self.kazoo.delete(f"{path}/{node}")

    def stand(self, path: str, *, uuid: str = "00000000000040008000000000000000") -> str:
        """Put a candidate of another library into the queue; return its znode."""
        made: str = self.kazoo.create(
            f"{path}/{uuid}__lock__", b"peer", ephemeral=True, sequence=True, makepath=True
        )
        return made.rpartition("/")[2]

    def terms(self, path: str) -> list[dict[str, Any]]:
        """Return the terms that have ended."""
        try:
            data, _ = self.kazoo.get(f"{path}.zkelect/history")
        except NoNodeError:
            return []
        history: list[dict[str, Any]] = json.loads(data)
        return history


@pytest.fixture
def operate() -> Iterator[Callable[..., Operator]]:
    """Connect an operator to some hosts, with options of kazoo's."""
    with ExitStack() as stack:
        yield lambda hosts, **options: Operator(
            stack.enter_context(connected(hosts, **options))
        )


@pytest.fixture
def operator(operate: Callable[..., Operator], zookeeper: LocalEnsemble) -> Operator:
    return operate(zookeeper.hosts)


# --- what a candidate is told ----------------------------------------------------------------


@attrs.frozen
class Note:
    """One callback: what, when, of which term, and why that one ended."""

    what: str
    at: float
    leadership: zkelect.Leadership
    reason: str | None


class Diary:
    """Callbacks that note what they are told."""

    def __init__(self) -> None:
        self._written = threading.Condition()
        self._notes: list[Note] = []

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.write("elected", leadership)

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self.write("suspended", leadership)

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self.write("deposed", leadership)

    def granted(self, leadership: zkelect.Leadership) -> None:
        """Note the very instant at which the term began: no progress was told since."""
        self.write("granted", leadership, leadership.progressed)

    def write(self, what: str, leadership: zkelect.Leadership, at: float | None = None) -> None:
        at = boottime() if at is None else at
        with self._written:
            self._notes.append(Note(what, at, leadership, leadership.reason))
            self._written.notify_all()

    def all(self, what: str | None = None) -> list[Note]:
        with self._written:
            return [note for note in self._notes if what in (None, note.what)]

    def wait(self, what: str, count: int = 1) -> Note:
        """Wait until something was noted that often; return the last of these notes."""
        with self._written:
            assert self._written.wait_for(lambda: len(self.all(what)) >= count, WITHIN), (
                f"{what!r} was told {len(self.all(what))} times, not {count}: {self._notes}"
            )
            return self.all(what)[count - 1]

    def assert_paired(self) -> None:
        """Each term: elected, then deposed, each exactly once; or neither of them."""
        for kind in ("elected", "deposed"):
            tokens = [note.leadership.token for note in self.all(kind)]
            assert len(tokens) == len(set(tokens)), f"{kind} was told twice of one term"
        told = [note for note in self.all() if note.what in ("elected", "deposed")]
        for first, second in zip(told[::2], told[1::2], strict=True):
            assert (first.what, second.what) == ("elected", "deposed")
            assert first.leadership is second.leadership


class Sentry:
    """Looks at one leadership all the time, on a thread, until it is over.

    :ivar passed: the last instant at which a check is known to have passed.
    :ivar deadline: the latest deadline seen: no check passed after it.
    """

    def __init__(self, leadership: zkelect.Leadership) -> None:
        self.leadership = leadership
        self.passed = self.deadline = -float("inf")
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def relieve(self) -> None:
        """Wait until the leadership is over."""
        self._thread.join(WITHIN)
        assert not self._thread.is_alive(), f"{self.leadership} does not end"

    def _look(self) -> None:
        while not self.leadership.wait_lost(0.002):
            began = boottime()
            self.deadline = max(self.deadline, self.leadership.deadline)
            with suppress(zkelect.Lost):
                self.leadership.check()
                self.passed = began


@pytest.fixture
def watch() -> type[Sentry]:
    """Set a sentry on a leadership."""
    return Sentry


# --- candidates in this process --------------------------------------------------------------


class Actor:
    """A candidate: its own session behind its own forwarder, and its diary."""

    def __init__(
        self,
        server: str,
        path: str,
        name: str,
        *,
        prepare: Callable[[zkelect.Leadership], None] | None = None,
        session_timeout: float = SESSION_TIMEOUT,
        **options: Any,
    ) -> None:
        self.name = name
        self._prepare = prepare
        self.diary = Diary()
        self.server = server
        self._stack = ExitStack()
        try:
            self.forwarder = self._stack.enter_context(Forwarder(server))
            self.session = self._stack.enter_context(
                zkelect.connect(
                    self.forwarder.hosts,
                    session_timeout=session_timeout,
                    tick_time=TICK,
                    timeout=WITHIN,
                )
            )
            self.election = zkelect.Election(
                self.session, path, name=name, prepare=self._catch_up, **options
            )
            self.listen(self.diary)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(zkelect.Misuse):  # the test has closed it
            self.forwarder.heal()
        self._stack.close()

    def listen(self, callbacks: Callbacks) -> None:
        self._stack.enter_context(self.election.listen(callbacks))

    def start(self) -> Self:
        """Stand, without a thread, until the end of the test; again after every end."""
        self.election.start()
        return self

    def lead(self) -> zkelect.Leadership:
        """Stand, and wait until elected."""
        return self.start().diary.wait("elected").leadership

    def wait(self) -> Self:
        """Stand, and wait for a place in the queue, behind somebody."""
        self.start()
        until(lambda: self.election.phase is zkelect.Phase.WAITING, f"{self.name} waits")
        return self

    def _catch_up(self, leadership: zkelect.Leadership) -> None:
        self.diary.granted(leadership)
        if self._prepare is not None:
            self._prepare(leadership)


class Campaign:
    """``election.campaign()`` on a thread of its own, which leads until it is told to leave.

    :ivar elected: the leadership, or what campaign() raised. :ivar left: when the block is left.
    """

    def __init__(self, election: zkelect.Election, timeout: float | None = None) -> None:
        self.elected: Future[zkelect.Leadership] = Future()
        self.left: Future[float] = Future()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._stand, args=(election, timeout), daemon=True)
        self._thread.start()

    def leadership(self) -> zkelect.Leadership:
        return self.elected.result(WITHIN)

    def leave(self, timeout: float = WITHIN) -> None:
        self._leaving.set()
        self.left.result(timeout)

    def _stand(self, election: zkelect.Election, timeout: float | None) -> None:
        try:
            with election.campaign(timeout) as leadership:
                self.elected.set_result(leadership)
                self._leaving.wait()
        except BaseException as error:
            if not self.elected.done():
                self.elected.set_exception(error)
            self.left.set_exception(error)
        else:
            self.left.set_result(boottime())


@pytest.fixture
def cast(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Actor]]:
    """Make a candidate for this test's election; all leave when the test ends."""
    with ExitStack() as stack:

        def make(name: str, *, server: str = zookeeper.hosts, **options: Any) -> Actor:
            return stack.enter_context(Actor(server, path, name, **options))

        yield make


@pytest.fixture
def adopted(path: str) -> Iterator[Callable[..., tuple[KazooClient, zkelect.Session]]]:
    """Start a client as an application does, and adopt it; the application stops it."""
    with ExitStack() as stack:

        def adopt(hosts: str, **options: Any) -> tuple[KazooClient, zkelect.Session]:
            client = KazooClient(hosts, timeout=SESSION_TIMEOUT)
            stack.callback(client.close)
            stack.callback(client.stop)
            client.start(timeout=WITHIN)
            session = zkelect.Session.adopt(client, session_timeout=SESSION_TIMEOUT, **options)
            return client, stack.enter_context(session)

        yield adopt


@pytest.fixture
def campaign() -> Iterator[Callable[..., Campaign]]:
    """Campaign on a thread; it leaves when the test ends."""
    begun: list[Campaign] = []

    def begin(election: zkelect.Election, timeout: float | None = None) -> Campaign:
        begun.append(Campaign(election, timeout))
        return begun[-1]

    yield begin
    for each in begun:
        with suppress(Exception):  # what it ended with is the test's to judge
            each.leave(timeout=SESSION_TIMEOUT)


# --- candidates as processes -----------------------------------------------------------------


class Process:
    """A candidate as a process of its own; see candidate.py for its words."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CANDIDATE), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # its children are ended with it
        )
        self.pid = self.process.pid
        self.told: list[dict[str, Any]] = []
        self._ended = False
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def order(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def wait(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until the process has told something that often; return the last of it."""
        with self._heard:
            self._heard.wait_for(lambda: len(self.all(event)) >= count or self._ended, WITHIN)
            assert len(self.all(event)) >= count, f"{event!r} was not told: {self.told}"
            return self.all(event)[count - 1]

    def all(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.told if line["event"] == event]

    def does(self, *words: str) -> dict[str, Any]:
        """Give an order and wait for the event of the same name."""
        count = len(self.all(words[0])) + 1
        self.order(*words)
        return self.wait(words[0], count)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, timeout: float = WITHIN) -> int:
        """Wait for its end and return its exit status."""
        status = self.process.wait(timeout)
        self._reader.join(timeout)
        return status

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.end()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._heard:
                self.told.append(json.loads(line))
                self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()


@pytest.fixture
def spawn(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Process]]:
    """Start a candidate for this test's election as a process."""
    started: list[Process] = []

    def start(name: str, *arguments: str, hosts: str = zookeeper.hosts) -> Process:
        timings = (f"--session-timeout={SESSION_TIMEOUT}", f"--tick-time={TICK}")
        started.append(Process(hosts, path, name, *timings, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.close()


# --- waiting and measuring -------------------------------------------------------------------


@pytest.fixture
def eventually() -> Callable[[Callable[[], object], str], None]:
    """Wait for a condition."""
    return until


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[str, float, float], None]:
    """Print a figure, and allow it ten times what is promised: machines are busy at times."""

    def bound(what: str, seconds: float, promised: float) -> None:
        print(f"{request.node.name}: {what}: {seconds:.3f} s (promised {promised:g} s)")
        assert seconds < 10 * promised, what

    return bound
