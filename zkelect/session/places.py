"""Where a session stands: at most once on each path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.errors import CampaignInProgress

if TYPE_CHECKING:
    from zkelect.session.session import Session

__all__ = ["Place", "Places"]


class Places:
    """The paths on which a session stands, or will again in a moment; under its lock.

    Two candidates of one session would share its lease, and one death would take both: that
    is no stand-by. A place is taken before the candidate is made and left when its caller
    is done, not when the servers have answered: so who leaves on a dead link may return.
    """

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}

    def take(self, path: str, name: str) -> None:
        """Stand there from now on.

        :param path: in its one right spelling. :param name: who stands, for the message.
        :raises CampaignInProgress: somebody of this session does already.
        """
        if path in self._taken:
            raise CampaignInProgress(path, self._taken[path])
        self._taken[path] = name

    def leave(self, path: str) -> None:
        """Stand there no more; harmless when nobody does."""
        self._taken.pop(path, None)


class Place:
    """One place of a session, for one candidate: a context manager that takes and leaves it.

    :param name: who stands there, for the message of who comes second.
    """

    def __init__(self, session: Session, path: str, name: str) -> None:
        self._session = session
        self._path = path
        self._name = name
        self._taken = False

    def __enter__(self) -> None:
        """Take it.

        :raises CampaignInProgress: somebody of this session stands there already.
        """
        self._session.ensure_usable()  # before any lock: a forked child must not wait for it
        with self._session.lock:
            self._session.roster.places.take(self._path, self._name)
            self._taken = True

    def __exit__(self, *_: object) -> None:
        """Leave it: our caller is done; harmless when it was not taken."""
        if self._taken and not self._session.foreign:
            self._taken = False
            with self._session.lock:
                self._session.roster.places.leave(self._path)
