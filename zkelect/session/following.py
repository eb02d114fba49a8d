"""Following one znode: its data at every change, its creation and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zkelect.session.gateway import Failure, Fault
from zkelect.session.lookout import Lookout
from zkelect.session.pages import error_of
from zkelect.session.reading import Znode

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.session.session import Session

__all__ = ["Follower"]


class Follower(Lookout[Znode]):
    """Watches a znode, or the place where there is none."""

    def __init__(self, session: Session, path: str, changed: Callable[[], None]) -> None:
        super().__init__(session, changed)
        self._path = path

    def unwatch(self) -> None:
        self.session.gateway.unwatch(self._path, self)

    def read(self) -> None:
        """Ask for the data; a watch is set with it, where there is a znode."""
        self.ask(self.session.gateway.get, self._path, self._arrived, self._hear)

    def _hear(self, _: bool) -> None:
        self.read()

    def _arrived(self, answer: Any) -> None:
        if not isinstance(answer, Failure):
            self.show(Znode(data=answer[0], version=answer[1].version))
        elif answer.fault is Fault.NO_NODE:
            self._await_creation()
        else:
            self._refuse(answer)

    def _await_creation(self) -> None:
        self.ask(self.session.gateway.exists, self._path, self._missed, self._hear)

    def _missed(self, answer: Any) -> None:
        if answer is None:
            self.show(None)
        elif not isinstance(answer, Failure):
            self.read()  # made between the two questions
        else:
            self._refuse(answer)

    def _refuse(self, failure: Failure) -> None:
        """Of an unknown fault the link is gone: all is read again when it is back."""
        if failure.fault is not Fault.UNKNOWN:
            self.fail(error_of(self.session, self._path, "read", failure))
