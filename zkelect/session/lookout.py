"""Watching on a session, for whatever is watched: looked at, told, and looked at again."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.errors import ZkelectError
    from zkelect.session.session import Session
    from zkelect.session.ticker import Timer

__all__ = ["Lookout"]

T = TypeVar("T")


class Lookout(ABC, Generic[T]):
    """Reads something and watches it, again after every change and every reconnect.

    Everything here runs under the session's lock.

    :ivar value: as it was at the last read, None when there was none. :ivar known: whether
        there was a read that tells. :ivar error: why there is none. :ivar closed: whether nobody
        looks any more.
    :param changed: called after every change, with the lock.
    """

    def __init__(self, session: Session, changed: Callable[[], None]) -> None:
        self.value: T | None = None
        self.known: bool = False
        self.error: ZkelectError | None = None
        self.closed: bool = False
        self.session: Final = session
        self._changed = changed
        self._told: tuple[T | None] | None = None
        self._look = 0
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        """Begin to look."""
        with self.session.lock:
            self.session.observers[self] = None
            self.resumed()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more; watches that stay on the servers are not heard."""
        if self.session.foreign:
            return
        with self.session.lock:
            self.session.observers.pop(self, None)
            self._forget()
            self.closed = True

    @property
    def fresh(self) -> bool:
        """Whether a change would be told: the link is up, and all that is needed is watched."""
        return self.known and self.session.connected and self._timer is not None

    @property
    def news(self) -> bool:
        """Whether there is something that was not taken yet."""
        return self.known and self._told != (self.value,)

    def take(self) -> T | None:
        """Return the value, which is no news from now on."""
        with self.session.lock:
            self._told = (self.value,)
            return self.value

    def resumed(self) -> None:
        """Hear that there is a connection, perhaps of another session: look at everything."""
        if self.session.connected:
            self._forget()
            self.read()

    def ended(self) -> None:
        """Hear that the session is over: whoever waits is told so."""
        self._changed()

    # --- for who knows what is watched -----------------------------------------------------------

    @abstractmethod
    def read(self) -> None:
        """Ask for all of it, and in the end show it or fail."""

    @abstractmethod
    def unwatch(self) -> None:
        """Take the watches back."""

    def ask(
        self,
        request: Callable[..., None],
        path: str,
        done: Callable[[Any], None],
        hear: Callable[[bool], None],
    ) -> None:
        """Ask and watch; what belongs to an earlier look is heard no more.

        :param done: gets the answer. :param hear: gets whether the znode was deleted.
        """
        look = self._look

        def answered(answer: Any) -> None:
            if look == self._look:
                done(answer)

        def heard(deleted: bool) -> None:
            if look == self._look:
                hear(deleted)

        request(path, answered, (self, heard))

    def show(self, value: T | None) -> None:
        """Take it for what there is, tell it if it is another one, and look again in a while."""
        news = not self.known or value != self.value
        self.value, self.known, self.error = value, True, None
        if self._timer is None:
            self._timer = self.session.call_at(self._next_look(), self.resumed)
        if news:
            self._changed()

    def fail(self, error: ZkelectError) -> None:
        """Tell that nothing can be known, and why."""
        self.error = error
        self._changed()

    # --- within ----------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._look += 1
        self.unwatch()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next_look(self) -> float:
        """A lost watch event must not leave anybody with what is old for ever."""
        return self.session.now() + self.session.timeout * random.uniform(3, 5)
