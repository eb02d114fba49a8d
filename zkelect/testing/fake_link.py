"""What a session holds in place of kazoo: a client in memory, and its connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from zkelect.session.link import Link
from zkelect.testing.fake_client import FakeClient, State

__all__ = ["FakeLink"]

_LEAST_DIAL_TIMEOUT: Final = 1.0


class FakeLink(Link):
    """A link that does what :class:`zkelect.session.link.OwnedLink` does, without kazoo.

    :ivar expire: ends the session of that id as the servers would.
    :param end: called when the session is closed: with ``release`` the servers are told.
    """

    def __init__(
        self,
        client: FakeClient,
        *,
        expire: Callable[[int], bool],
        end: Callable[[FakeClient, bool], None],
    ) -> None:
        alike: Any = client  # for what is used of it here, it is a KazooClient
        super().__init__(alike)
        self.fake: Final = client
        self.expire: Final = expire
        self._end = end

    @property
    def ended(self) -> bool:
        """Whether it was closed."""
        return self.fake.state is State.CLOSED

    @property
    def refused(self) -> bool:
        """Nobody is refused here."""
        return False

    @property
    def credentials(self) -> tuple[int, bytes] | None:
        """Session id and password, None while there is no connection."""
        return self.fake.session if self.fake.linked else None

    @property
    def zxid(self) -> int:
        """The last zxid that the servers told."""
        return self.fake.last_zxid

    def start(self, listen: Callable[[str], None]) -> None:
        """Let ``listen`` hear of every change of state."""
        self.fake.listen = listen

    def shut(self) -> None:
        """Drop the present connection."""
        self.fake.shut()

    def overdue(self, now: float) -> bool:
        """Whether a server has been dialled and keeps silent."""
        limit = max(self.fake.session_timeout / 5, _LEAST_DIAL_TIMEOUT)
        return self.fake.dialled is not None and now - self.fake.dialled > 2 * limit

    def stop(self, *, release: bool, timeout: float) -> None:
        """End it. ``release``: close the session now, instead of letting it expire."""
        self._end(self.fake, release)
