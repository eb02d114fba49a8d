"""Becomes another program, one that the kernel kills when its parent dies.

Run as a script, by path: ``python launcher.py PARENT_PID PROGRAM ARGUMENT…``. A program of
its own, since Python's ``preexec_fn`` is not safe in a process with threads (the
``subprocess`` documentation says so), and since a program that outlives its parent
by being killed too late would be the orphan this is here to prevent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def launch(parent: int, command: list[str]) -> None:
    """Tie this process to its parent's life, then become ``command``.

    The kernel counts the *thread* that forked as the parent (prctl(2)): it must live as
    long as the program is wanted.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it died before the kernel knew
        sys.exit(f"the parent process {parent} has gone")
    os.execv(command[0], command)  # noqa: S606 - the caller chose the program


if __name__ == "__main__":
    launch(int(sys.argv[1]), sys.argv[2:])
