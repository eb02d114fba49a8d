"""The service's side of HTTP, for ASGI: no request of a stale leader reaches the handler."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from zkelect.stores.http_header import HEADER
from zkelect.stores.http_rule import SAFE, Inadmissible, MarkStore, Rule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from zkelect.stores.http_problem import Problem
    from zkelect.token import Token

__all__ = ["AsyncFencingMiddleware"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_NAME: Final = HEADER.lower().encode("ascii")
_WEBSOCKET: Final = "WEBSOCKET"
_POLICY_VIOLATION: Final = 1008  # RFC 6455, 7.4.1
_THREADS: Final = 32


class AsyncFencingMiddleware:
    """Lets an ASGI application see only requests of the present leader.

    ::

        marks = stores.SqliteFence("marks.db", domain="billing")
        app.add_middleware(stores.AsyncFencingMiddleware, mark=marks)

    What is promised and what is not, what ``hold`` does, and what is answered is told at
    :class:`FencingMiddleware`. The handler finds the token in ``scope["zkelect"]["token"]``.

    A blocking store is asked on threads of this object's own, 32 at most, so that many requests
    that wait for the mark take none from the handler that has it. A store of asyncio is awaited.
    When the request is cancelled, so is its handler, and the mark is let go.

    A websocket needs a token at its opening, which is judged as a claim and not held: what comes
    over it later, the handler must judge, by its data's store or by :class:`Receiver`. Refused,
    it is closed before it is accepted. ``safe={*stores.SAFE, "WEBSOCKET"}`` lets it be. Lifespan
    events pass.

    :param app: the application, ASGI 3, on asyncio.
    :param mark: the store that keeps the mark, blocking or of asyncio, that has ``claim``.
    :param hold: hold the mark while handlers of unsafe methods run; needs ``transaction``.
    :param safe: methods that may come without a token.
    :raises InvalidArgument: the store is none, or cannot be held.
    """

    def __init__(
        self,
        app: Application,
        *,
        mark: MarkStore,
        hold: bool = True,
        safe: Collection[str] = SAFE,
    ) -> None:
        self._app, self._rule = app, Rule(mark, hold=hold, safe=safe)
        self._threads = ThreadPoolExecutor(_THREADS, "zkelect-fencing")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the server calls this."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        method = _WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        async with AsyncExitStack() as held:
            try:
                token = self._rule.token(method, _values(scope))
                if token is not None:
                    await self._admit(token, method, held)
            except Inadmissible as refusal:
                await _refuse(refusal.problem, scope, receive, send)
                return
            await self._app({**scope, "zkelect": {"token": token}}, receive, send)

    async def _admit(self, token: Token, method: str, held: AsyncExitStack) -> None:
        mark: Any = self._rule.mark
        with self._rule.judging():
            if self._rule.holds(method) and method != _WEBSOCKET:
                holding = mark.transaction if self._rule.waits else self._transaction
                await held.enter_async_context(holding(token))
            elif self._rule.waits:
                await mark.claim(token)
            else:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._threads, mark.claim, token)

    @asynccontextmanager
    async def _transaction(self, token: Token) -> AsyncIterator[None]:
        """Keep a blocking store's transaction open; it begins and ends on one thread."""
        loop, leave = asyncio.get_running_loop(), threading.Event()
        entered: asyncio.Future[None] = loop.create_future()
        holding = loop.run_in_executor(self._threads, self._hold, token, entered, leave)
        holding.add_done_callback(_take_note)
        try:
            await asyncio.wait({entered, holding}, return_when=asyncio.FIRST_COMPLETED)
            if holding.done():
                holding.result()
            yield
        finally:
            leave.set()
        await asyncio.shield(holding)

    def _hold(self, token: Token, entered: asyncio.Future[None], leave: threading.Event) -> None:
        mark: Any = self._rule.mark
        with mark.transaction(token):
            if not leave.is_set():  # else the request was cancelled, and its loop may be gone
                entered.get_loop().call_soon_threadsafe(entered.set_result, None)
            leave.wait()


def _values(scope: Scope) -> list[bytes]:
    return [value for name, value in scope["headers"] if name.lower() == _NAME]


def _take_note(holding: asyncio.Future[None]) -> None:
    """Look at how it ended, as the one who waited for it may have been cancelled."""
    if not holding.cancelled():
        holding.exception()


async def _refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await _answer(problem, send, kind="http", body=scope["method"] != "HEAD")
        return
    await receive()  # websocket.connect: nothing may be answered before it
    if "websocket.http.response" in scope.get("extensions", ()):
        await _answer(problem, send, kind="websocket.http", body=True)
    else:
        reason = {"code": _POLICY_VIOLATION, "reason": problem.title}
        await send({"type": "websocket.close", **reason})


async def _answer(problem: Problem, send: Send, *, kind: str, body: bool) -> None:
    content = problem.encode()
    headers = [*problem.headers, ("Content-Length", str(len(content)))]
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": f"{kind}.response.start", "status": problem.status, "headers": encoded})
    await send({"type": f"{kind}.response.body", "body": content if body else b""})
