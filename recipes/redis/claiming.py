"""The first write of a new primary, through the lock that holds everybody else.

The script that writes the mark is sent between two CONFIG SET in one transaction. Redis runs a
transaction alone, so nobody else's write gets through.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from redis import Connection, ConnectionPool, Redis
from redis.connection import SSLConnection

from zkelect import stores
from zkelect.recipes.redis.asking import once
from zkelect.recipes.redis.gate import CLOSED, LOCK

if TYPE_CHECKING:
    from zkelect import Leadership

__all__ = ["claim"]

_SCRIPTS: Final = ("EVAL", "EVALSHA")
_BEFORE: Final = (("MULTI",), ("CONFIG", "SET", LOCK, "0"))
_AFTER: Final = (("CONFIG", "SET", LOCK, CLOSED), ("EXEC",))
_QUEUED: Final = len(_BEFORE) + 2  # replies before the one of EXEC
_SCRIPT: Final = 1  # which one of the replies in that is the script's


class _Exempt:
    """A connection whose scripts pass the lock; anything else goes as it is."""

    _within = False

    def send_command(self, *words: Any, **options: Any) -> None:
        self._within = words[0] in _SCRIPTS
        commands = (*_BEFORE, words, *_AFTER) if self._within else (words,)
        for command in commands:
            super().send_command(*command, **options)  # type: ignore[misc]  # the connection's

    def read_response(self, *args: Any, **options: Any) -> Any:
        read = super().read_response  # type: ignore[misc]  # the connection's
        if not self._within:
            return read(*args, **options)
        self._within = False
        for _ in range(_QUEUED):
            read(*args, **options)
        reply = read(*args, **options)[_SCRIPT]
        if isinstance(reply, Exception):
            raise reply
        return reply


class _Plain(_Exempt, Connection):
    pass


class _Encrypted(_Exempt, SSLConnection):
    pass


def claim(url: str, domain: str, leadership: Leadership) -> None:
    """Write the leadership's token into the fence; nothing was written on this branch before.

    A new branch has nobody's mark to go on with, and RedisFence keeps ``run_id`` with the mark, so
    every promotion begins it anew, ``initialize``; the engine has chosen the server, and
    compared positions before.

    :raises zkelect.Refused: somebody newer has claimed.
    """
    kind = _Encrypted if url.startswith("rediss:") else _Plain
    with (
        closing(
            ConnectionPool.from_url(url, connection_class=kind, **once(leadership.deadline))
        ) as pool,
        Redis(connection_pool=pool) as client,
    ):
        stores.RedisFence(client, domain=domain).claim(leadership, initialize=True)
