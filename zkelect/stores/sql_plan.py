"""What the SQL fences do on a connection, step by step.

Synchronous, and shared: :class:`SqlFence` calls it as it is, the asynchronous fence by
``run_sync``. Neither of them knows a statement; those are the backend's.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import attrs
from sqlalchemy import Connection, Engine, MetaData
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from zkelect.errors import InvalidArgument, Misuse, RequestFailed
from zkelect.stores.fence import Claimant, Gate, patience, present, valid_timeout
from zkelect.stores.sql_backend import Backend, Limits
from zkelect.stores.sql_errors import Translator
from zkelect.stores.sql_mariadb import MariadbBackend
from zkelect.stores.sql_postgresql import PostgresqlBackend
from zkelect.stores.sql_sqlite import SqliteBackend
from zkelect.stores.sql_table import fence_table
from zkelect.stores.sql_watch import abandon, listen, watch
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sqlalchemy import RootTransaction
    from sqlalchemy.orm import Session, SessionTransaction

    from zkelect.stores.mark import Mark

    Subject: TypeAlias = Connection | Session
    Transaction: TypeAlias = RootTransaction | SessionTransaction

__all__ = ["Guarded", "Plan"]

T = TypeVar("T")

_BACKENDS: Final[dict[str, type[Backend]]] = {
    "mariadb": MariadbBackend,
    "mysql": MariadbBackend,
    "postgresql": PostgresqlBackend,
    "sqlite": SqliteBackend,
}
_ATTEMPTS: Final = 5


@attrs.frozen
class Guarded:
    """An open guarded transaction.

    :ivar transaction: to be entered as a context manager: then SQLAlchemy refuses every
        statement between its commit and the end of the block.
    """

    connection: Connection
    transaction: Transaction


class Plan:
    """Claims, guards and reads for one domain, on connections that the fences open.

    :param engine: it is listened to; what is not guarded passes.
    :param schema: the table's; None for the one that the engine's first connection begins in.
    :raises InvalidArgument: an argument is outside its range.
    """

    def __init__(self, engine: Engine, *, domain: str, timeout: float, schema: str | None) -> None:
        self._kind = _kind_of(engine)
        self._url, self._schema = engine.url, schema
        self._timeout = valid_timeout(timeout)
        self.gate = Gate(store=_store_name(engine), domain=domain, lock=threading.Lock())
        self.errors = Translator(self.gate, self._kind)
        self._backend: Backend | None = None
        listen(engine)

    def has_claimed(self, claimant: Claimant) -> bool:
        """Whether a bare token's claim was confirmed here; a leadership claims by itself."""
        return not isinstance(claimant, Token) or claimant == self.gate.floor

    def claim(self, connection: Connection, claimant: Claimant, *, initialize: bool) -> None:
        """Raise the mark, in a transaction of its own on this idle connection."""
        try:
            self._anew(lambda: self._claim(connection, claimant, initialize=initialize))
        except DBAPIError as error:
            raise RequestFailed(self.gate.store, "claim", self._kind.reason(error)) from error

    def begin(self, subject: Subject, claimant: Claimant) -> Guarded:
        """Begin a guarded transaction on an idle connection or session.

        In REPEATABLE READ and above, a claim that was committed while the guard waited for it
        makes a serialization failure. Nothing has been done by then, so it is begun anew.
        """
        if not hasattr(subject, "in_transaction"):
            raise InvalidArgument("on", subject, "a Connection, or a Session (not what makes one)")
        if _is_in_transaction(subject):
            raise Misuse(
                f"{self.gate.store}: this {type(subject).__name__} is in a transaction already "
                "(SQLAlchemy begins one at the first query); what was read in it may be older "
                "than the guard. Commit or roll back, then begin the guarded one"
            )
        return self._anew(lambda: self._begun(subject, claimant))

    def body(self, guarded: Guarded, claimant: Claimant) -> AbstractContextManager[None]:
        """Translate around the user's block; no I/O."""
        return self.errors.lent(guarded.connection, claimant)

    def commit(self, guarded: Guarded, claimant: Claimant) -> None:
        """Commit, unless the block has ended the transaction by itself."""
        if guarded.transaction.is_active:
            with self.errors.committing(guarded.connection, claimant):
                _commit(guarded.connection, guarded.transaction)

    def roll_back(self, guarded: Guarded) -> None:
        """Roll back after an error in the block; where the connection is gone, the server does."""
        try:
            if guarded.transaction.is_active:
                guarded.transaction.rollback()
        except DBAPIError:
            guarded.connection.invalidate()

    def status(self, connection: Connection) -> Mark | None:
        """Read the mark."""
        limits = Limits(wait=self._timeout, lease=self._timeout)
        with self._requesting("status", connection, None, limits), connection.begin():
            return self._backend_of(connection).status(connection, limits)

    # --- one transaction --------------------------------------------------------------------

    def _anew(self, attempt: Callable[[], T]) -> T:
        """Make the attempt, and again after a conflict, of which each had another cause."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return attempt()
            except DBAPIError as error:
                if not self.errors.is_conflict(error):
                    raise
        return attempt()

    def _claim(self, connection: Connection, claimant: Claimant, *, initialize: bool) -> None:
        backend, limits = self._backend_of(connection), self._limits(claimant)
        with (
            self._requesting("claim", connection, claimant, limits),
            connection.begin() as transaction,
        ):
            watch(connection, claimant, store=self.gate.store, backend=backend)
            sight = backend.claim(connection, limits)
            mark = self.gate.claim(sight.mark, claimant, origin=sight.origin, initialize=initialize)
            backend.record(connection, mark, found=sight.mark is not None)
            _commit(connection, transaction)
        self.gate.confirm(mark)

    def _begun(self, subject: Subject, claimant: Claimant) -> Guarded:
        with self._requesting("guard", subject, claimant, self._limits(claimant)):
            transaction = subject.begin()
            try:
                connection = _connection_of(subject)
                self._guard(connection, claimant)
            except BaseException:
                _roll_back(subject, transaction)
                raise
        return Guarded(connection, transaction)

    def _guard(self, connection: Connection, claimant: Claimant) -> None:
        if connection.engine.url != self._url:
            raise Misuse(f"{self.gate.store}: the session is bound to {connection.engine.url!r}")
        backend = self._backend_of(connection)
        watched = watch(connection, claimant, store=self.gate.store, backend=backend)
        sight = backend.guard(connection, self._limits(claimant))
        self.gate.guard(sight.mark, claimant, origin=sight.origin)
        watched.guarded = True

    def _limits(self, claimant: Claimant) -> Limits:
        """Return the limits, from the lease that is left now.

        :raises Lost: none is left.
        """
        present(claimant)
        lease = None if isinstance(claimant, Token) else claimant.remaining()
        return Limits(wait=patience(claimant, self._timeout), lease=lease)

    def _backend_of(self, connection: Connection) -> Backend:
        """Return the backend; its table's schema is known only once there is a connection.

        The schema is part of every statement. Else a search path that differs between two
        connections would lead to two marks.
        """
        if self._backend is None:
            dialect = connection.dialect
            table = fence_table(MetaData(), schema=self._schema or dialect.default_schema_name)
            name = dialect.identifier_preparer.format_table(table)
            self._backend = self._kind(domain=self.gate.domain, table=table, name=name)
        return self._backend

    def _requesting(
        self, request: str, subject: Subject, claimant: Claimant | None, limits: Limits
    ) -> AbstractContextManager[None]:
        def holders() -> str:
            return self._holders(subject)

        return self.errors.requesting(request, claimant, limits.wait, holders)

    def _holders(self, subject: Subject) -> str:
        """Ask who is in the way, in a transaction of its own; no answer is no error."""
        try:
            with subject.begin() as transaction:
                connection = _connection_of(subject)
                holders = self._backend_of(connection).holders(connection)
                transaction.rollback()
        except SQLAlchemyError:
            return ""
        return holders


def _commit(connection: Connection, transaction: Transaction) -> None:
    """Commit, or roll back: SQLite keeps the transaction open when readers are in the way."""
    try:
        transaction.commit()
    except DBAPIError:
        abandon(connection)
        raise


def _roll_back(subject: Subject, transaction: Transaction) -> None:
    """Roll back; where the connection is gone the server does, and the first error counts."""
    try:
        transaction.rollback()
    except DBAPIError:
        subject.invalidate()


def _is_in_transaction(subject: Subject) -> bool:
    """Whether it is, or the connection that a session is bound to, as test suites bind it."""
    bind = None if isinstance(subject, Connection) else subject.get_bind()
    return subject.in_transaction() or (isinstance(bind, Connection) and bind.in_transaction())


def _connection_of(subject: Subject) -> Connection:
    """Return the connection; a session may have made it from another engine than ours."""
    connection = subject if isinstance(subject, Connection) else subject.connection()
    listen(connection.engine)
    return connection


def _kind_of(engine: Engine) -> type[Backend]:
    if not isinstance(engine, Engine):
        raise InvalidArgument("engine", engine, "a sqlalchemy.Engine")
    if engine.dialect.name not in _BACKENDS:
        raise InvalidArgument("engine", engine, f"for one of {', '.join(sorted(_BACKENDS))}")
    return _BACKENDS[engine.dialect.name]


def _store_name(engine: Engine) -> str:
    """Return the URL without user, password and query: those may be secret."""
    url = engine.url
    port = "" if url.port is None else f":{url.port}"
    return f"{engine.dialect.name}://{url.host or ''}{port}/{url.database or ''}"
