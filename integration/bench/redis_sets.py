"""What the fence adds to a SET of Redis, through the same client."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import redis.asyncio
from servers.redis import RedisServer

import zkelect
from bench.samples import Row, Samples
from bench.standing import TICK, TIMEOUT
from zkelect.stores.async_redis import AsyncRedisFence
from zkelect.stores.redis import RedisFence
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

__all__ = ["rows"]

_WRITES: Final = 3000
_TURN: Final = 50
"""So many of one kind, then as many of the other: what slows the server slows both."""
_VALUE: Final = b"x" * 100

Pairs = list[tuple[float, float]]


def rows(rounds: int) -> Iterator[Row]:
    """Time a guarded SET beside redis-py's own, blocking and asyncio."""
    with (
        RedisServer() as server,
        LocalEnsemble(tick_time=TICK) as zookeeper,
        zkelect.connect(zookeeper.hosts, session_timeout=TIMEOUT, tick_time=TICK) as session,
        zkelect.Election(session, "/bench/redis").campaign() as leadership,
    ):
        yield _row("SET", _blocking(server, leadership, rounds))
        yield _row("SET, asyncio", asyncio.run(_on_a_loop(server, leadership, rounds)))


def _row(what: str, times: Pairs) -> Row:
    return Row(
        figure=f"Redis {what}, guarded",
        ours=Samples(tuple(ours for ours, _ in times)),
        unit="us",
        beside=Samples(tuple(theirs for _, theirs in times)),
        beside_what="redis-py's",
        target="1.25 x",
    )


def _blocking(server: RedisServer, leadership: zkelect.Leadership, rounds: int) -> Pairs:
    with server.client() as client:
        fence = RedisFence(client, domain="bench")
        fence.claim(leadership, initialize=True)

        def guarded() -> None:
            fence.set(leadership, "guarded", _VALUE)

        def plain() -> None:
            client.set("plain", _VALUE)

        _time(guarded, plain)  # both know their way now
        return [_time(guarded, plain) for _ in range(rounds)]


def _time(*writes: Callable[[], None]) -> tuple[float, float]:
    """Return the mean time of each, in microseconds, done in turns."""
    totals = [0.0] * len(writes)
    for _ in range(_WRITES // _TURN):
        for which, write in enumerate(writes):
            began = time.perf_counter()
            for _ in range(_TURN):
                write()
            totals[which] += time.perf_counter() - began
    ours, theirs = (total / _WRITES * 1e6 for total in totals)
    return ours, theirs


async def _on_a_loop(server: RedisServer, leadership: zkelect.Leadership, rounds: int) -> Pairs:
    async with redis.asyncio.Redis(port=server.port) as client:
        fence = AsyncRedisFence(client, domain="bench")
        await fence.claim(leadership)

        async def guarded() -> None:
            await fence.set(leadership, "guarded", _VALUE)

        async def plain() -> None:
            await client.set("plain", _VALUE)

        await _time_awaiting(guarded, plain)
        return [await _time_awaiting(guarded, plain) for _ in range(rounds)]


async def _time_awaiting(*writes: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    totals = [0.0] * len(writes)
    for _ in range(_WRITES // _TURN):
        for which, write in enumerate(writes):
            began = time.perf_counter()
            for _ in range(_TURN):
                await write()
            totals[which] += time.perf_counter() - began
    ours, theirs = (total / _WRITES * 1e6 for total in totals)
    return ours, theirs
