"""A note of ours in a registry: an ephemeral znode, kept over reconnects and new sessions."""

from __future__ import annotations

import random
from posixpath import dirname
from typing import TYPE_CHECKING, Any, Final

from zkelect.session.gateway import Create, Delete, Failure, Fault, Put
from zkelect.session.pages import error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.errors import ZkelectError
    from zkelect.session.session import Session
    from zkelect.session.ticker import Timer

__all__ = ["Note"]


class Note:
    """Keeps one ephemeral znode with the data wanted last, as long as it is open.

    At most one request is under way; whatever changes meanwhile is made up for behind its
    answer. So is whatever an answer that was lost with the link has left open: the znode is
    looked for before anything is made again. Everything here runs under the session's lock.

    :ivar error: why the servers will not have it. :ivar taken: another session holds that name.
    """

    def __init__(self, session: Session, path: str, data: bytes) -> None:
        self.error: ZkelectError | None = None
        self.taken: bool = False
        self._session: Final = session
        self._path: Final = path
        self._wanted: bytes | None = data
        self._written: bytes | None = None
        self._owner: int | None = None
        self._busy = False
        self._look = 0
        self._timer: Timer | None = None

    @property
    def settled(self) -> bool:
        """Whether the znode is there, as wanted, in the present session; or gone, when closed."""
        if self._wanted is None:
            return self._owner is None and not self._busy
        return self._is_ours() and self._written == self._wanted

    def begin(self) -> None:
        """Register, as soon as there is a connection."""
        self._session.observers[self] = None
        self.resumed()

    def write(self, data: bytes | None) -> None:
        """Have it say this from now on; None: have it go."""
        self._wanted = data
        self._reconcile()

    def forget(self) -> None:
        """Keep it no more; what is there goes with the session."""
        self._session.observers.pop(self, None)
        self._turn_away()

    def resumed(self) -> None:
        """Hear that there is a connection, perhaps of another session: look again."""
        if self._session.connected:
            self._turn_away()
            self._timer = self._session.call_at(self._next_look(), self.resumed)
            self._find()

    def ended(self) -> None:
        """Hear that the session is over: whoever waits is told so."""
        self._session.changed.notify_all()

    # --- within ----------------------------------------------------------------------------

    def _turn_away(self) -> None:
        """What was asked before is answered to nobody."""
        self._look += 1
        self._busy = False
        self._session.gateway.unwatch(self._path, self)
        if self._timer is not None:
            self._timer.cancel()

    def _next_look(self) -> float:
        """One that says nothing new would not notice that somebody has deleted it."""
        return self._session.now() + self._session.timeout * random.uniform(3, 5)

    def _is_ours(self) -> bool:
        return self._owner is not None and self._owner == self._session.session_id

    def _reconcile(self) -> None:
        """Ask for the next thing that is not as wanted."""
        if self._busy or self.taken or self.error is not None or not self._session.connected:
            return
        if self._wanted is None:
            if self._is_ours():
                self._commit(Delete(path=self._path), self._deleted)
        elif not self._is_ours():
            data = self._wanted
            made = Create(path=self._path, data=data, ephemeral=True)
            self._commit(made, lambda failure: self._created(data, failure))
        elif self._written != self._wanted:
            data = self._wanted
            self._commit(Put(path=self._path, data=data), lambda f: self._put(data, f))

    def _commit(
        self, operation: Create | Put | Delete, done: Callable[[Failure | None], None]
    ) -> None:
        def answered(answer: Any) -> None:
            items = (answer,) if isinstance(answer, Failure) else answer
            done(next((item for item in items if isinstance(item, Failure)), None))

        self._ask(lambda heard: self._session.gateway.multi((operation,), heard), answered)

    def _ask(
        self, send: Callable[[Callable[[Any], None]], None], done: Callable[[Any], None]
    ) -> None:
        """One request at a time; an answer of an earlier connection changes nothing."""
        look, self._busy = self._look, True

        def answered(answer: Any) -> None:
            if look == self._look:
                self._busy = False
                done(answer)
                self._session.changed.notify_all()

        send(answered)

    def _find(self) -> None:
        """Look whose znode there is; somebody else's is watched until it goes."""
        look = self._look

        def heard(_: bool) -> None:
            if look == self._look and self.taken:
                self._find()

        def send(done: Callable[[Any], None]) -> None:
            self._session.gateway.exists(self._path, done, (self, heard))

        self._ask(send, self._found)

    def _found(self, stat: Any) -> None:
        if isinstance(stat, Failure):
            self._fail(stat)
            return
        self._owner, self.error = None if stat is None else stat.owner, None
        self.taken = stat is not None and not self._is_ours()
        self._reconcile()

    def _created(self, data: bytes, failure: Failure | None) -> None:
        if failure is None:
            self._owner, self._written = self._session.session_id, data
            self._reconcile()
        elif failure.fault is Fault.NO_NODE:
            parent = dirname(self._path)
            self._ask(lambda done: self._session.gateway.ensure(parent, done), self._found_parent)
        elif failure.fault is Fault.NODE_EXISTS:
            self._find()
        else:
            self._fail(failure)

    def _found_parent(self, answer: Any) -> None:
        if isinstance(answer, Failure):
            self._fail(answer)
        else:
            self._reconcile()

    def _put(self, data: bytes, failure: Failure | None) -> None:
        if failure is None:
            self._written = data
            self._reconcile()
        elif failure.fault is Fault.NO_NODE:
            self._find()
        else:
            self._fail(failure)

    def _deleted(self, failure: Failure | None) -> None:
        if failure is None or failure.fault is Fault.NO_NODE:
            self._owner = None
        else:
            self._fail(failure)

    def _fail(self, failure: Failure) -> None:
        """What is lost with the link is looked for when it is back."""
        if failure.fault is not Fault.UNKNOWN:
            self.error = error_of(self._session, self._path, "write", failure)
