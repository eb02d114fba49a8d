"""Where a guarded Redis is: a URL, checked before anything is opened, and its name in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from redis.backoff import NoBackoff

from zkelect.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio.connection import ConnectionPool as AsyncConnectionPool
    from redis.connection import ConnectionPool

    P = TypeVar("P", ConnectionPool, AsyncConnectionPool)

__all__ = ["FORM", "name_of", "pool_of"]

FORM: Final = (
    "a client of redis-py, or redis://host:port/0, rediss://host:port/0 or unix:///socket?db=0, "
    "with options that redis-py knows"
)
_SCHEMES: Final = frozenset({"redis", "rediss", "unix"})


def pool_of(kind: type[P], url: str, retry: type[Any], timeout: float) -> P:
    """Make a pool for this URL; connects to nothing.

    Nothing is sent twice by itself: the first may have been done. The URL's own options win.

    :raises InvalidArgument: the URL is none of Redis; its password is not told.
    """
    _check_url(url)
    try:
        pool = kind.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=retry(NoBackoff(), 0),
        )
        pool.connection_class(**pool.connection_kwargs)  # an option unknown to it is told here
    except (TypeError, ValueError) as error:
        raise InvalidArgument("server", _redacted(url), FORM) from error
    return pool


def name_of(options: Mapping[str, Any]) -> str:
    """Name a server by what its pool gives each connection, without its secrets."""
    if "path" in options:
        return f"redis:unix:{options['path']}/{options.get('db', 0)}"
    if "host" not in options:  # redis-py asks a Sentinel, at each connection
        return "redis"
    return f"redis:{options['host']}:{options.get('port', 6379)}/{options.get('db', 0)}"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in _SCHEMES and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise InvalidArgument("server", _redacted(url), FORM) from error
    # redis-py takes a database that is no number for number 0.
    database = parts.path.strip("/")
    if not valid or (parts.scheme != "unix" and database and not database.isdecimal()):
        raise InvalidArgument("server", _redacted(url), FORM)


def _redacted(url: str) -> str:
    """Return what of a URL may be shown; of an ambiguous one nothing but its scheme.

    A ``?`` may stand in a password that should have been quoted, an ``@`` in one of the query.
    """
    scheme, separator, rest = url.partition("://")
    before, _, query = rest.partition("?")
    where = "..." if "@" in query else before.rpartition("@")[2]
    return f"{scheme}{separator}{where}" if separator else where
