"""Threads that are none: gevent and eventlet can put their own into a program's place.

A patched thread runs only when the others wait. While one computes, no probe goes out and no
watchdog looks, so the lease runs out under a healthy leader, and nobody is told of a loss.
Measured at T = 4 s, over a computation of 6 s in the leader's body: with native threads 0.85 s
of lease were left at the least, with either library it lapsed.
"""

from __future__ import annotations

import sys
from typing import Final

from zkelect.errors import MonkeyPatched

__all__ = ["refuse_patched_threads"]

_QUESTIONS: Final = {
    "gevent": ("gevent.monkey", "is_module_patched", ("threading", "socket", "select")),
    "eventlet": ("eventlet.patcher", "is_monkey_patched", ("thread", "socket", "select")),
}


def refuse_patched_threads() -> None:
    """Refuse a process whose threads or sockets are greenlets; imports neither library.

    :raises MonkeyPatched: names the library and what it has replaced.
    """
    for library, (home, question, modules) in _QUESTIONS.items():
        if home in sys.modules:
            is_patched = getattr(sys.modules[home], question)
            if patched := [module for module in modules if is_patched(module)]:
                raise MonkeyPatched(library, patched)
