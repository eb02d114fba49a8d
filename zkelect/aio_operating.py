"""What an operator does to an election, for a program on asyncio."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Final

from zkelect.core.acts import Act
from zkelect.core.pause import Pause
from zkelect.core.record import Term
from zkelect.core.znodes import Dialect
from zkelect.operating import Operations
from zkelect.session.evicting import Evicted
from zkelect.session.roll import Candidate
from zkelect.session.session import Session
from zkelect.token import Token

__all__ = ["AsyncOperations"]


class AsyncOperations:
    """The part of :class:`zkelect.AsyncElection` that needs no candidate to stand.

    Each act is done on a thread that may wait. When its await is cancelled, it may be done
    all the same.
    """

    def __init__(self, session: Session, path: str, dialect: Dialect) -> None:
        self._operations: Final = Operations(session, path, dialect)

    async def adopt(
        self, *marks: Token, why: str = "", by: str | None = None, timeout: float = 10.0
    ) -> int:
        """Put all later tokens above these marks; as :meth:`zkelect.Election.adopt`."""
        adopt = partial(self._operations.adopt, *marks, why=why, by=by, timeout=timeout)
        return await asyncio.to_thread(adopt)

    async def pause(
        self, why: str = "", *, by: str | None = None, timeout: float = 10.0
    ) -> Candidate | None:
        """Let nobody new be elected; who leads, stays; as :meth:`zkelect.Election.pause`."""
        return await asyncio.to_thread(self._operations.pause, why, by=by, timeout=timeout)

    async def resume(
        self, why: str = "", *, by: str | None = None, timeout: float = 10.0
    ) -> Pause | None:
        """Let leaders be elected again; as :meth:`zkelect.Election.resume`."""
        return await asyncio.to_thread(self._operations.resume, why, by=by, timeout=timeout)

    async def paused(self, timeout: float = 10.0) -> Pause | None:
        """Read whether the election is paused, and by whom; None: it is not."""
        return await asyncio.to_thread(self._operations.paused, timeout)

    async def history(self, timeout: float = 10.0) -> tuple[Term | Act, ...]:
        """Read the terms that have ended, and what operators did, oldest first.

        As :meth:`zkelect.Election.history`.
        """
        return await asyncio.to_thread(self._operations.history, timeout)

    async def switchover(
        self, to: str, *, timeout: float = 30.0, why: str = "", by: str | None = None
    ) -> Candidate:
        """Let another candidate lead, and wait until it does.

        As :meth:`zkelect.Election.switchover`; to cancel the task withdraws it.
        """
        stop = threading.Event()
        switch = partial(self._operations.switchover, to, timeout=timeout, why=why, by=by)
        try:
            return await asyncio.to_thread(switch, stop=stop)
        finally:
            stop.set()

    async def evict(
        self,
        who: str,
        *,
        why: str = "",
        by: str | None = None,
        timeout: float = 10.0,
        longest_lease: float | None = None,
        foreign: bool = False,
    ) -> Evicted:
        """Remove a candidate from the queue; as :meth:`zkelect.Election.evict`."""
        evict = partial(self._operations.evict, who, why=why, by=by, timeout=timeout)
        return await asyncio.to_thread(evict, longest_lease=longest_lease, foreign=foreign)
