"""The guarded Redis for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as NoReply

from zkelect.errors import InvalidArgument
from zkelect.stores.fence import valid_timeout
from zkelect.stores.redis_address import FORM, name_of, pool_of
from zkelect.stores.redis_exchange import Exchange
from zkelect.stores.redis_script import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redis.asyncio.connection import AbstractConnection

    from zkelect.stores.fence import Claimant
    from zkelect.stores.mark import Mark
    from zkelect.stores.redis_exchange import Call, Key, Talk, Value

    T = TypeVar("T")

__all__ = ["AsyncRedisFence"]


class AsyncRedisFence:
    """A Redis in which only the present leader writes, for asyncio.

    Promises, costs and limits are those of :class:`~zkelect.stores.redis.RedisFence`, and so are
    the arguments and errors of each method. It belongs to one event loop. A call that is cancelled
    while it waits for its reply may or may not have been done.

    :param server: a URL, or a ``redis.asyncio.Redis``, which stays yours.
    :param domain: which election guards it: 1 to 255 printable characters.
    :param timeout: seconds to wait for a reply, more than 0, or the lease left if that is less.
    :raises InvalidArgument: an argument is outside its range; nothing was opened.
    """

    def __init__(self, server: str | Redis, *, domain: str, timeout: float = 5.0) -> None:
        self._timeout = valid_timeout(timeout)
        self._owned = isinstance(server, str)
        if isinstance(server, str):
            self._pool = pool_of(ConnectionPool, server, Retry, self._timeout)
        elif isinstance(server, Redis):
            self._pool = server.connection_pool
        else:
            raise InvalidArgument("server", server, FORM)
        self._exchange = Exchange(store=name_of(self._pool.connection_kwargs), domain=domain)

    async def aclose(self) -> None:
        """Close the connections that a URL opened; those of a client are its owner's."""
        if self._owned:
            await self._pool.disconnect()

    def key(self, name: str) -> str:
        """Return ``{domain}:name``, a key in the mark's slot, for who has a Cluster, or may."""
        return self._exchange.key(name)

    async def claim(self, claimant: Claimant, *, initialize: bool = False) -> None:
        """Raise the mark to the claimant's token: once per term, before its first read."""
        await self._hold(self._exchange.claim(claimant, initialize=initialize))

    async def status(self) -> Mark | None:
        """Return the mark, or None if there is none; also from a replica."""
        return await self._hold(self._exchange.status())

    async def set(
        self, claimant: Claimant, key: Key, value: Value, *, expire: float | None = None
    ) -> None:
        """Set a key; it is gone after ``expire`` seconds, None: it stays."""
        await self._hold(self._exchange.set(claimant, key, value, expire=expire))

    async def delete(self, claimant: Claimant, *keys: Key) -> int:
        """Delete keys and return how many there were."""
        return await self._hold(self._exchange.delete(claimant, keys))

    async def hset(self, claimant: Claimant, key: Key, fields: Mapping[Key, Value]) -> int:
        """Set fields of a hash and return how many are new."""
        return await self._hold(self._exchange.hset(claimant, key, fields))

    async def incr(self, claimant: Claimant, key: Key, amount: int = 1) -> int:
        """Add to a number and return it."""
        number: int = await self._hold(self._exchange.command(claimant, key, "INCRBY", amount))
        return number

    async def script(
        self,
        claimant: Claimant,
        lua: str,
        keys: Sequence[Key] = (),
        arguments: Sequence[Value] = (),
    ) -> Any:
        """Run Lua of yours, in one step with the comparison, and return what it returns."""
        write = self._exchange.write(claimant, guarded(lua), tuple(keys), tuple(arguments))
        return await self._hold(write)

    async def _hold(self, talk: Talk[T]) -> T:
        """Hold a conversation to its end."""
        try:
            call = next(talk)
            while True:
                try:
                    reply = await self._ask(call)
                except ResponseError as error:
                    call = talk.throw(error)
                else:
                    call = talk.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _ask(self, call: Call) -> Any:
        try:
            connection = await self._pool.get_connection()
        except RedisError as error:
            raise self._exchange.unsent(call, error) from error
        try:
            return await self._reply(connection, call)
        finally:
            await self._pool.release(connection)

    async def _reply(self, connection: AbstractConnection, call: Call) -> Any:
        """Send, and wait for the reply; a connection without it is no use to anybody.

        Of a call that is cancelled, redis-py drops the connection.
        """
        seconds = call.patience(self._timeout)
        try:
            await connection.send_command(*call.words)
            reply = await connection.read_response(timeout=seconds)
            if reply is None:  # how redis-py tells it, and leaves the reply to whoever asks next
                raise NoReply(f"waited {seconds:g} s")
            return reply
        except ResponseError:
            raise
        except RedisError as error:
            await connection.disconnect(nowait=True)
            raise self._exchange.unanswered(call, error) from error
