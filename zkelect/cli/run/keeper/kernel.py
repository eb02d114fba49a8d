"""What Linux can do and Python has no name for (yet): prctl(2) and timerfd_create(2)."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import Final

__all__ = ["Alarm", "adopt_orphans", "boottime", "die_with_parent"]

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_CLOCK_BOOTTIME: Final = 7
_ABSOLUTE: Final = 1
_NANOSECONDS: Final = 1_000_000_000

_libc: Final = ctypes.CDLL(None, use_errno=True)


def boottime() -> float:
    """Return the instant that leases count on, seconds; it goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent dies, instead of process 1."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process as soon as its parent has died.

    The parent is the *thread* that forked it. A program with other rights than its caller's
    (set-user-ID) is set free of it by execve(2).

    :param parent: whom we expect; it may have died before this call.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


class _Instant(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class _Setting(ctypes.Structure):
    _fields_ = [("interval", _Instant), ("at", _Instant)]


class Alarm:
    """A file that can be read from an instant of the boot clock on.

    select(2) and poll(2) stand still while the machine sleeps, and would let it sleep over the
    deadline; this one is due at once when it wakes.

    :ivar descriptor: readable when the instant has come.
    """

    def __init__(self) -> None:
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self.descriptor: Final[int] = _check(_libc.timerfd_create(_CLOCK_BOOTTIME, flags))

    def set(self, at: float | None) -> None:
        """Be due at that instant; None: never."""
        nanoseconds = 0 if at is None else max(int(at * _NANOSECONDS), 1)  # 0 means never
        setting = _Setting(at=_Instant(*divmod(nanoseconds, _NANOSECONDS)))
        _check(_libc.timerfd_settime(self.descriptor, _ABSOLUTE, ctypes.byref(setting), None))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
