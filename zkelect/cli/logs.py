"""What the library logs, shown on standard error: data have standard output for themselves."""

from __future__ import annotations

import logging
from typing import Final

from zkelect.cli.escaping import printable

__all__ = ["log_to_stderr"]

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


def log_to_stderr(verbose: int) -> None:
    """Show warnings, more when asked to; kazoo's own only when everything is wanted.

    :param verbose: how often ``-v`` was given, 0 or more.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("zkelect: %(message)s" if verbose < len(_LEVELS) - 1 else _LONG))
    level = _LEVELS[min(verbose, len(_LEVELS) - 1)]
    _set("zkelect", level, handler)
    _set("kazoo", level if level == logging.DEBUG else logging.CRITICAL, handler)


_LONG: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


class _Lines(logging.Formatter):
    """One line for each record: names of candidates are in them."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record))


def _set(name: str, level: int, handler: logging.Handler) -> None:
    logger = logging.getLogger(name)
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
