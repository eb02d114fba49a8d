"""Where a cluster's pages and notes are kept in ZooKeeper.

Below the path of the cluster: ``page``, what was decided last, written by the coordinator;
``members/…``, the heartbeats, one ephemeral znode an agent; ``sync``, who has all that the primary
acknowledged, written by the primary's agent; ``request``, what an operator asks for; ``pools/…``,
what connection pools say, one ephemeral znode each; and the two elections, ``coordinator`` and
``primary``.
"""

from __future__ import annotations

import logging
from typing import Final, TypeVar

import zkelect
from zkelect.recipes.choice import SyncSet
from zkelect.recipes.member import Heartbeat
from zkelect.recipes.notes import decode, encode
from zkelect.recipes.page import Page, Request
from zkelect.recipes.pools import Pool
from zkelect.stores import ZnodeFence

__all__ = ["Board"]

_log: Final = logging.getLogger("zkelect.recipes")
_Value = TypeVar("_Value")


class Board:
    """The znodes of one cluster, read and written in one session.

    :param path: of the cluster, absolute, below the session's chroot.
    """

    def __init__(self, session: zkelect.Session, path: str) -> None:
        self.path: Final = path.rstrip("/")
        self.coordinator: Final = f"{self.path}/coordinator"
        self.primary: Final = f"{self.path}/primary"
        self._page: Final = f"{self.path}/page"
        self._sync: Final = f"{self.path}/sync"
        self._request: Final = f"{self.path}/request"
        self._members: Final = f"{self.path}/members"
        self._session: Final = session
        self._znodes: Final = zkelect.Znodes(session)
        self._registry: Final = zkelect.Registry(session, self._members)
        self._pools: Final = zkelect.Registry(session, f"{self.path}/pools")
        self._election: Final = zkelect.Election(session, self.primary)

    def prepare(self) -> None:
        """Make what is missing, empty."""
        for path in (self._members, self._page, self._sync, self._request):
            self._znodes.ensure(path)

    # --- reading -------------------------------------------------------------------------------

    def page(self) -> tuple[Page | None, int]:
        """Return the page and its version; None: none was ever written."""
        return self._read(Page, self._page)

    def pages(self) -> zkelect.Following:
        """Follow the page; :meth:`page_of` reads what is found."""
        return self._znodes.follow(self._page)

    def page_of(self, znode: zkelect.Znode | None) -> Page | None:
        """Return the page that a znode holds, None when it holds none."""
        return self._value(Page, self._page, znode)

    def sync(self) -> tuple[SyncSet | None, int]:
        """Return who was recorded last, and the version."""
        return self._read(SyncSet, self._sync)

    def request(self) -> Request | None:
        """Return what was asked for last."""
        return self._read(Request, self._request)[0]

    def beats(self) -> tuple[Heartbeat, ...]:
        """Return the heartbeats of those who are there; one that cannot be read is not."""
        found = []
        for name, data in self._registry.entries().items():
            try:
                found.append(decode(Heartbeat, data))
            except ValueError as error:
                _log.warning("%s/%s: %s", self._members, name, error)
        return tuple(found)

    def pools(self) -> dict[str, Pool]:
        """Return what the pools say that are there; one that cannot be read is not ready."""
        return {name: _pool(data) for name, data in self._pools.entries().items()}

    def holder(self) -> str | None:
        """Return who has the right to be writable, or is the first in line for it."""
        return next((candidate.name for candidate in self._election.candidates()), None)

    def paused(self) -> str:
        """Return who has paused promotions, when and why; empty: nobody."""
        try:
            pause = self._election.paused()
        except zkelect.InvalidArgument:  # nobody has ever stood, so nobody can have paused it
            return ""
        return "" if pause is None else str(pause)

    # --- writing -------------------------------------------------------------------------------

    def register(self, beat: Heartbeat) -> zkelect.Registration:
        """Put up our heartbeat, which stays as long as our session."""
        return self._registry.register(beat.name, encode(beat))

    def register_pool(self, name: str, pool: Pool) -> zkelect.Registration:
        """Put up a pool's note, which stays as long as our session."""
        return self._pools.register(name, encode(pool))

    def turn(
        self, leadership: zkelect.Leadership, page: Page, *, version: int, sync_version: int
    ) -> None:
        """Write the next page, if nobody has and we still lead as the coordinator.

        Whoever may win was read from the sync set, so that must be what it was as well.

        :raises zkelect.RequestFailed: one of them has changed, or it is not known.
        """
        with ZnodeFence(leadership).transaction() as transaction:
            transaction.check(self._sync, sync_version)
            transaction.set_data(self._page, encode(page), version)

    def confirm(self, leadership: zkelect.Leadership, version: int) -> None:
        """Make sure that this is still the page, at an instant at which we have this leadership.

        :raises zkelect.RequestFailed: there is another page. :raises zkelect.Refused: it is over.
        """
        with ZnodeFence(leadership).transaction() as transaction:
            transaction.check(self._page, version)

    def record(self, leadership: zkelect.Leadership, sync: SyncSet, *, version: int) -> None:
        """Record who has everything, as the primary and under the page that was read."""
        with ZnodeFence(leadership).transaction() as transaction:
            transaction.check(self._page, version)
            transaction.set_data(self._sync, encode(sync))

    def ask(self, request: Request) -> None:
        """Ask for a switchover, in place of what was asked before."""
        znode = self._znodes.get(self._request)
        if znode is None:
            expected = "the path of a cluster whose agents have run: nobody has asked for anything"
            raise zkelect.InvalidArgument("path", self.path, expected)
        if not self._znodes.replace(self._request, encode(request), version=znode.version):
            told = "somebody else has asked for something at the same time; look, then ask again"
            raise zkelect.RequestFailed(self._request, "write", told)

    def withdraw(self, request: Request) -> None:
        """Ask for nothing more, unless somebody else has asked meanwhile."""
        znode = self._znodes.get(self._request)
        if znode is not None and znode.data == encode(request):
            self._znodes.replace(self._request, b"", version=znode.version)

    # --- within --------------------------------------------------------------------------------

    def _read(self, kind: type[_Value], path: str) -> tuple[_Value | None, int]:
        znode = self._znodes.get(path)
        return self._value(kind, path, znode), -1 if znode is None else znode.version

    def _value(self, kind: type[_Value], path: str, znode: zkelect.Znode | None) -> _Value | None:
        """Return what is written there; what cannot be read must not count as nothing."""
        if znode is None or not znode.data:
            return None
        try:
            return decode(kind, znode.data)
        except ValueError as error:
            told = f"{error}; mend it, or stop all agents and empty it"
            raise zkelect.RequestFailed(path, "read", told) from error


def _pool(data: bytes) -> Pool:
    try:
        return decode(Pool, data)
    except ValueError:
        return Pool()
