"""A session for a program on asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from zkelect.errors import InvalidArgument
from zkelect.session.access import Digest, Sasl, Tls
from zkelect.session.connecting import connect
from zkelect.session.session import Session

__all__ = ["AsyncSession", "aconnect"]

_Result = TypeVar("_Result")


class AsyncSession:
    """A session, for any number of elections; made by :func:`aconnect`.

    Also around a :class:`zkelect.Session` that is there already: one process needs one only,
    whether its parts are blocking or on asyncio.

    :ivar session: the session itself. Its threads do the work, so a busy event loop delays
        coroutines, never the lease.
    """

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            raise InvalidArgument("session", session, "a zkelect.Session, from connect()")
        self.session: Final = session

    def __repr__(self) -> str:
        """Show hosts and state, never the session id."""
        return f"<AsyncSession of {self.session!r}>"

    async def __aenter__(self) -> Self:
        """Return the session itself."""
        self.session.ensure_usable()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    @property
    def hosts(self) -> str:
        """The servers, in canonical form."""
        return self.session.hosts

    @property
    def timeout(self) -> float:
        """The smallest session timeout granted so far, seconds."""
        return self.session.timeout

    async def close(self, timeout: float | None = None) -> None:
        """End every leadership of this session, then the session; see :meth:`Session.close`.

        Cancelled, it goes on in the background.
        """
        await asyncio.shield(_in_thread(lambda: self.session.close(timeout)))


def aconnect(
    hosts: str,
    *,
    session_timeout: float = 10.0,
    tick_time: float | None = None,
    auth: Digest | Sasl | None = None,
    tls: Tls | None = None,
    acl: Sequence[str] | None = None,
    hops: int = 1,
    timeout: float = 15.0,
) -> _Connecting:
    """Open a session: ``await`` it, or ``async with`` it to have it closed.

    The arguments are those of :func:`zkelect.connect`; it raises the same. Cancelled, it
    leaves no session behind.
    """
    return _Connecting(
        lambda: connect(
            hosts,
            session_timeout=session_timeout,
            tick_time=tick_time,
            auth=auth,
            tls=tls,
            acl=acl,
            hops=hops,
            timeout=timeout,
        )
    )


class _Connecting:
    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._opened: AsyncSession | None = None

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncSession:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *error: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> AsyncSession:
        return AsyncSession(await _in_thread(self._connect, unwanted=_close))


def _close(session: Session) -> None:
    """Close a session that nobody waits for any more, without blocking anybody."""
    threading.Thread(target=session.close, name="zkelect aio", daemon=True).start()


def _in_thread(
    call: Callable[[], _Result], unwanted: Callable[[_Result], None] = lambda _: None
) -> asyncio.Future[_Result]:
    """Call in a thread of its own: one of the loop's few might be kept busy for long.

    :param unwanted: what becomes of a result for which nobody waits any more.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def settle(result: _Result) -> None:
        if future.done():
            unwanted(result)
        else:
            future.set_result(result)

    def fail(error: BaseException) -> None:
        if not future.done():
            future.set_exception(error)

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001  # whoever awaits it gets it
            _tell(loop, partial(fail, error))
        else:
            if not _tell(loop, partial(settle, result)):
                unwanted(result)

    threading.Thread(target=run, name="zkelect aio", daemon=True).start()
    return future


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> bool:
    """Call in the loop; False when it is closed, so that nobody waits there."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        return False
    return True
