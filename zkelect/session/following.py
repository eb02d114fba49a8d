"""Following one znode: its data at every change, its creation and its end."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, Self

from zkelect.session.gateway import Failure, Fault
from zkelect.session.pages import error_of
from zkelect.session.reading import Znode

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.errors import ZkelectError
    from zkelect.session.session import Session
    from zkelect.session.ticker import Timer

__all__ = ["Follower"]


class Follower:
    """Reads a znode and watches it, again after every change and every reconnect.

    Everything here runs under the session's lock.

    :ivar znode: as it was at the last read, None when there was none. :ivar known: whether
        there was a read that tells. :ivar error: why there is none.
    :param changed: called after every change, with the lock.
    """

    def __init__(self, session: Session, path: str, changed: Callable[[], None]) -> None:
        self.znode: Znode | None = None
        self.known: bool = False
        self.error: ZkelectError | None = None
        self._session: Final = session
        self._path: Final = path
        self._changed = changed
        self._look = 0
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        """Begin to look."""
        with self._session.lock:
            self._session.observers[self] = None
            self.resumed()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        if self._session.foreign:
            return
        with self._session.lock:
            self._session.observers.pop(self, None)
            self._forget()

    @property
    def fresh(self) -> bool:
        """Whether a change would be told: the link is up, and the watch is set."""
        return self.known and self._session.connected and self._timer is not None

    def resumed(self) -> None:
        """Hear that there is a connection, perhaps of another session: read again."""
        if self._session.connected:
            self._forget()
            self._read()

    def ended(self) -> None:
        """Hear that the session is over: whoever waits is told so."""
        self._changed()

    # --- within ----------------------------------------------------------------------------

    def _forget(self) -> None:
        self._look += 1
        self._session.gateway.unwatch(self._path, self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _read(self) -> None:
        """Ask for the data; a watch is set with it, where there is a znode."""
        self._ask(self._session.gateway.get, self._arrived)

    def _ask(self, request: Callable[..., None], done: Callable[[Any], None]) -> None:
        look = self._look

        def answered(answer: Any) -> None:
            if look == self._look:
                done(answer)

        def heard(_: bool) -> None:
            if look == self._look:
                self._read()

        request(self._path, answered, (self, heard))

    def _arrived(self, answer: Any) -> None:
        if not isinstance(answer, Failure):
            self._show(Znode(data=answer[0], version=answer[1].version))
        elif answer.fault is Fault.NO_NODE:
            self._ask(self._session.gateway.exists, self._missed)  # watches for its creation
        elif answer.fault is not Fault.UNKNOWN:
            self._fail(answer)

    def _missed(self, answer: Any) -> None:
        if answer is None:
            self._show(None)
        elif not isinstance(answer, Failure):
            self._read()  # made between the two questions
        elif answer.fault is not Fault.UNKNOWN:
            self._fail(answer)

    def _show(self, znode: Znode | None) -> None:
        news = not self.known or znode != self.znode
        self.znode, self.known, self.error = znode, True, None
        if self._timer is None:
            self._timer = self._session.call_at(self._next_look(), self.resumed)
        if news:
            self._changed()

    def _next_look(self) -> float:
        """A lost watch event must not leave anybody with old data for ever."""
        return self._session.now() + self._session.timeout * random.uniform(3, 5)

    def _fail(self, failure: Failure) -> None:
        self.error = error_of(self._session, self._path, "read", failure)
        self._changed()
