"""An act that is waited for: how far it is, and what a signal does to it."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final, TypeVar

import zkelect
from zkelect.cli.failures import tell
from zkelect.cli.signals import Interrupted, Interruption

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["accompany"]

T = TypeVar("T")
_INTERVAL: Final = 0.5
"""Seconds between two looks at how far it is."""


def accompany(
    act: Callable[[threading.Event], T], progress: Callable[[], str], outcome: Callable[[T], str]
) -> T:
    """Have something done, say at each change how far it is, and return what comes of it.

    The waiting is done on another thread, so that a signal can withdraw it in order.

    :param act: ends soon, withdrawn, when the event is set. :param progress: says how far it is,
        in about a second; empty when there is nothing to say. :param outcome: says what came of it.
    :raises zkelect.ZkelectError: as the act does.
    :raises Interrupted: a signal came; what has become of it is told.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(act, stop)
        try:
            _wait(result, progress)
            return result.result()
        except Interrupted:
            stop.set()
            tell(_end_of(result, outcome))
            raise
        finally:
            stop.set()


def _wait(result: Future[T], progress: Callable[[], str]) -> None:
    said = ""
    with Interruption() as interruption, interruption.deferred():
        while not wait([result], _INTERVAL).done:
            interruption.check()
            now = progress()
            if now not in ("", said):
                tell(now)
                said = now


def _end_of(result: Future[T], outcome: Callable[[T], str]) -> str:
    try:
        return f"too late to withdraw it: {outcome(result.result())}"
    except zkelect.ZkelectError as error:
        return str(error)
