"""A network namespace of our own, for as long as a thread of ours lives in it (Linux, root)."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from zkelect.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

__all__ = ["PACKAGES", "Namespace", "NetworkUnavailable", "find_missing", "run"]

Value = TypeVar("Value")

_CLONE_NEWNET: Final = 0x40000000  # unshare(2)
_ADMINISTRATORS_PATH: Final = "/usr/sbin:/sbin"  # often not in PATH, not even in root's
PACKAGES: Final = {
    "ip": "iproute2",
    "ss": "iproute2",
    "iptables-restore": "iptables",
}
"""The programs that a network is made with, and the packages of Debian that bring them."""


class NetworkUnavailable(Unreachable):
    """This machine, or this user, cannot make networks that can be broken.

    :ivar missing: what is missing, each with what to type.
    """

    def __init__(self, missing: Sequence[str]) -> None:
        self.missing: tuple[str, ...] = tuple(missing)
        super().__init__(
            "the network between servers cannot be made, or broken, here: " + "; ".join(missing)
        )


class Namespace:
    """A network apart: a thread that has left the machine's for it, and all that it starts.

    The kernel keeps a namespace as long as a thread is in it, or something in it is open
    (network_namespaces(7)). So it needs no name and no cleaning: when this process ends,
    however it ends, its threads are gone; its servers are killed (``launcher.launch``); and
    links and firewall rules go with the namespace.
    """

    def __init__(self, name: str, *, of: int | None = None) -> None:
        """Start the thread.

        :param name: of the thread, for people.
        :param of: process id of somebody whose network to enter, such as a container's;
            None: a new and empty one.
        :raises NetworkUnavailable: the kernel refuses, or there is no such process.
        """
        self._thread = ThreadPoolExecutor(1, name)
        try:
            self.call(_leave_network if of is None else partial(_enter_network, of))
        except OSError as error:
            self.close()
            raise NetworkUnavailable([_refused(error)]) from error
        self.path = f"/proc/{self.call(threading.get_native_id)}/ns/net"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spawner(self) -> Executor:
        """Runs calls on the thread: processes started there live in this network."""
        return self._thread

    def call(self, function: Callable[[], Value]) -> Value:
        """Run a function in this network: sockets it opens stay there."""
        return self._thread.submit(function).result()

    def run(self, *command: str, text: str = "") -> None:
        """Run a program in this network; see :func:`run`."""
        self.call(lambda: run(*command, text=text))

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def run(*command: str, text: str = "") -> None:
    """Run a program, and wait for its end.

    :param text: its standard input.
    :raises NetworkUnavailable: there is no such program.
    :raises subprocess.CalledProcessError: it failed; what it printed is attached as a note.
    """
    program = _find_program(command[0])
    if program is None:
        raise NetworkUnavailable([_not_installed(command[0])])
    done = subprocess.run(
        [program, *command[1:]], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        failure = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        failure.add_note(done.stderr.strip())
        raise failure


def find_missing() -> list[str]:
    """Return what :class:`Namespace` and its tools lack here, each with what to type."""
    return list(_missing())


def _missing() -> Iterator[str]:
    if sys.platform != "linux":
        yield "network namespaces are Linux's: run the tests there"
        return
    for name in PACKAGES:
        if _find_program(name) is None:
            yield _not_installed(name)
    if os.geteuid() != 0:
        yield "you are not root: sudo, with the path of this Python"
        return
    try:
        Namespace("trial").close()
    except NetworkUnavailable as refusal:
        yield from refusal.missing


def _leave_network() -> None:
    """Move this thread, and no other, into a new and empty network (unshare(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    _succeeded(libc.unshare(_CLONE_NEWNET))


def _enter_network(process: int) -> None:
    """Move this thread, and no other, into the network of a process (setns(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{process}/ns/net").open("rb") as network:
        _succeeded(libc.setns(network.fileno(), _CLONE_NEWNET))


def _succeeded(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _find_program(name: str) -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", ""), _ADMINISTRATORS_PATH))
    return shutil.which(name, path=path)


def _not_installed(name: str) -> str:
    return f"no program {name}: apt-get install -y --no-install-recommends {PACKAGES[name]}"


def _refused(error: OSError) -> str:
    return (
        f"the kernel refuses a network namespace ({error.strerror}): run as root; "
        "in a container, start that with: docker run --privileged"
    )
