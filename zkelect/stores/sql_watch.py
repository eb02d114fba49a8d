"""Watches a guarded transaction from inside: each statement, each error, and the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

import attrs
from sqlalchemy import Engine, RootTransaction, event
from sqlalchemy.exc import DBAPIError

from zkelect.errors import Misuse
from zkelect.stores.fence import Claimant, present
from zkelect.stores.sql_backend import Phase

if TYPE_CHECKING:
    from sqlalchemy import Connection, ExceptionContext

    from zkelect.stores.sql_backend import Backend

__all__ = ["Watch", "abandon", "listen", "watch"]

_HEARD: Final[WeakSet[Engine]] = WeakSet()
_WATCHES: Final[WeakKeyDictionary[RootTransaction, Watch]] = WeakKeyDictionary()


@attrs.define(kw_only=True, eq=False)
class Watch:
    """What a transaction of the fence keeps to until it ends.

    A statement after the end of the lease would keep the successor's claim waiting; one after
    a COMMIT that was sent as SQL would be in a transaction without a guard.

    :ivar guarded: the guard has passed; what comes now is the user's.
    :ivar over: an error has ended the transaction at the server.
    """

    store: str
    claimant: Claimant
    backend: Backend
    guarded: bool = False
    over: bool = False

    def before_statement(self, connection: Connection, statement: str) -> None:
        if self.guarded:
            self._look(connection)
            self.backend.check(statement)

    def before_commit(self, connection: Connection) -> None:
        self._look(connection)
        if self.backend.phase(connection) is Phase.FAILED:
            raise Misuse(
                f"{self.store}: a statement of this transaction has failed and its error was "
                "caught inside the block. The server can only roll it back: nothing was "
                "written. Let the error out, or put what may fail into begin_nested()"
            )

    def after_error(self, error: DBAPIError) -> None:
        self.over = self.over or self.backend.is_over(error)

    def release(self, connection: Connection) -> None:
        self.guarded = False
        if not connection.invalidated:
            self.backend.release(connection)

    def _look(self, connection: Connection) -> None:
        present(self.claimant)
        if self.over or self.backend.phase(connection) is Phase.NOT_BEGUN:
            raise Misuse(
                f"{self.store}: something in this transaction has ended it (COMMIT or ROLLBACK "
                "sent as SQL, or an error); what would come now is unguarded. Leave its block"
            )


def listen(engine: Engine) -> None:
    """Hear what the engine's connections do; those that nobody watches pass at once.

    On the engine itself. Listeners of a connection, or of an engine derived from it, would cost
    each transaction as much as a statement does.
    """
    if engine in _HEARD:
        return
    event.listen(engine, "before_cursor_execute", _before_statement)
    event.listen(engine, "handle_error", _after_error)
    event.listen(engine, "commit", _before_commit)
    event.listen(engine, "rollback", _before_rollback)
    _HEARD.add(engine)


def abandon(connection: Connection) -> None:
    """Roll back where SQLAlchemy would not: after a commit that failed, or did not come to pass.

    It holds the transaction for ended then. The pool would lend the connection out as it is, and
    whoever got it next would commit our work with his own.
    """
    if connection.closed or connection.invalidated:
        return
    try:
        connection.dialect.do_rollback(connection.connection)
    except connection.dialect.loaded_dbapi.Error:
        connection.invalidate()  # the server rolls back


def watch(connection: Connection, claimant: Claimant, *, store: str, backend: Backend) -> Watch:
    """Watch the transaction that was begun on this connection, until it ends."""
    watch = Watch(store=store, claimant=claimant, backend=backend)
    if (transaction := connection.get_transaction()) is not None:
        _WATCHES[transaction] = watch
    return watch


def _watch_of(connection: Connection | None) -> Watch | None:
    transaction = None if connection is None else connection.get_transaction()
    return None if transaction is None else _WATCHES.get(transaction)


def _before_statement(connection: Connection, _: Any, statement: str, *__: Any) -> None:
    if watch := _watch_of(connection):
        watch.before_statement(connection, statement)


def _after_error(context: ExceptionContext) -> None:
    watch, error = _watch_of(context.connection), context.sqlalchemy_exception
    if watch and isinstance(error, DBAPIError):
        watch.after_error(error)


def _before_commit(connection: Connection) -> None:
    if not (watch := _watch_of(connection)):
        return
    try:
        watch.before_commit(connection)
    except BaseException:
        watch.release(connection)
        abandon(connection)
        raise
    watch.release(connection)


def _before_rollback(connection: Connection) -> None:
    if watch := _watch_of(connection):
        watch.release(connection)
