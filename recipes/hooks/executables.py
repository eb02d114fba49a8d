"""The user's executables: one for each verb in a folder, or one program for all."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeVar

from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import left
from zkelect.recipes.hooks import tree
from zkelect.recipes.hooks.answer import check_status, read
from zkelect.recipes.hooks.failures import HookFailed, HookMissing
from zkelect.recipes.hooks.order import REQUIRED, Order, Verb, environment_of
from zkelect.recipes.notes import encode
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Hooks"]

_log: Final = logging.getLogger("zkelect.recipes")
_LONGEST: Final = 1 << 20
"""Bytes that are read of what a hook prints."""

_Kind = TypeVar("_Kind")


class Hooks:
    """Calls them.

    What they print goes to files and not through pipes: a server that a hook starts would keep a
    pipe open, and who waits for its end would wait for the server's.

    :param path: a folder of executables named as the verbs, or one executable, which is called
        with the verb as its argument.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    @property
    def path(self) -> Path:
        """Where they are."""
        return self._path

    def check(self) -> None:
        """Look whether those are there that there must be.

        :raises Unfit: they are not.
        """
        if not self._path.is_dir():
            if not _is_executable(self._path):
                raise Unfit(f"{self._path} is no folder of hooks, and no executable")
            return
        missing = sorted(verb for verb in REQUIRED if not _is_executable(self._path / verb))
        if missing:
            raise Unfit(
                f"{self._path} has no executables {', '.join(missing)}: write them, and chmod +x"
            )

    def lacks(self, verb: Verb) -> bool:
        """Whether there is certainly no such hook; a program for all is not asked.

        A folder without ``position`` is none of ours: a disk that is not mounted is no sign that
        there is no ``fence``.
        """
        there = os.path.lexists
        return there(self._path / Verb.POSITION) and not there(self._path / verb)

    def ask(
        self,
        kind: type[_Kind],
        order: Order,
        deadline: float,
        token: str = "",
        *,
        began: Callable[[int], None] | None = None,
    ) -> _Kind:
        """Call one, and return its answer as a value of that class.

        :param deadline: when it is killed. :param token: as for :func:`environment_of`.
        :param began: called with the number of its process.
        :raises NotNow: it says so, or there is no time. :raises HookMissing: there is no such hook.
        :raises HookFailed: it did not end well, or not in time, or its answer is none.
        """
        left(deadline)
        environment = {**os.environ, **environment_of(order, deadline, token)}
        with _open_file() as told, _open_file() as output, _open_file() as complaint:
            told.write(encode(order))
            told.seek(0)
            process = self._launch(order.verb, (told, output, complaint), environment)
            _await(order.verb, process, deadline, began)
            complained = _read_end(complaint)
            check_status(order.verb, process.returncode, complained, alone=self._path.is_dir())
            _log.debug("the hook %s is done: %s", order.verb, complained.decode("utf-8", "replace"))
            return read(kind, order.verb, _read_end(output))

    def _launch(
        self, verb: Verb, files: Sequence[IO[bytes]], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        if self.lacks(verb):
            raise HookMissing(verb, f"is not there: {self._path / verb}")
        told, output, complaint = files
        command = (self._path / verb,) if self._path.is_dir() else (self._path, str(verb))
        try:
            return subprocess.Popen(
                command,
                stdin=told,
                stdout=output,
                stderr=complaint,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise HookFailed(verb, f"cannot be run: {error}") from error


def _await(
    verb: Verb,
    process: subprocess.Popen[bytes],
    deadline: float,
    began: Callable[[int], None] | None,
) -> None:
    """Wait for its end, and see to it, whatever ends the wait."""
    try:
        if began is not None:
            began(process.pid)
        process.wait(max(deadline - now(), 0.0))
    except subprocess.TimeoutExpired as error:
        raise HookFailed(verb, f"did not end in time, and {_kill(process)}") from error
    except BaseException:
        _kill(process)
        raise


def _kill(process: subprocess.Popen[bytes]) -> str:
    """Kill it with all that came of it; return how that went, as a message says it."""
    spared = tree.kill(process.pid) if process.returncode is None else set()
    has_ended = process.poll() is not None
    if spared:
        return f"goes on: {tree.complain(spared)}"
    if has_ended:
        return "was killed"
    return f"was killed, but pid {process.pid} goes on: see what disk or mount it waits for"


def _open_file() -> IO[bytes]:
    """Make one in memory: a disk may be full, and the server has to be closed all the same."""
    return os.fdopen(os.memfd_create("zkelect-hook"), "w+b")


def _read_end(file: IO[bytes]) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _LONGEST, 0))
    return file.read(_LONGEST)


def _is_executable(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK)
