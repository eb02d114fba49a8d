"""Running until a signal comes: how the commands of ``zkelect promote`` end that never do."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from zkelect.recipes.resource import Unfit

__all__ = ["until_a_signal"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def until_a_signal() -> Iterator[threading.Event]:
    """Lend what the first signal sets; when the block is left, end as that signal says.

    :raises click.ClickException: what the block looks after cannot be, it is ``Unfit``.
    :raises click.exceptions.Exit: a signal, with the shell's status, 128 + its number.
    """
    stop = threading.Event()
    heard: list[int] = []

    def heed(number: int, _: object) -> None:
        heard.append(number)
        stop.set()

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, heed)
    try:
        yield stop
    except Unfit as unfit:
        raise click.ClickException(str(unfit)) from unfit
    if heard:
        raise click.exceptions.Exit(128 + heard[0])
