"""What it means that another member's server gives no answer: it may take writes all the same."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from redis.exceptions import AuthenticationError, AuthorizationError, ResponseError

from zkelect.recipes.faults import causes_of, is_ours
from zkelect.recipes.member import Answer

if TYPE_CHECKING:
    from zkelect.recipes.redis.asking import NoAnswer

__all__ = ["answer_of"]

_THERE: Final = (AuthenticationError, AuthorizationError, ResponseError, ssl.SSLError)
_FULL: Final = "max number of clients reached"
"""By its words alone: redis-py makes the same error of it as of a refused connection."""


def answer_of(error: NoAnswer) -> Answer:
    """Tell what a failed question says about writes.

    NO: nobody is there, or what is there does nothing. UNKNOWN: somebody is there who does not let
    us in, or is busy with a script, or renamed its commands; or it was our fault.
    """
    there = any(map(_tells_of_somebody, causes_of(error.error)))
    return Answer.UNKNOWN if there or is_ours(error.error) else Answer.NO


def _tells_of_somebody(error: BaseException) -> bool:
    return isinstance(error, _THERE) or _FULL in str(error)
