"""A fortress, its keys, and a witness that a refusal leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest
from access.scripted import ScriptedServer
from kazoo.client import KazooClient

import zkelect
from zkelect.testing import LocalEnsemble
from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

WITHIN: Final = 30.0
"""Seconds: an outer bound against a hang, never a measure."""

TICK: Final = 0.2
SESSION_TIMEOUT: Final = 2.0

PASSWORDS: Final = {"alice": "alice-s3cret", "bob": "bob-s3cret"}


# --- certificates ----------------------------------------------------------------------------


@attrs.frozen
class Keys:
    """Files in PEM: ``server`` is for the name localhost, and signed by ``ca``."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")


def _certify(folder: Path, name: str, *options: str) -> None:
    """Make a key and its certificate, both in one file."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "3650", "-keyout", f"{name}.key", "-out", f"{name}.crt"),
            *options,
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    both = (folder / f"{name}.key").read_bytes() + (folder / f"{name}.crt").read_bytes()
    (folder / f"{name}.pem").write_bytes(both)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    leaf = ("-addext", "basicConstraints=critical,CA:FALSE", "-CA", "ca.crt", "-CAkey", "ca.key")
    _certify(folder, "ca", "-subj", "/CN=our authority")
    _certify(folder, "stranger", "-subj", "/CN=an authority that signed nothing here")
    _certify(
        folder, "server", "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost", *leaf
    )
    _certify(folder, "client", "-subj", "/CN=client", *leaf)
    (folder / "text.pem").write_text("no certificate at all\n")
    return Keys(folder)


# --- servers ---------------------------------------------------------------------------------


@attrs.frozen
class Fortress:
    """A server that speaks TLS on one port, SASL on both, and lets everybody in.

    :ivar plain: address of the port without TLS. :ivar port: number of the one with TLS.
    """

    plain: str
    port: int

    @property
    def named(self) -> str:
        """The TLS port, by the name its certificate carries."""
        return f"localhost:{self.port}"

    @property
    def unnamed(self) -> str:
        """The TLS port, by a name its certificate does not carry."""
        return f"{LOOPBACK}:{self.port}"


@pytest.fixture(scope="session")
def fortress(keys: Keys) -> Iterator[Fortress]:
    jaas = keys.folder / "jaas.conf"
    users = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas.write_text(f"Server {{ {module} required {users}; }};\n")
    with ExitStack() as stack:
        port = Port()
        stack.callback(port.release)
        zookeeper = stack.enter_context(
            LocalEnsemble(
                tick_time=TICK,
                config={
                    "secureClientPort": str(port.number),
                    "secureClientPortAddress": LOOPBACK,
                    "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                    "ssl.keyStore.location": keys.server,
                    "ssl.trustStore.location": keys.ca,
                    "ssl.clientAuth": "none",
                    "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                },
                java_options=[f"-Djava.security.auth.login.config={jaas}"],
            )
        )
        yield Fortress(zookeeper.hosts, port.number)


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


@attrs.frozen
class Belongings:
    """What this process holds: its threads and its sockets."""

    threads: frozenset[threading.Thread]
    sockets: frozenset[str]

    @classmethod
    def now(cls) -> Belongings:
        return cls(frozenset(threading.enumerate()), frozenset(_sockets()))

    def more_than(self, before: Belongings) -> set[object]:
        return {*(self.threads - before.threads), *(self.sockets - before.sockets)}


def _sockets() -> Iterator[str]:
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # the descriptor of the listing itself, or closed meanwhile
        if target.startswith("socket:"):
            yield target


@pytest.fixture
def refused(
    eventually: Callable[[Callable[[], object], str], None],
) -> Callable[..., Any]:
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
            eventually(clean, "nothing is left")
        except AssertionError:
            pytest.fail(f"left behind, while the error is still held: {left}")
        return caught.value

    return refuse
