"""Who leads, for clients of the leader: a cache of stated age, and one second look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from zkelect.core.znodes import Dialect
from zkelect.errors import InvalidArgument, NobodyLeads, Refused
from zkelect.session.functions import check_blocking
from zkelect.session.limits import check_timeout
from zkelect.session.roll import Candidate, read_leader
from zkelect.session.session import Session

__all__ = ["AGAIN", "CALL", "Lookup", "check_again"]

_Result = TypeVar("_Result")

AGAIN: Final[tuple[type[Exception], ...]] = (ConnectionError, TimeoutError, Refused)
"""What a deposed leader answers, or who is gone: reasons to look who leads now."""


CALL: Final = "a function of the leader's Candidate"


def check_again(again: object) -> None:
    """Refuse what ``except`` could not take: it would say so only when the call fails."""
    kinds = again if isinstance(again, tuple) else (again,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise InvalidArgument("again", again, "an exception class, or a tuple of some")


class Lookup:
    """Reads who leads an election, and remembers the last answer."""

    def __init__(self, session: Session, path: str, dialect: Dialect) -> None:
        self._session = session
        self._path = path
        self._dialect = dialect
        self._last: tuple[float, Candidate | None] | None = None

    def leader(self, timeout: float, max_age: float) -> Candidate | None:
        """Return who leads, as it was at most ``max_age`` seconds ago."""
        check_timeout(max_age, "max_age", endless=False)
        last, asked = self._last, self._session.now()
        if last is not None and asked - last[0] < max_age:
            return last[1]
        found = read_leader(self._session, self._path, self._dialect, timeout)
        self._last = (asked, found)
        return found

    def resolve(
        self,
        call: Callable[[Candidate], _Result],
        *,
        max_age: float,
        timeout: float,
        again: type[Exception] | tuple[type[Exception], ...],
    ) -> _Result:
        """Call the leader; if that fails as a deposed one does, look once more and call again.

        The second call is made only when somebody else leads by then: the same leader would
        answer the same, and may have done what was asked.
        """
        check_blocking("call", call, CALL)
        check_again(again)
        first = self.present(timeout, max_age)
        try:
            return call(first)
        except again:
            second = self.present(timeout, 0.0)
            if second.is_same_term(first):
                raise
        return call(second)

    def present(self, timeout: float, max_age: float) -> Candidate:
        """Return who leads.

        :raises NobodyLeads: nobody does.
        """
        leader = self.leader(timeout, max_age)
        if leader is None:
            leader = self.leader(timeout, 0.0)  # the cache may say so of an election just held
        if leader is None:
            raise NobodyLeads(self._path)
        return leader
