"""Asking a server: a connection that waits no longer than a deadline, and asks once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from zkelect import ZkelectError
from zkelect.recipes.deadlines import left
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NoAnswer", "connect", "once"]

_LONGEST: Final = 3.0


class NoAnswer(ZkelectError, NotNow):
    """The server did not answer, or answered with an error; redis-py's is the ``__cause__``.

    :ivar error: that one.
    """

    def __init__(self, error: RedisError) -> None:
        self.error = error
        super().__init__(" ".join(str(error).split()) or type(error).__name__)


def once(deadline: float) -> dict[str, Any]:
    """Return the options of a client that waits so long for each reply, and repeats nothing.

    :raises NotNow: the deadline is over.
    """
    seconds = min(left(deadline), _LONGEST)
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,  # with 3 redis-py asks more than we need, at each connection
    }


@contextmanager
def connect(url: str, deadline: float) -> Iterator[Redis]:
    """Lend a client with text replies.

    :raises NoAnswer: also when a command in the block fails.
    """
    try:
        with Redis.from_url(url, decode_responses=True, **once(deadline)) as client:
            yield client
    except RedisError as error:
        raise NoAnswer(error) from error
