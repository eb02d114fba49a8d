"""The held fact of leading, for coroutines."""

from __future__ import annotations

import asyncio
from typing import Final

from zkelect.core.events import Reason
from zkelect.session.leadership import Leadership
from zkelect.token import Token

__all__ = ["AsyncLeadership"]


class AsyncLeadership:
    """One term of one leader. Hand it on explicitly; it never becomes another term's.

    All but :meth:`lost` is local and immediate, as in :class:`zkelect.Leadership`. Guarded
    stores take it, blocking and asynchronous ones.

    :ivar leadership: the same term for blocking code.
    """

    __slots__ = ("_over", "leadership")

    def __init__(self, leadership: Leadership) -> None:
        self.leadership: Final = leadership
        self._over = asyncio.Event()

    def __repr__(self) -> str:
        """Show path, token and how it stands."""
        return f"<Async{repr(self.leadership)[1:]}"

    @property
    def token(self) -> Token:
        """The fencing token, for guarded stores."""
        return self.leadership.token

    @property
    def path(self) -> str:
        """The election."""
        return self.leadership.path

    @property
    def name(self) -> str:
        """Our name in it."""
        return self.leadership.name

    @property
    def zxid(self) -> int:
        """The ensemble's latest zxid as this session was told."""
        return self.leadership.zxid

    @property
    def deadline(self) -> float:
        """Boot-clock instant before which no successor can have been elected."""
        return self.leadership.deadline

    @property
    def reason(self) -> Reason | None:
        """Why it ended, None while it lasts."""
        return self.leadership.reason

    def check(self) -> Token:
        """Return the token if this very moment is proven ours; see :meth:`Leadership.check`.

        :raises LeadershipLost: it is over, for good.
        :raises LeadershipSuspended: ``on_suspended="pause-at-once"``, and the link is down.
        """
        return self.leadership.check()

    def remaining(self) -> float:
        """Return the seconds of lease left, 0.0 when there is none."""
        return self.leadership.remaining()

    def progress(self) -> None:
        """Say that the body is alive; with ``stall_timeout`` silence ends the term."""
        self.leadership.progress()

    def end(self, reason: str) -> None:
        """End this term now, because a guarded store refused it or it cannot go on."""
        self.leadership.end(reason)

    async def lost(self) -> Reason:
        """Wait until it is over, and return why."""
        while (reason := self.reason) is None:
            await self._over.wait()
        return reason

    def tell_over(self) -> None:
        """Wake who waits: the library's side, in the event loop."""
        self._over.set()
