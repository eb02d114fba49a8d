"""A guarded SQL database, by SQLAlchemy 2: PostgreSQL, MariaDB, SQLite."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, overload

from sqlalchemy.exc import DBAPIError

from zkelect.errors import InvalidArgument
from zkelect.stores.fence import Claimant, present
from zkelect.stores.sql_plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from zkelect.stores.mark import Mark
    from zkelect.stores.sql_plan import Subject

__all__ = ["SqlFence"]

S = TypeVar("S", bound="Subject")
T = TypeVar("T")


class SqlFence:
    """A database in which only the present leader writes; the mark is a row beside the data.

    Promises: the mark is checked in the transaction that writes, under a lock that it holds to
    its end, so a refused leader writes nothing, and no write of an older token follows a claim.
    One leader's transactions run side by side; a claim waits for those that are open, and goes
    before all that begin later. The server ends a transaction that hangs longer than the lease
    that it began with (PostgreSQL, MariaDB), and no statement is sent after the lease. A server
    that is not the one of the claim is told, FenceStateLost: by its identity, which is kept with
    the mark and looked at in every transaction.

    What replication loses: a standby that takes over without the last commits has lost claims
    with them. On PostgreSQL it is on a new timeline, so there everybody is refused until a new
    term claims with ``initialize=True``, also when nothing was lost (synchronous standby). A
    snapshot of the disk that is put back on the same server is told only by the fences that have
    seen a higher mark.

    Does not promise: to guard writes that go round this class, or what a session writes to
    another database; to wait no longer than its timeouts for a server that does not answer at
    all (set the driver's: connect_timeout, tcp_user_timeout); anything where the database itself
    promises nothing (fsync=off).

    Isolation: the engine's own, READ COMMITTED to SERIALIZABLE; AUTOCOMMIT is refused. A
    serialization failure or a deadlock arrives as SQLAlchemy's error, with a note: :meth:`run`
    runs the whole again. SQLite: one writer at a time for the whole file.

    Cost: one statement more in each transaction; a claim is a transaction of six (PostgreSQL). Two
    domains share nothing but the table. Any thread may use it; after a fork as the engine does.

    :param engine: a ``sqlalchemy.Engine``. Its pool is used, its events are listened to; what is
        not guarded passes as before.
    :param domain: which election guards it: 1 to 255 printable characters.
    :param timeout: seconds to wait for a lock, more than 0, or the lease left if that is less; in
        a guarded transaction this limit is on the user's own locks too (PostgreSQL).
    :param schema: where the table ``zkelect_fence`` is; None for the schema that the engine's
        first connection begins in. Processes whose search paths differ must name it.
    :raises InvalidArgument: an argument is outside its range; nothing was opened.
    """

    def __init__(
        self, engine: Engine, *, domain: str, timeout: float = 5.0, schema: str | None = None
    ) -> None:
        self._plan = Plan(engine, domain=domain, timeout=timeout, schema=schema)
        self._engine = engine

    def claim(self, claimant: Claimant, *, initialize: bool = False) -> None:
        """Raise the mark to the claimant's token: once per term, before its first read.

        Makes the table, if there is none. Idempotent: a claim of unknown outcome is made again
        with the same token.

        :param initialize: the data have been looked at: begin anew on a server that is not the
            one of the last claim.
        :raises Lost: the lease was over or suspended, before or meanwhile; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no; UnfitStore: the
            database, as it is set up, cannot keep the promise; StoreBusy: see its message.
        :raises RequestFailed: the database could not; its error is the ``__cause__``.
        """
        present(claimant)
        with self._connected(claimant) as connection:
            self._plan.claim(connection, claimant, initialize=initialize)

    @overload
    def transaction(self, claimant: Claimant) -> AbstractContextManager[Connection]: ...

    @overload
    def transaction(self, claimant: Claimant, on: S) -> AbstractContextManager[S]: ...

    def transaction(self, claimant: Claimant, on: Any = None) -> AbstractContextManager[Any]:
        """Lend a guarded transaction: committed when the block ends well, else rolled back.

        With a bare token, its first transaction makes the claim.

        :param on: a Connection or a Session of this database, not in a transaction: it is lent,
            and free again after the block. None: a connection of the engine's.
        :raises Lost: the lease was over or suspended, before, meanwhile or at the end; nothing
            was written.
        :raises Refused: as :meth:`claim`; nothing was written.
        :raises RequestFailed: the connection was lost; the message says what became of it.
        :raises Misuse: the block ended the transaction behind SQLAlchemy's back, or caught the
            error of a statement, which only a savepoint outlives; or ``on`` was in a transaction.
        """
        return self._transaction(claimant, on)

    @overload
    def run(
        self, claimant: Claimant, work: Callable[[Connection], T], *, attempts: int = ...
    ) -> T: ...

    @overload
    def run(
        self, claimant: Claimant, work: Callable[[S], T], on: S, *, attempts: int = ...
    ) -> T: ...

    def run(
        self, claimant: Claimant, work: Callable[[Any], T], on: Any = None, *, attempts: int = 10
    ) -> T:
        """Run the work in a guarded transaction; after a conflict the whole of it again.

        :param work: called with the connection or session; its result is returned.
        :param on: as for :meth:`transaction`.
        :param attempts: 1 or more; the last one's serialization failure or deadlock is raised.
        :raises ZkelectError: as :meth:`transaction` does.
        """
        if not isinstance(attempts, int) or attempts < 1:
            raise InvalidArgument("attempts", attempts, "1 or more")
        for _ in range(attempts - 1):
            try:
                return self._run(claimant, work, on)
            except DBAPIError as error:
                if not self._plan.errors.is_conflict(error):
                    raise
        return self._run(claimant, work, on)

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed; creates nothing.

        :raises UnfitStore: the role may not read it.
        :raises RequestFailed: the database could not; its error is the ``__cause__``.
        """
        with self._connected(None) as connection:
            return self._plan.status(connection)

    def _run(self, claimant: Claimant, work: Callable[[Any], T], on: Any) -> T:
        with self._transaction(claimant, on) as subject:
            return work(subject)

    @contextmanager
    def _connected(self, claimant: Claimant | None) -> Iterator[Connection]:
        with self._plan.errors.connecting(claimant):
            connection = self._engine.connect()
        with connection:
            yield connection

    @contextmanager
    def _transaction(self, claimant: Claimant, on: Subject | None) -> Iterator[Subject]:
        present(claimant)
        if not self._plan.has_claimed(claimant):
            self.claim(claimant)
        with self._connected(claimant) if on is None else nullcontext(on) as subject:
            guarded = self._plan.begin(subject, claimant)
            with guarded.transaction:
                try:
                    with self._plan.body(guarded, claimant):
                        yield subject
                except BaseException:
                    self._plan.roll_back(guarded)
                    raise
                self._plan.commit(guarded, claimant)
