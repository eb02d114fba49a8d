"""Workers in this process, each with a session, a group, and a count of what it leads."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from election.actor import SESSION_TIMEOUT, TICK
from election.waiting import WITHIN

import zkelect
from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Worker"]


class Worker:
    """One worker, whose host can be cut off.

    :ivar most: how many elections its callbacks led at one instant. :ivar ends: why each of
        its terms ended, in order.
    """

    def __init__(self, server: str, root: str, name: str, **options: Any) -> None:
        self.name = name
        self.most = 0
        self.ends: list[str] = []
        self._leading: set[zkelect.Leadership] = set()
        self._counting = threading.Lock()
        with ExitStack() as opened:
            self.forwarder = opened.enter_context(Forwarder(server))
            self.session = opened.enter_context(
                zkelect.connect(
                    self.forwarder.hosts,
                    session_timeout=SESSION_TIMEOUT,
                    tick_time=TICK,
                    timeout=WITHIN,
                )
            )
            self.group = opened.enter_context(
                zkelect.ElectionGroup(self.session, root, name=name, **options)
            )
            opened.enter_context(self.group.listen(self))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.forwarder.heal()
        self._opened.close()

    def elected(self, leadership: zkelect.Leadership) -> None:
        with self._counting:
            self._leading.add(leadership)
            self.most = max(self.most, len(self._leading))

    def suspended(self, leadership: zkelect.Leadership) -> None:
        """The lease decides."""

    def deposed(self, leadership: zkelect.Leadership) -> None:
        with self._counting:
            self._leading.remove(leadership)
            self.ends.append(str(leadership.reason))

    def add(self, names: Iterable[str]) -> Self:
        self.group.add(*names)
        return self

    @property
    def led(self) -> set[str]:
        return set(self.group.leaderships)
