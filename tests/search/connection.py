"""What kazoo and the observed handler do for a session: dial, ping, hand answers over."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

import attrs

from search.log import Kind, Stand, Transaction
from search.network import Link
from search.server import Server, Visit
from zkelect.core.lease import patience_of

if TYPE_CHECKING:
    from search.client import Client

__all__ = ["Dialler", "Gateway"]

_LEAST_DIAL_TIMEOUT: Final = 1.0


class Dialler:
    """Keeps a connection to one of the servers, and the session alive when nothing is asked.

    :ivar visit: the present connection, None between two.
    :ivar next: the server to try next, None to leave it to chance.
    :ivar started: when it was begun, in the client's clock.
    :ivar zxid: the last one that a server has told; older servers refuse us.
    """

    def __init__(self, client: Client, servers: Sequence[Server], chance: Random) -> None:
        self._client = client
        self._servers = servers
        self._chance = chance
        self.visit: Visit | None = None
        self.server = servers[0]
        self.next: Server | None = None
        self.started = -math.inf
        self.welcomed = False
        self.zxid = 0
        self._pings = 0
        self._sent = 0.0

    def has(self, link: Link) -> bool:
        """Whether this is the present connection."""
        return self.visit is not None and self.visit.link is link

    def dial(self) -> None:
        """Try a server."""
        client = self._client
        if self.visit is not None or client.over:
            return
        self.server = self.next or self._chance.choice(self._servers)
        self.started = client.boottime()
        link = client.ensemble.network.open(client, self.server)
        self.visit = Visit(client, client.number, link, self.zxid)
        self.welcomed, self._pings = False, 0
        self.send(self.server.connect, self.visit)
        client.kick()

    def send(self, call: Callable[..., None], *args: Any) -> None:
        """Send something on the present connection, if there is one."""
        if self.visit is not None:
            self._sent = self._client.boottime()
            self.visit.link.tell(self._client, call, *args)

    def shut(self) -> None:
        """Drop the present connection; another one follows soon, as with kazoo's back-off."""
        if self.visit is None:
            return
        self.visit.link.close(self._client)
        self.visit = None
        self._client.suspended()
        soon = self._client.timeline.now + self._chance.choice(
            (0.01, self._chance.uniform(0.05, 1.0))
        )
        self._client.timeline.at(soon, self._client, self.dial)

    def overdue(self, now: float) -> bool:
        """Whether a server has been dialled and keeps silent."""
        limit = max(patience_of(self._client.timeout), _LEAST_DIAL_TIMEOUT)
        return self.visit is not None and not self.welcomed and now - self.started > 2 * limit

    def keep_alive(self, visit: Visit | None = None) -> None:
        """Ping when nothing was sent for T/3; an unanswered ping ends the connection."""
        if visit is not self.visit or self.visit is None:
            return
        client, period = self._client, self._client.timeout / 3
        if self._pings:
            self.shut()
            return
        if client.boottime() - self._sent >= period * 0.9:
            self._pings += 1
            self.send(self.server.ping, self.visit)
        again = client.timeline.now + period / client.rate
        client.timeline.at(again, client, self.keep_alive, self.visit)

    def ponged(self, link: Link) -> None:
        """Hear the answer to a ping."""
        if self.has(link):
            self._pings = 0


@attrs.frozen(eq=False)
class _Request:
    asked: float
    link: Link
    probe: bool
    done: Callable[[Any], None]
    answer: Any


class Gateway:
    """Requests in the order of their answers; the other face of zkelect's own Gateway."""

    def __init__(self, client: Client, handing: float, chance: Random) -> None:
        self._client = client
        self._handing = handing
        self._chance = chance
        self._requests: deque[_Request] = deque()
        self._arrived = -math.inf
        self._handed = 0.0

    def multi(self, checks: Sequence[object], done: Callable[[Any], None], *, urgent: bool) -> None:
        """Send a probe; every item of its answer is OK, since no znode goes on its own."""
        assert urgent, "a probe must not wait behind a crowd"
        self._send(Kind.CHECK, None, done, [True] * len(checks))

    def change(self, kind: Kind, stand: Stand, done: Callable[[Any], None]) -> None:
        """Join or leave the roll."""
        self._send(kind, stand, done, None)

    def silent_since(self) -> float | None:
        """Return since when the server owes an answer."""
        if not self._requests:
            return None
        return max(self._requests[0].asked, self._arrived)

    def forget(self) -> None:
        """The connection is gone; nobody will answer."""
        self._requests.clear()

    def arrived(self) -> bool:
        """Take the next answer off the socket; whether it is a probe's.

        The library hears of it on another thread, which may take a while.
        """
        request = self._requests.popleft()
        client = self._client
        self._arrived = client.boottime()
        handed = client.timeline.now + self._chance.uniform(0, self._handing)
        self._handed = max(handed, self._handed)
        client.timeline.at(self._handed, client, self._hand, request)
        return request.probe

    def _send(
        self, kind: Kind, stand: Stand | None, done: Callable[[Any], None], answer: Any
    ) -> None:
        client, visit = self._client, self._client.link.visit
        assert visit is not None
        asked = client.boottime()
        self._requests.append(_Request(asked, visit.link, kind is Kind.CHECK, done, answer))
        transaction = Transaction(kind, client.number, visit.link, stand)
        client.link.send(client.link.server.request, visit, transaction)

    def _hand(self, request: _Request) -> None:
        client = self._client
        if request.probe and not client.link.has(request.link) and client.lease.pending:
            client.lease.answer_late()
        request.done(request.answer)
