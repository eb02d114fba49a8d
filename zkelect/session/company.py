"""Who else is in the queue: peers of other libraries, and what is no candidate at all."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Final

from zkelect.core.znodes import Dialect, Roll
from zkelect.errors import ForeignCompany

__all__ = ["Company"]

_log: Final = logging.getLogger("zkelect")
_SEQUENTIAL: Final = re.compile(r".*(?:[0-9]{10}|-[0-9]{9})")


class Company:
    """Looks at each roll of one election, and tells once what is odd about it.

    :param strict: refuse to stand among candidates that do not see us, or may be some.
    :param priority: ours.
    """

    def __init__(self, path: str, dialect: Dialect, *, strict: bool, priority: int = 0) -> None:
        self._path = path
        self._dialect = dialect
        self._strict = strict
        self._priority = priority
        self._told: tuple[str, ...] = ()

    def refuse(self, children: Sequence[str]) -> ForeignCompany | None:
        """Return why not to stand here, if there is a reason; warn of it otherwise."""
        roll = self._dialect.read(children)
        others = sorted(roll.dialects - {self._dialect.name})
        unknown = _sequential(roll)
        if self._strict and (others or unknown):
            return ForeignCompany(self._path, self._dialect.name, others, unknown)
        if others:
            self._warn(
                f"{self._path}: candidates of {', '.join(others)} stand in this queue, ours are of "
                f"{self._dialect.name}. We wait for all of them, but {self._seen_by(others)}"
            )
        if roll.strangers:
            self._warn(
                f"{self._path}: {len(roll.strangers)} children are no candidates that we know, and "
                f"are ignored; one of them is {min(roll.strangers)!r}"
            )
        return None

    def weigh(self, children: Sequence[str]) -> None:
        """Warn when our priority is for nothing, because not all could step back for us."""
        foreign = self._dialect.read(children).foreign if self._priority else None
        if foreign is not None:
            self._warn(
                f"{self._path}: priorities are not applied while candidates of other libraries "
                "are in the queue, for those do not step back"
            )

    def _seen_by(self, others: Sequence[str]) -> str:
        """Tell whether they wait for us: WriteLock takes any name with a number behind a dash."""
        if [*others] == ["java"] and self._dialect.infix.endswith("-"):
            return "only a WriteLock of ZooKeeper 3.8 was seen to wait for ours (ZOOKEEPER-2931)"
        return (
            "libraries do not see each other's candidates: one of theirs may lead beside one of "
            "ours. Use one dialect"
        )

    def _warn(self, message: str) -> None:
        if message not in self._told:
            self._told += (message,)
            _log.warning("%s", message)


def _sequential(roll: Roll) -> list[str]:
    """Return the strangers that could be candidates of a library we do not know."""
    return sorted(child for child in roll.strangers if _SEQUENTIAL.fullmatch(child))
