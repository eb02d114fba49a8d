"""A fortress, its keys, and a witness that a refusal leaves nothing behind."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from access.fortress import build, make_keys
from access.refusals import Belongings
from access.scripted import ScriptedServer
from election.actor import SESSION_TIMEOUT, TICK
from election.waiting import WITHIN, until
from kazoo.client import KazooClient

import zkelect

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from access.fortress import Fortress, Keys


# --- servers ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def fortress(keys: Keys) -> Iterator[Fortress]:
    with build(keys, TICK) as built:
        yield built


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedServer]]:
    """Start a server that keeps to a script."""
    with ExitStack() as stack:

        def start(script: Callable[[ScriptedServer, socket.socket], None]) -> ScriptedServer:
            return stack.enter_context(ScriptedServer(script))

        yield start


# --- clients ---------------------------------------------------------------------------------


@pytest.fixture
def connect() -> Iterator[Callable[..., zkelect.Session]]:
    """Connect with this server's quick times; closed when the test ends."""
    with ExitStack() as stack:

        def connect(hosts: str, **options: Any) -> zkelect.Session:
            times = {"session_timeout": SESSION_TIMEOUT, "tick_time": TICK, "timeout": WITHIN}
            return stack.enter_context(zkelect.connect(hosts, **{**times, **options}))

        yield connect


@pytest.fixture
def kazoo() -> Iterator[Callable[..., KazooClient]]:
    """Start a kazoo client, as another program would."""
    with ExitStack() as stack:

        def start(hosts: str, **options: Any) -> KazooClient:
            client = KazooClient(hosts, timeout=4.0, **options)
            stack.callback(client.close)
            stack.callback(client.stop)
            client.start(timeout=WITHIN)
            return client

        yield start


# --- errors ----------------------------------------------------------------------------------


@pytest.fixture
def refused() -> Callable[..., Any]:
    """Call, expect an error of that kind, and that no thread and no socket is left by it."""

    def refuse(kind: type[zkelect.ZkelectError], call: Callable[[], object]) -> Any:
        before = Belongings.now()
        with pytest.raises(kind) as caught:
            call()
        left: set[object] = set()

        def clean() -> bool:
            left.clear()
            left.update(Belongings.now().more_than(before))
            return not left

        try:
            until(clean, "nothing is left")
        except AssertionError:
            pytest.fail(f"left behind, while the error is still held: {left}")
        return caught.value

    return refuse
