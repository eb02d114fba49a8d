"""Starting the command: what it inherits, where it is put, and how a failure is told."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from zkelect.cli.run.keeper.cgroups import Cgroup
from zkelect.cli.run.keeper.kernel import die_with_parent

__all__ = ["Inheritance", "start"]

_ERRNO: Final = struct.Struct("=i")
_PYTHONS_OWN: Final = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by each Python that starts
_FAILED: Final = 127


class Inheritance(NamedTuple):
    """What the command shall find as if nobody stood between it and our caller.

    :ivar group: the process group of the elector: the terminal's keys reach it there.
    :ivar mask: blocked signals. :ivar ignored: as by nohup(1).
    """

    group: int
    mask: frozenset[int]
    ignored: frozenset[int]

    @classmethod
    def here(cls) -> Inheritance:
        """Read that of this process, before it changes anything."""
        numbers = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
        ignored = {each for each in numbers if signal.getsignal(each) is signal.SIG_IGN}
        return cls(
            group=os.getpgrp(),
            mask=frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            ignored=frozenset(ignored - set(_PYTHONS_OWN)),
        )

    def restore(self) -> None:
        """Have it again, in a process that is about to become the command."""
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            kept = signal.SIG_IGN if number in self.ignored else signal.SIG_DFL
            signal.signal(number, kept)
        os.setpgid(0, self.group)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    inheritance: Inheritance,
    cgroup: Cgroup | None,
) -> tuple[int, int]:
    """Start the command, as a child of this thread.

    :returns: its process id, and a file that ends once it runs; what can be read there before
        says why it does not, see :func:`failure`. It is not waited for: a program on a dead file
        server would let us sleep over the deadline.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(keeper, command, environment, inheritance, cgroup)
        except OSError as error:
            os.write(writer, _ERRNO.pack(error.errno or 0))
        finally:
            os._exit(_FAILED)
    os.close(writer)
    return pid, reader


def failure(told: bytes) -> int | None:
    """Return the number of the error that was told, None when it was none."""
    return _ERRNO.unpack(told)[0] if told else None


def _become(
    keeper: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    inheritance: Inheritance,
    cgroup: Cgroup | None,
) -> None:
    die_with_parent(keeper)
    if cgroup is not None:
        cgroup.join()  # before it can fork: so nothing of it is ever outside
    inheritance.restore()
    os.execvpe(command[0], list(command), environment)  # noqa: S606 - the user's command, no shell
