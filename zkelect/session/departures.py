"""Waiting until a znode is gone: told by a watch, on whatever connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from zkelect.session.asking import ask
from zkelect.session.gateway import Failure
from zkelect.session.pages import value_of

if TYPE_CHECKING:
    from zkelect.session.gateway import Stat
    from zkelect.session.session import Session

__all__ = ["Departure"]


class Departure:
    """One znode, from the first look to its end; one of the same name made later is another.

    It is looked at by exists, which needs no permission to read it.

    :param timeout: seconds to wait for an answer, each time.
    :ivar gone: whether it is. :ivar czxid: of its making; 0 when it was never seen.
    """

    def __init__(self, session: Session, path: str, timeout: float) -> None:
        self.gone: bool = False
        self.czxid: int = 0
        self._session = session
        self._path = path
        self._timeout = timeout

    def __enter__(self) -> Self:
        """Look at it for the first time, and watch it from then on.

        :raises PermissionDenied, RequestFailed, ConnectFailed: it could not be looked at.
        """
        self.look()
        with self._session.lock:
            self._session.observers[self] = None
            self.resumed()
        return self

    def __exit__(self, *_: object) -> None:
        """Watch it no more."""
        if not self._session.foreign:
            with self._session.lock:
                self._session.observers.pop(self, None)
                self._session.gateway.unwatch(self._path, self)

    def look(self) -> int | None:
        """Return the version of its data, None when it is gone."""
        answer = ask(self._session, lambda g, done: g.exists(self._path, done), self._timeout)
        stat: Stat | None = value_of(self._session, self._path, "read", answer)
        self._judge(stat)
        return None if stat is None or self.gone else stat.version

    def wait(self, until: float) -> bool:
        """Wait until it is gone; False: not until that boot-clock instant."""
        session = self._session
        with session.changed:
            while not self.gone and session.now() < until:
                session.changed.wait(until - session.now())
                session.ensure_usable()
        return self.gone

    # --- told, under the session's lock ------------------------------------------------------

    def resumed(self) -> None:
        """Look again, and watch, on this connection."""
        if self._session.connected:
            heard = (self, lambda _: self.resumed())
            self._session.gateway.exists(self._path, self._seen, watch=heard)

    def ended(self) -> None:
        """Hear that the session is over; whoever waits looks by itself."""

    def _seen(self, answer: Any) -> None:
        """A look that failed tells nothing; there is a last one, by whoever waits."""
        if not isinstance(answer, Failure):
            self._judge(answer)
            self._session.changed.notify_all()

    def _judge(self, stat: Stat | None) -> None:
        if stat is not None and not self.czxid:
            self.czxid = stat.czxid
        self.gone = self.gone or stat is None or stat.czxid != self.czxid
