"""RedisFence: the log is a list, appended to in the script that compares the mark.

A script is a single request, so it is cut by its connection: that is ended by the server
before the script arrives, or lost with the reply when the script has run.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs
from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import Connection, ConnectionPool
from redis.exceptions import ConnectionError as Cut
from redis.retry import Retry
from servers.redis import RedisServer

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from chaos.traps import Trap
from zkelect.stores import RedisFence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from chaos.stores import Place, Store
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 2.0
_BEFORE, _AFTER = "before the script", "after the script"
_LOG: Final = "log"
_APPEND: Final = "return redis.call('RPUSH', KEYS[1], ARGV[1])"


class _Redis:
    def __init__(self, place: Place) -> None:
        self._url = place.directory / "redis.url"
        self._trap = Trap(place.directory / "redis.trap", (_BEFORE, _AFTER))

    @contextmanager
    def serve(self) -> Iterator[None]:
        with RedisServer() as server:
            self._url.write_text(server.url, "utf-8")
            yield
            self._client.close()

    def claim(self, claimant: Claimant) -> None:
        """A mark that is missing is that of a new run: this server never forgets."""
        self._fence.claim(claimant, initialize=self._fence.status() is None)

    def read(self) -> str:
        latest = self._rows(-1)
        return latest[0].op if latest else ""

    def append(self, claimant: Claimant, row: Row) -> None:
        told = json.dumps(attrs.asdict(attrs.evolve(row, at=boottime())))
        self._fence.script(claimant, _APPEND, [_LOG], [told])

    def log(self) -> Sequence[Row]:
        return self._rows(0)

    def disturb(self) -> AbstractContextManager[None]:
        return self._trap.laid()

    def _rows(self, first: int) -> list[Row]:
        found: Any = self._client.lrange(_LOG, first, -1)
        return [Row(**json.loads(row)) for row in found]

    @cached_property
    def _client(self) -> Redis:
        return Redis.from_url(self._url.read_text("utf-8"), socket_timeout=_TIMEOUT)

    @cached_property
    def _fence(self) -> RedisFence:
        pool = ConnectionPool.from_url(
            self._url.read_text("utf-8"),
            connection_class=_Trapped,
            trap=self._trap,
            socket_timeout=_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )
        return RedisFence(Redis(connection_pool=pool), domain=DOMAIN, timeout=_TIMEOUT)


class _Trapped(Connection):
    """A connection that is lost when it steps on the trap with a script."""

    def __init__(self, *, trap: Trap, **options: Any) -> None:
        super().__init__(**options)
        self._trap = trap
        self._end = ""

    def send_command(self, *words: Any, **options: Any) -> None:
        if words[0] == "EVALSHA":
            self._end = self._trap.spring()
        if self._end == _BEFORE:
            self._have_killed()
        super().send_command(*words, **options)

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        reply = super().read_response(*arguments, **options)
        if self._end == _AFTER:
            self._end = ""
            self.disconnect()
            raise Cut("the connection was lost with the reply")
        return reply

    def _have_killed(self) -> None:
        self._end = ""
        super().send_command("CLIENT", "ID")
        number = super().read_response()
        with Redis(host=self.host, port=self.port) as another:
            another.client_kill_filter(_id=str(number))


def make(place: Place) -> Store:
    """Return the store whose URL is in the run's folder."""
    return _Redis(place)
