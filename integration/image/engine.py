"""A Docker engine to test with: the one there is, or one of our own for as long as it takes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import docker
from image.programs import ensure
from servers.process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient

__all__ = ["connected", "find_engine", "private_engine"]

_DEFAULT_SOCKET: Final = Path("/var/run/docker.sock")
_ANSWER_WITHIN: Final = 300  # seconds; an image of 400 MB is imported in one request


@contextmanager
def find_engine() -> Iterator[str]:
    """Lend the engine that ``DOCKER_HOST`` names, or this machine's, or a private one.

    :returns: a ``DOCKER_HOST`` for it.
    """
    if named := os.environ.get("DOCKER_HOST"):
        yield named  # one that does not answer is an error, not passed over
    elif _listens(_DEFAULT_SOCKET):
        yield f"unix://{_DEFAULT_SOCKET}"
    else:
        with private_engine() as address:
            yield address


@contextmanager
def private_engine() -> Iterator[str]:
    """Run a Docker engine whose directories are its own, deleted in the end; needs root.

    When this process is killed, the engine gets SIGTERM, and ends its containers. Docker's
    firewall chains and its bridge docker0 stay behind, as they do after every engine.

    :raises ProgramMissing: dockerd is not here and cannot be installed.
    :raises ServerFailed: it did not start; the end of its log is in the message.
    """
    dockerd = ensure("dockerd", "docker.io iptables")
    directory = Path(tempfile.mkdtemp(prefix="zkelect-engine-"))
    door = directory / "docker.sock"
    process = ServerProcess(_command(dockerd, directory), directory=directory)
    try:
        process.start(lambda: _listens(door))
        yield f"unix://{door}"
    finally:
        process.stop()
        _remove(directory)


@contextmanager
def connected(address: str) -> Iterator[DockerClient]:
    """Lend a client of an engine."""
    client = docker.DockerClient(address, timeout=_ANSWER_WITHIN)
    try:
        yield client
    finally:
        client.close()


def _command(dockerd: str, directory: Path) -> list[str]:
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    return [
        *(setpriv, "--pdeathsig=TERM", "--", dockerd),
        *("--data-root", str(directory / "data"), "--exec-root", str(directory / "exec")),
        *("--host", f"unix://{directory}/docker.sock", "--pidfile", str(directory / "pid")),
    ]


def _listens(path: Path) -> bool:
    """Not asked by the SDK, which forgets to close a socket that finds nobody."""
    with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
        client.connect(str(path))
        return True
    return False


def _remove(directory: Path) -> None:
    """Delete the engine's directory; it leaves a network, and at times its data, mounted there."""
    for point in _mounted(directory):
        subprocess.run(["umount", point], check=True)
    shutil.rmtree(directory, ignore_errors=True)


def _mounted(directory: Path) -> list[str]:
    """Return the mount points in a directory, the latest first: proc(5), mountinfo."""
    table = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    points = [line.split()[4] for line in table]
    return [point for point in reversed(points) if Path(point).is_relative_to(directory)]
