"""A server with TLS and SASL, and the keys to it."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.testing import LocalEnsemble
from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["KEY_PASSWORD", "PASSWORDS", "Fortress", "Keys", "build", "make_keys"]

PASSWORDS: Final = {"alice": "alice-s3cret", "bob": "bob-s3cret"}
"""Of the users whom the server knows by SASL."""

KEY_PASSWORD: Final = "k3y-s3cret"

_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_LEAF: Final = ("-addext", "basicConstraints=critical,CA:FALSE")
_SIGNED: Final = (*_LEAF, "-CA", "ca.crt", "-CAkey", "ca.key")
_FOR_LOCALHOST: Final = ("-addext", "subjectAltName=DNS:localhost")


@attrs.frozen
class Keys:
    """Where the files are: for each name NAME.crt, NAME.key, and both in NAME.pem.

    ``server`` is for the name localhost and signed by ``ca``, as is ``client``; ``stranger``
    has signed nothing. ``locked.key`` is the client's key, with a password.
    """

    folder: Path

    def file(self, name: str) -> str:
        return str(self.folder / name)


@attrs.frozen
class Fortress:
    """A server that speaks TLS on one port and SASL on both, but lets everybody in.

    :ivar plain: address of the port without TLS. :ivar port: number of the one with TLS.
    """

    plain: str
    port: int

    @property
    def named(self) -> str:
        """The TLS port, by the name that its certificate carries."""
        return f"localhost:{self.port}"

    @property
    def unnamed(self) -> str:
        """The TLS port, by a name that its certificate does not carry."""
        return f"{LOOPBACK}:{self.port}"


def make_keys(folder: Path) -> Keys:
    """Make all keys and certificates, by the program that comes with every Java of Debian."""
    _certify(folder, "ca", "-subj", "/CN=our authority")
    _certify(folder, "stranger", "-subj", "/CN=an authority that signed nothing here")
    _certify(folder, "server", "-subj", "/CN=server", *_FOR_LOCALHOST, *_SIGNED)
    _certify(folder, "client", "-subj", "/CN=client", *_SIGNED)
    _lock(folder, "client", KEY_PASSWORD)
    (folder / "text.pem").write_text("no certificate at all\n")
    return Keys(folder)


@contextmanager
def build(keys: Keys, tick_time: float) -> Iterator[Fortress]:
    port = Port()
    config = {
        "secureClientPort": str(port.number),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": keys.file("server.pem"),
        "ssl.trustStore.location": keys.file("ca.pem"),  # the server knows the format by the ending
        "ssl.clientAuth": "none",
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    }
    jaas = f"-Djava.security.auth.login.config={_login_configuration(keys.folder)}"
    try:
        with LocalEnsemble(tick_time=tick_time, config=config, java_options=[jaas]) as zookeeper:
            yield Fortress(zookeeper.hosts, port.number)
    finally:
        port.release()


def _login_configuration(folder: Path) -> Path:
    users = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas = folder / "jaas.conf"
    jaas.write_text(f"Server {{ {module} required {users}; }};\n")
    return jaas


def _certify(folder: Path, name: str, *options: str) -> None:
    files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
    command = ("openssl", "req", "-x509", "-days", "3650", *_NEW_KEY, *files, *options)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    both = (folder / f"{name}.key").read_bytes() + (folder / f"{name}.crt").read_bytes()
    (folder / f"{name}.pem").write_bytes(both)


def _lock(folder: Path, name: str, password: str) -> None:
    files = ("-in", f"{name}.key", "-out", "locked.key")
    command = ("openssl", "pkcs8", "-topk8", *files, "-passout", f"pass:{password}")
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
