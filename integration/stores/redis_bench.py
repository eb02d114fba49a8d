"""The benches of Redis, and a leader whose write waits between its check and its write."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from stores.benches import token_of

from zkelect.stores import Mark
from zkelect.stores.async_redis import AsyncRedisFence
from zkelect.stores.redis import RedisFence
from zkelect.stores.redis_server import Server
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from servers.redis import RedisServer

    from zkelect.stores.fence import Claimant
    from zkelect.stores.redis_exchange import Call

__all__ = ["APPEND", "AsyncRedisBench", "Loop", "RedisBench"]

LOG = "log"
APPEND = "return redis.call('RPUSH', KEYS[1], ARGV[1])"
"""Append to the log: the log's order is the order of the writes."""
INFO = "return redis.call('INFO', 'server') .. redis.call('INFO', 'replication')"


def line_of(claimant: Claimant, entry: str) -> str:
    return f"{token_of(claimant)} {entry}"


class RedisBench:
    """One server; the bench is also the operator, who knows which domains are new.

    A missing mark may be a lost one, so that a domain's first claim must say that it begins.
    The bench says so until one claim has passed, and never again.
    """

    volatile = True

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self._begun: set[str] = set()
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> Begun:
        fence = RedisFence(self.server.url, domain=domain, timeout=timeout)
        self._opened.callback(fence.close)
        return Begun(fence, domain, self._begun)

    def write(self, fence: Begun, claimant: Claimant, entry: str) -> None:
        fence.begin(claimant)
        fence.fence.script(claimant, APPEND, [LOG], [line_of(claimant, entry)])

    def hold(self, fence: Begun, checked: threading.Event, released: threading.Event) -> None:
        """Let each of this fence's writes wait, between the check here and the request."""
        ask = fence.fence._ask

        def ask_late(call: Call) -> Any:
            checked.set()
            released.wait()
            return ask(call)

        fence.fence._ask = ask_late

    def log(self) -> list[tuple[Token, str]]:
        lines = [line.partition(" ") for line in self.server.ask("LRANGE", LOG, "0", "-1")]
        return [(Token.parse(token), entry) for token, _, entry in lines]

    def restore(self, mark: Token | None) -> None:
        """Put the mark back on the same server, which an administrator can do with RESTORE."""
        if mark is None:
            self.server.ask("DEL", "zkelect:{d}")
            return
        told = self.server.ask("EVAL", INFO, "0")
        restored = Mark(token=mark, origin=Server.parse(told).origin)
        self.server.ask("SET", "zkelect:{d}", str(restored))


class Begun:
    """A fence whose operator says, once for each domain, that it begins."""

    def __init__(self, fence: Any, domain: str, begun: set[str]) -> None:
        self.fence, self._domain, self._begun = fence, domain, begun

    def claim(self, claimant: Claimant) -> None:
        self.fence.claim(claimant, initialize=self._domain not in self._begun)
        self._begun.add(self._domain)

    def begin(self, claimant: Claimant) -> None:
        """Make the first claim of a new domain; a bare token's write cannot say so."""
        if isinstance(claimant, Token) and self._domain not in self._begun:
            self.claim(claimant)

    def status(self) -> Mark | None:
        mark: Mark | None = self.fence.status()
        return mark


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An asyncio fence that any thread may use: its work is done on one loop."""

    def __init__(self, fence: AsyncRedisFence, loop: Loop) -> None:
        self.fence: Any = fence
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.fence, name)
        return lambda *words, **options: self._loop.run(method(*words, **options))


class AsyncRedisBench(RedisBench):
    def __init__(self, server: RedisServer) -> None:
        super().__init__(server)
        self._loop = Loop()
        self._opened.callback(self._loop.close)

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> Begun:
        fence = AsyncRedisFence(self.server.url, domain=domain, timeout=timeout)
        self._opened.callback(lambda: self._loop.run(fence.aclose()))
        return Begun(Blocking(fence, self._loop), domain, self._begun)

    def hold(self, fence: Begun, checked: threading.Event, released: threading.Event) -> None:
        slow = fence.fence.fence
        ask = slow._ask

        async def ask_late(call: Call) -> Any:
            checked.set()
            await asyncio.to_thread(released.wait)
            return await ask(call)

        slow._ask = ask_late
