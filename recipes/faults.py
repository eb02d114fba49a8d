"""Faults of this host: who meets one has learned nothing of the server that it could not ask."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import Final

__all__ = ["causes_of", "is_ours"]

_OURS: Final = (
    *(errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL),
    *(socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_MEMORY, socket.EAI_SYSTEM),
)
"""We had no means to ask; or nobody could tell the address, which is not that there is none."""


def is_ours(error: BaseException) -> bool:
    """Tell whether an error, or one that it came of, is a fault of this host."""
    return any(isinstance(each, OSError) and each.errno in _OURS for each in causes_of(error))


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and what it came of; some drivers keep that only as the context."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
