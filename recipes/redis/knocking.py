"""What it means that another member's server gives no answer: it may take writes all the same."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING, Final

from redis.exceptions import AuthenticationError, AuthorizationError, ResponseError

from zkelect.recipes.member import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.recipes.redis.asking import NoAnswer

__all__ = ["answer_of"]

_THERE: Final = (AuthenticationError, AuthorizationError, ResponseError, ssl.SSLError)
_FULL: Final = "max number of clients reached"
"""By its words alone: redis-py makes the same error of it as of a refused connection."""
_OURS: Final = (
    *(errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL),
    *(socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_MEMORY, socket.EAI_SYSTEM),
)
"""We had no means to ask; or nobody could tell the address, which is not that there is none."""


def answer_of(error: NoAnswer) -> Answer:
    """Tell what a failed question says about writes.

    NO: nobody is there, or what is there does nothing. UNKNOWN: somebody is there who does not let
    us in, or is busy with a script, or renamed its commands; or it was our fault.
    """
    return Answer.UNKNOWN if any(map(_leaves_it_open, _causes(error.error))) else Answer.NO


def _leaves_it_open(error: BaseException) -> bool:
    if isinstance(error, _THERE) or _FULL in str(error):
        return True
    return isinstance(error, OSError) and error.errno in _OURS


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and what it came of: redis-py keeps that only as the context."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
