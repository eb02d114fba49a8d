"""ZnodeFence: the log is znodes, made in the multi that needs the candidate to be there.

Nothing is claimed: the candidate is the mark. The latest value is read in the session that
writes, as the fence asks for; another session, a client beside it, may be at a server that
lags, and then would read an old one. Their order is the servers' own, of their creation.
"""

from __future__ import annotations

import json
import math
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

import attrs
from kazoo.client import KazooClient

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from chaos.traps import Trap
from zkelect import Leadership
from zkelect.core.lease import Lease
from zkelect.errors import Unclaimed
from zkelect.session.committing import Committer
from zkelect.stores import ZnodeFence
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    import zkelect
    from chaos.stores import Place, Store
    from zkelect.core.events import Reason, Stamp
    from zkelect.session.clock import Clock
    from zkelect.session.committing import Batch
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 2.0
_LOG_TIMEOUT: Final = 30.0
_AT_ONCE, _SOON = "at once", "soon"
_SOON_IS: Final = 0.002


class _Znode:
    def __init__(self, place: Place) -> None:
        self._hosts = place.hosts
        self._session = place.session
        self._path = f"/chaos-log-{place.directory.name}"
        self._trap = Trap(place.directory / "znode.trap", (_AT_ONCE, _SOON))
        self._leadership: Leadership | None = None

    @contextmanager
    def serve(self) -> Iterator[None]:
        with _connected(self._hosts) as kazoo:
            kazoo.create(self._path)
        yield

    def claim(self, claimant: Claimant) -> None:
        """Nothing is to be raised; we only remember whose token may come bare later."""
        assert isinstance(claimant, Leadership)
        self._leadership = claimant

    def read(self) -> str:
        """Get, behind a sync that is new to the deaf server which a proxy plays: it is silent then.

        The get it knows, but as it was answered before a write of ours that the true server,
        whose place it took, had seen.
        """
        assert self._session is not None
        kazoo = self._session.link.client
        if not self._session.connected:
            raise ConnectionError("kazoo would keep the question until there is a connection")
        asked = kazoo.sync_async(f"{self._path}/{boottime()}"), kazoo.get_async(self._path)
        _, (data, _) = (answer.get(timeout=_TIMEOUT) for answer in asked)
        return str(data, "ascii")

    def append(self, claimant: Claimant, row: Row) -> None:
        leader = self._late(claimant) if isinstance(claimant, Token) else claimant
        assert isinstance(leader, Leadership)
        with ZnodeFence(leader, timeout=_TIMEOUT).transaction() as transaction:
            told = json.dumps(attrs.asdict(attrs.evolve(row, at=boottime())))
            transaction.create(f"{self._path}/{row.op}", told.encode())
            transaction.set_data(self._path, row.op.encode())
            self._cut(self._trap.spring())

    def log(self) -> Sequence[Row]:
        with _connected(self._hosts) as kazoo:
            kazoo.sync(self._path)
            names = kazoo.get_children(self._path)
            asked = [kazoo.get_async(f"{self._path}/{name}") for name in names]
            found = [answer.get(timeout=_LOG_TIMEOUT) for answer in asked]
        found.sort(key=lambda znode: int(znode[1].czxid))
        return [Row(**json.loads(data)) for data, _ in found]

    def disturb(self) -> AbstractContextManager[None]:
        return self._trap.laid()

    def _late(self, token: Token) -> Leadership:
        """Return the leadership of that token as of one who has checked it, and was stopped then.

        Its lease never ends, so its commit is sent whenever it comes. All the rest is as ever.
        """
        session, true = self._session, self._leadership
        assert session is not None
        if true is None or true.token != token:  # its term was over before it came to claim
            raise Unclaimed(store="zookeeper", domain=DOMAIN, token=token)
        lease = Lease()
        lease.deadline = math.inf
        return Leadership(
            token=token,
            path=true.path,
            name=true.name,
            node=true.node,
            term=true.term,
            lease=lease,
            office=_LateOffice(session, true),
        )

    def _cut(self, when: str) -> None:
        """Drop the session's connection while the multi is under way."""
        if when:
            assert self._session is not None
            delay = _SOON_IS if when == _SOON else 0.0
            threading.Timer(delay, self._session.link.shut).start()


@attrs.frozen
class _LateOffice:
    """The office of a leadership that no longer holds it: nothing can end it again."""

    session: zkelect.Session
    leadership: Leadership

    @property
    def clock(self) -> Clock:
        return self.session.clock

    @property
    def zxid(self) -> int:
        return self.leadership.zxid

    def end_term(self, term: Stamp, reason: Reason) -> None: ...

    def batch(self, leadership: Leadership) -> Batch:
        return Committer(self.session, leadership.path).batch(leadership)


@contextmanager
def _connected(hosts: str) -> Iterator[KazooClient]:
    """Lend a plain client at the servers themselves."""
    kazoo = KazooClient(hosts, timeout=10.0)
    with closing(kazoo):
        kazoo.start()
        yield kazoo
        kazoo.stop()


def make(place: Place) -> Store:
    """Return the store whose znodes are named after the run's folder."""
    return _Znode(place)
