"""What kazoo says, passed on with care: no secrets, and no alarm at what we did ourselves."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

__all__ = ["KazooLog"]


class KazooLog(logging.LoggerAdapter[logging.Logger]):
    """What one kazoo client logs to, in front of its usual ``kazoo.client``.

    :param expected: whether the connection was dropped on purpose; then what kazoo says
        of it is no warning.
    """

    def __init__(self, expected: Callable[[], bool]) -> None:
        super().__init__(logging.getLogger("kazoo.client"), {})
        self._expected = expected

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log, unless kazoo shows session passwords on that level (below DEBUG)."""
        if level < logging.DEBUG:
            return
        if level == logging.WARNING and self._expected():
            level = logging.DEBUG
        super().log(level, msg, *map(_without_secret, args), **kwargs)


def _without_secret(argument: object) -> object:
    """kazoo logs the requests it sends at DEBUG, credentials and all."""
    scheme = getattr(argument, "scheme", None)
    secret = any(hasattr(argument, name) for name in ("auth", "challenge", "passwd"))
    return f"{type(argument).__name__}(scheme={scheme!r})" if secret else argument
