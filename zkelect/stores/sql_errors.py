"""How a database's errors are told: translated once, here, from the driver's own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from zkelect.errors import InvalidArgument, Lost, RequestFailed, StoreBusy, UnfitStore
from zkelect.stores.fence import present
from zkelect.stores.sql_backend import Fault, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from zkelect.errors import Refused
    from zkelect.stores.fence import Claimant, Gate
    from zkelect.stores.sql_backend import Backend

__all__ = ["Translator"]

_AGAIN: Final = (
    "zkelect: a serialization failure or a deadlock. Nothing was written; run the whole "
    "transaction again, as SqlFence.run does"
)
_NOTES: Final = {
    Fault.CONFLICT: _AGAIN,
    Fault.BUSY: "zkelect: in a guarded transaction a lock is waited for no longer than the fence's "
    "timeout, the lease that was left when it began, or the server's own limit",
    Fault.OVERTIME: "zkelect: in a guarded transaction no statement may take longer than the "
    "lease that was left when it began",
}


class Translator:
    """Translates for one store. :param kind: the class of its backend."""

    def __init__(self, gate: Gate, kind: type[Backend]) -> None:
        self._gate, self._kind = gate, kind

    def is_conflict(self, error: DBAPIError) -> bool:
        """Whether the whole transaction is to be run again."""
        return self._kind.fault(error) is Fault.CONFLICT

    @contextmanager
    def connecting(self, claimant: Claimant | None) -> Iterator[None]:
        """Tell why no connection could be had: no server answers, or the pool is used up.

        :raises UnfitStore: what answers cannot have transactions. :raises RequestFailed: else.
        """
        try:
            yield
        except DBAPIError as error:
            words = _on_one_line(error.orig)
            if self._kind.fault(error) is Fault.UNFIT:
                raise self._refusal(UnfitStore, claimant, words) from error
            raise RequestFailed(self._gate.store, "connect", words) from error
        except SQLAlchemyError as error:
            raise RequestFailed(self._gate.store, "connect", _on_one_line(error)) from error

    @contextmanager
    def requesting(
        self, request: str, claimant: Claimant | None, waited: float, holders: Callable[[], str]
    ) -> Iterator[None]:
        """Tell what the fence's own statements raise; a conflict is left to be tried again.

        :param waited: at most so many seconds, for a lock. :param holders: asked who has it.
        :raises StoreBusy: somebody has it. :raises UnfitStore: the setup does not allow this.
        :raises RequestFailed: anything else, a lost connection too.
        """
        try:
            yield
        except Unfit as unfit:
            raise self._refusal(UnfitStore, claimant, str(unfit)) from unfit
        except InvalidArgument as error:
            raise RequestFailed(self._gate.store, "reading the mark", str(error)) from error
        except DBAPIError as error:
            match self._kind.fault(error):
                case Fault.CONFLICT:
                    error.add_note(_AGAIN)
                    raise
                case Fault.BUSY | Fault.OVERTIME:
                    who = holders() or "a transaction that could not be told"
                    detail = f"{request} waited {waited:g} s for {who}"
                    raise self._refusal(StoreBusy, claimant, detail) from error
                case Fault.UNFIT:
                    reason = self._kind.reason(error)
                    raise self._refusal(UnfitStore, claimant, reason) from error
                case _:
                    reason = self._kind.reason(error)
                    raise RequestFailed(self._gate.store, request, reason) from error

    @contextmanager
    def lent(self, connection: Connection, claimant: Claimant) -> Iterator[None]:
        """Tell what becomes of the user's transaction when one of its statements fails.

        The errors of his SQL stay SQLAlchemy's own; some get a note.

        :raises Lost: the lease is over, and the server has ended the statement or the session.
        :raises RequestFailed: the connection is gone; nothing was written.
        """
        try:
            yield
        except DBAPIError as error:
            self._explain(error, connection, claimant, "a statement", "nothing was written")
            raise
        if connection.invalidated:
            cause = "the connection is gone, nothing was written"
            raise RequestFailed(self._gate.store, "a statement", cause)

    @contextmanager
    def committing(self, connection: Connection, claimant: Claimant) -> Iterator[None]:
        """Tell what a failed commit means.

        :raises StoreBusy: readers were in its way (SQLite).
        :raises RequestFailed: the connection is gone, and nobody knows.
        """
        try:
            yield
        except DBAPIError as error:
            if connection.invalidated:  # not Lost, of which nothing is written
                cause = f"{self._kind.reason(error)}; it may have been committed"
                raise RequestFailed(self._gate.store, "commit", cause) from error
            self._explain(error, connection, claimant, "commit", "nothing was written")
            if self._kind.fault(error) is Fault.BUSY:
                detail = "the commit waited in vain; nothing was written"
                raise self._refusal(StoreBusy, claimant, detail) from error
            raise

    def _explain(
        self, error: DBAPIError, connection: Connection, claimant: Claimant, what: str, end: str
    ) -> None:
        fault = self._kind.fault(error)
        if connection.invalidated or fault is Fault.OVERTIME:
            try:
                present(claimant)
            except Lost as end_of_lease:
                raise end_of_lease from error
        if connection.invalidated:
            cause = f"{self._kind.reason(error)}; {end}"
            raise RequestFailed(self._gate.store, what, cause) from error
        if fault in _NOTES:
            error.add_note(_NOTES[fault])

    def _refusal(self, kind: type[Refused], claimant: Claimant | None, detail: str) -> Refused:
        if claimant is None:
            return kind(store=self._gate.store, domain=self._gate.domain, detail=detail)
        return self._gate.refuse(kind, claimant, detail)


def _on_one_line(words: Any) -> str:
    return " ".join(str(words).split())
