"""How many processes one death wakes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT, WITHIN, Candidate
from zkelect.testing import LocalEnsemble, expire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.standing import Campaign

__all__ = ["rows"]

_CROWD: Final = 50


def rows(rounds: int) -> Iterator[Row]:
    """End one leader's session after the other."""
    with (
        LocalEnsemble(tick_time=TICK, max_session_timeout=2 * TIMEOUT) as zookeeper,
        ExitStack() as stack,
        ThreadPoolExecutor(8) as pool,
    ):
        ...
