"""A real server, an operator who looks at its znodes, and candidates to stage a case with.

Tests wait for events, never for time to pass. What cannot tell us when it happens, such as
a znode that goes, is asked again and again within an outer bound. Instants are those of the
boot clock, the same one in every process.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from election.actor import SESSION_TIMEOUT, TICK, Actor, Campaign
from election.diary import Sentry
from election.process import Process
from election.waiting import WITHIN, until
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

import zkelect
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Actor", "Campaign", "Operator", "Process", "Sentry"]

_HERE: Final = Path(__file__).parent


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
    """The election of this test, and of no other test of that name."""
    module = request.path.relative_to(_HERE).with_suffix("")
    return "/elections/" + re.sub(r"\W+", "-", f"{module}-{request.node.name}")


@pytest.fixture
def times() -> Callable[..., int]:
    """Choose how often to do something: so often as a rule, or as often as is promised."""
    thorough = os.environ.get("ZKELECT_THOROUGH", "") not in ("", "0")
    return lambda quick, promised: promised if thorough else quick


# --- the operator ----------------------------------------------------------------------------


@contextmanager
def connected(hosts: str, **options: Any) -> Iterator[KazooClient]:
    kazoo = KazooClient(hosts, timeout=2 * SESSION_TIMEOUT, **options)
    kazoo.start(timeout=WITHIN)
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()


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

    def term(self, path: str) -> dict[str, Any]:
        """Return the present term, empty before the first one is written."""
        term: dict[str, Any] = self._read(f"{path}.zkelect/term") or {}
        return term

    def terms(self, path: str) -> list[dict[str, Any]]:
        """Return the terms that have ended."""
        history: list[dict[str, Any]] = self._read(f"{path}.zkelect/history") or []
        return [row for row in history if "token" in row]

    def _read(self, znode: str) -> Any:
        try:
            return json.loads(self.kazoo.get(znode)[0])
        except NoNodeError:
            return None


@pytest.fixture
def operate() -> Iterator[Callable[..., Operator]]:
    """Connect an operator to some hosts, with options of kazoo's."""
    with ExitStack() as stack:
        yield lambda hosts, **options: Operator(stack.enter_context(connected(hosts, **options)))


@pytest.fixture
def operator(operate: Callable[..., Operator], zookeeper: LocalEnsemble) -> Operator:
    return operate(zookeeper.hosts)


# --- candidates ------------------------------------------------------------------------------


@pytest.fixture
def cast(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Actor]]:
    """Make a candidate for this test's election; all leave when the test ends."""
    with ExitStack() as stack:

        def make(name: str, *, server: str = zookeeper.hosts, **options: Any) -> Actor:
            return stack.enter_context(Actor(server, path, name, **options))

        yield make


@pytest.fixture
def campaign() -> Iterator[Callable[..., Campaign]]:
    """Campaign on a thread; it leaves when the test ends."""
    begun: list[Campaign] = []

    def begin(election: zkelect.Election, timeout: float | None = None) -> Campaign:
        begun.append(Campaign(election, timeout))
        return begun[-1]

    yield begin
    for each in begun:
        with suppress(zkelect.ZkelectError, TimeoutError):  # what it ended with is the test's
            each.leave(timeout=SESSION_TIMEOUT)


@pytest.fixture
def adopted() -> Iterator[Callable[..., tuple[KazooClient, zkelect.Session]]]:
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
def spawn(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Process]]:
    """Start a candidate for this test's election as a process."""
    with ExitStack() as stack:

        def start(name: str, *arguments: str, hosts: str = zookeeper.hosts) -> Process:
            times = (f"--session-timeout={SESSION_TIMEOUT}", f"--tick-time={TICK}")
            process = Process(hosts, path, name, *times, *arguments)
            stack.callback(process.close)
            return process

        yield start


# --- waiting and measuring -------------------------------------------------------------------


@pytest.fixture
def watch() -> type[Sentry]:
    """Set a sentry on a leadership."""
    return Sentry


@pytest.fixture
def eventually() -> Callable[[Callable[[], object], str], None]:
    """Wait for a condition; only for what cannot tell when it happens."""
    return until


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[str, float, float], None]:
    """Print a figure, and allow it ten times what is promised: machines are busy at times."""

    def bound(what: str, seconds: float, promised: float) -> None:
        print(f"{request.node.name}: {what}: {seconds:.3f} s (promised {promised:g} s)")
        assert seconds < 10 * promised, what

    return bound
