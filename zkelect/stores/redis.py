"""A Redis in which only the present leader writes, on redis-py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from redis import Redis
from redis.connection import ConnectionPool
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as NoReply
from redis.retry import Retry

from zkelect.errors import InvalidArgument
from zkelect.stores.fence import valid_timeout
from zkelect.stores.redis_address import FORM, name_of, pool_of
from zkelect.stores.redis_exchange import Exchange
from zkelect.stores.redis_script import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redis.connection import ConnectionInterface

    from zkelect.stores.fence import Claimant
    from zkelect.stores.mark import Mark
    from zkelect.stores.redis_exchange import Call, Key, Talk, Value

    T = TypeVar("T")

__all__ = ["RedisFence"]


class RedisFence:
    """A Redis in which only the present leader writes: one round trip for each write.

    Promises: the mark is compared inside the script that writes, and Redis runs a script alone,
    so a refused leader writes nothing, and no write of an older token follows a claim on that
    server. Redis can forget what it has confirmed, and this is told, FenceStateLost, to every
    leader until one claims with ``initialize=True``: a mark that is gone (FLUSHALL, a restart
    without a disk), a restarted server, whatever it has kept, a replica that was promoted, also
    one that was the primary before. For that, ``run_id`` and ``master_replid`` are kept with the
    mark, and every script compares the latter.

    Does not promise: that what it confirmed is kept. Replication is asynchronous; a fail-over
    loses the last writes, also those of the rightful leader, and so does a power cut unless
    ``appendfsync always`` is set. A primary that was cut off and does not know it accepts its old
    leader's writes until it is demoted, and loses them then; ``min-replicas-to-write`` makes that
    time short. Writes that go round this class are not guarded. A process that was demoted,
    promoted again, and then for ``repl-backlog-ttl`` (an hour) had no replica, while nobody
    claimed, is taken for one that never was demoted.

    Isolation: serializable, each call by itself. Redis rolls nothing back: what a script of yours
    wrote before its error stays. Any thread may use it, also after a fork.

    Cost: a write is one EVALSHA, one round trip; a claim is two. A write of unknown outcome is
    never sent again by itself.

    In a Cluster the keys of a call must be in the mark's slot: they have the hash tag
    ``{domain}``, as :meth:`key` makes it. The client is that of the node which serves the slot.

    :param server: ``redis://host:port/0``, ``rediss://…`` (TLS) or ``unix:///socket?db=0``, with
        the options that redis-py has; or a ``redis.Redis``, which stays yours: its pool lends the
        connections, and connects by its own timeouts and retries.
    :param domain: which election guards it: 1 to 255 printable characters. Several domains may
        share a database, each with its own mark, in ``zkelect:{domain}``.
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
        options = self._pool.connection_kwargs
        bound = options.get("socket_timeout")
        self._bound = math.inf if bound is None else bound
        self._exchange = Exchange(store=name_of(options), domain=domain)

    def close(self) -> None:
        """Close the connections that a URL opened; those of a client are its owner's."""
        if self._owned:
            self._pool.disconnect()

    def key(self, name: str) -> str:
        """Return ``{domain}:name``, a key in the mark's slot, for who has a Cluster, or may."""
        return self._exchange.key(name)

    def claim(self, claimant: Claimant, *, initialize: bool = False) -> None:
        """Raise the mark to the claimant's token: once per term, before its first read.

        Idempotent: a claim of unknown outcome is made again with the same token.

        :param initialize: you have looked at the data: begin, where there is no mark or where it
            was made before a restart or a fail-over. Needed once for a new domain.
        :raises Lost: the lease was over or suspended; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no. UnfitStore: a replica,
            Redis before 6, or an eviction policy that may take the mark.
        :raises RequestFailed: no server, no reply, or an error; it is the ``__cause__``.
        """
        self._hold(self._exchange.claim(claimant, initialize=initialize))

    def status(self) -> Mark | None:
        """Return the mark, or None if there is none; also from a replica.

        :raises RequestFailed: no server, no reply, or an error; it is the ``__cause__``.
        """
        return self._hold(self._exchange.status())

    def set(
        self, claimant: Claimant, key: Key, value: Value, *, expire: float | None = None
    ) -> None:
        """Set a key; raises as :meth:`script` does.

        :param expire: seconds until it is gone, at least 0.001; None: it stays.
        """
        self._hold(self._exchange.set(claimant, key, value, expire=expire))

    def delete(self, claimant: Claimant, *keys: Key) -> int:
        """Delete keys and return how many there were; raises as :meth:`script` does."""
        return self._hold(self._exchange.delete(claimant, keys))

    def hset(self, claimant: Claimant, key: Key, fields: Mapping[Key, Value]) -> int:
        """Set fields of a hash and return how many are new; raises as :meth:`script` does."""
        return self._hold(self._exchange.hset(claimant, key, fields))

    def incr(self, claimant: Claimant, key: Key, amount: int = 1) -> int:
        """Add to a number and return it; raises as :meth:`script` does."""
        number: int = self._hold(self._exchange.command(claimant, key, "INCRBY", amount))
        return number

    def script(
        self,
        claimant: Claimant,
        lua: str,
        keys: Sequence[Key] = (),
        arguments: Sequence[Value] = (),
    ) -> Any:
        """Run Lua of yours, in one step with the comparison, and return what it returns.

        With a bare token, its first write makes the claim.

        :param lua: as EVAL takes it, without a ``#!`` line: it has KEYS and ARGV.
        :param keys: every key that it touches. :param arguments: at most 4000.
        :raises Lost: the lease was over or suspended; nothing was sent.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no; nothing was written.
        :raises InvalidArgument: a key in another slot, or a value that Redis cannot take.
        :raises RequestFailed: no server, no reply, or an error of the server; nothing is known of
            a write without reply: look, before it is made again.
        :raises redis.exceptions.ResponseError: the script's own error, such as WRONGTYPE.
        """
        write = self._exchange.write(claimant, guarded(lua), tuple(keys), tuple(arguments))
        return self._hold(write)

    def _hold(self, talk: Talk[T]) -> T:
        """Hold a conversation to its end."""
        try:
            call = next(talk)
            while True:
                try:
                    reply = self._ask(call)
                except ResponseError as error:
                    call = talk.throw(error)
                else:
                    call = talk.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result

    def _ask(self, call: Call) -> Any:
        try:
            connection = self._pool.get_connection()
        except RedisError as error:
            raise self._exchange.unsent(call, error) from error
        try:
            return self._reply(connection, call)
        finally:
            self._pool.release(connection)

    def _reply(self, connection: ConnectionInterface, call: Call) -> Any:
        """Send, and wait for the reply; a connection without it is no use to anybody."""
        seconds = call.patience(self._timeout)
        try:
            connection.send_command(*call.words)
            if seconds < self._bound and not connection.can_read(timeout=seconds):
                raise NoReply(f"waited {seconds:g} s")
            return connection.read_response()
        except ResponseError:
            raise
        except RedisError as error:
            connection.disconnect()
            raise self._exchange.unanswered(call, error) from error
        except BaseException:
            connection.disconnect()
            raise
