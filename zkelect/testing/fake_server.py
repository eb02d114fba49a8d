"""Servers in memory: each a copy of the znodes, and the connections of its clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import attrs

from zkelect.session import wire
from zkelect.testing.conversation import REPLIES, REQUESTS, Direction
from zkelect.testing.fake_clock import VirtualClock
from zkelect.testing.fake_quorum import Quorum
from zkelect.testing.fake_tree import Code, Create, Happened, Operation, Refusal, Stat, Znode

__all__ = ["Connection", "FakeServer", "Handshake", "News", "Question", "Reply"]

_EXPIRED: Final = wire.ConnectResponse(timeout=0, session_id=0, password=b"", read_only=False)


# --- what passes over a connection ------------------------------------------------------------


@attrs.frozen(kw_only=True, eq=False)
class Question:
    """One request.

    :param name: ZooKeeper's name of it. :param operations: of a write. :param path: of a read.
    :param watched: whether a watch is asked for.
    """

    name: str
    operations: tuple[Operation, ...] = ()
    path: str = ""
    watched: bool = False

    @property
    def writes(self) -> bool:
        """Whether it needs a quorum."""
        return bool(self.operations)


@attrs.frozen(kw_only=True)
class Handshake:
    """The answer to the connect request."""

    response: wire.ConnectResponse


@attrs.frozen(kw_only=True)
class Reply:
    """The answer to the oldest unanswered request; an error is a Refusal."""

    zxid: int
    answer: Any


@attrs.frozen(kw_only=True)
class News:
    """A watch event."""

    path: str
    happened: Happened


@attrs.define(kw_only=True, eq=False)
class Connection:
    """What is under way between one client and one server.

    :ivar requests: on their way to the server. :ivar replies: on their way to the client.
    :ivar session_id: whose it is; None before the handshake.
    :ivar broken: it has ended, and the client has not noticed yet.
    :ivar swallows: nothing gets through any more, to the server or to the client, and
        neither is told.
    :ivar faults: asked about everything that is about to pass.
    """

    server: FakeServer
    faults: Callable[[Connection, str, str], bool]
    requests: deque[Question] = attrs.field(factory=deque)
    replies: deque[Handshake | Reply | News] = attrs.field(factory=deque)
    session_id: int | None = None
    broken: bool = False
    swallows: set[Direction] = attrs.field(factory=set)

    def ask(self, question: Question) -> None:
        """Send a request, if it gets through."""
        if not self.broken and REQUESTS not in self.swallows:
            self.requests.append(question)

    def answer(self, name: str, message: Handshake | Reply | News) -> None:
        """Send something to the client, if it gets through."""
        kind = "event" if isinstance(message, News) else "reply"
        if not self.faults(self, kind, name) and REPLIES not in self.swallows:
            self.replies.append(message)

    def cut(self, directions: set[Direction]) -> None:
        """Swallow from now on, and what is under way."""
        self.swallows.update(directions)
        if REQUESTS in directions:
            self.requests.clear()
        if REPLIES in directions:
            self.replies.clear()

    def break_off(self, lost: str) -> None:
        """End because something was lost: what is behind it does not get through either."""
        if lost == "event":
            return
        self.broken = True
        if lost == "request":
            self.swallows.add(REQUESTS)
            self.requests.clear()
        else:
            self.swallows.add(REPLIES)

    def owned(self, operation: Operation) -> Operation:
        """Whose an ephemeral znode is, is told by the connection over which it was asked for."""
        if isinstance(operation, Create) and operation.ephemeral and self.session_id is not None:
            return attrs.evolve(operation, owner=self.session_id)
        return operation

    @property
    def servable(self) -> bool:
        """Whether the server can do the next request: a write needs a quorum."""
        if not self.requests or not self.server.running:
            return False
        return self.server.commits or not self.requests[0].writes


# --- a server ---------------------------------------------------------------------------------


class FakeServer:
    """One server of a :class:`FakeEnsemble`.

    :ivar address: ``fake-1:2181`` and so on.
    :ivar tree: the znodes as this server has them.
    :ivar running: it takes connections.
    :ivar lagging: it applies what the others have agreed on only when a write of its own
        clients makes it; reads show the past.
    :ivar isolated: it hears of no other server and does not know it: it answers reads and
        pings, as a leader does that was deposed.
    :ivar limits: least and longest session timeout it grants, seconds.
    """

    def __init__(
        self, index: int, quorum: Quorum, clock: VirtualClock, limits: tuple[float, float]
    ) -> None:
        self.address = f"fake-{index + 1}:2181"
        self.limits = limits
        self.tree: dict[str, Znode] = dict(quorum.tree)
        self.running = True
        self.lagging = False
        self.isolated = False
        self.connections: list[Connection] = []
        self._quorum = quorum
        self._clock = clock
        self._position = 0
        self._heard: dict[int, float] = {}
        self._watches: dict[str, dict[Connection, None]] = {}
        quorum.servers.append(self)

    @property
    def zxid(self) -> int:
        """The last transaction it has applied."""
        return self._quorum.log[self._position - 1].zxid if self._position else 0

    # --- what can be done to it ----------------------------------------------------------------

    def stop(self) -> None:
        """Stop: its connections end, and it takes no new ones."""
        self.running = False
        self._end_all()
        self._quorum.recount()

    def start(self) -> None:
        """Start again, knowing all that the others know."""
        self.running = True
        self._quorum.recount()
        self.follow()

    def lag(self) -> None:
        """Fall behind from now on."""
        self.lagging = True

    def catch_up(self) -> None:
        """Apply everything, now and from now on."""
        self.lagging = False
        self.follow()

    def isolate(self) -> None:
        """Lose the others without noticing, as a leader does that is deposed."""
        self.isolated = True
        self._quorum.recount()

    def rejoin(self) -> None:
        """Notice it: end all connections, then serve again."""
        self.isolated = False
        self._end_all()
        self._quorum.recount()
        self.follow()

    def recover(self) -> None:
        """End whatever is wrong with it."""
        self.running, self.lagging = True, False
        if self.isolated:
            self.rejoin()
        self._quorum.recount()
        self.follow()

    # --- serving -------------------------------------------------------------------------------

    @property
    def votes(self) -> bool:
        """Whether it belongs to the majority, if there is one."""
        return self.running and not self.isolated

    @property
    def commits(self) -> bool:
        """Whether it can have a write committed."""
        return self.votes and self._quorum.leader is not None

    def hear(self, connection: Connection) -> None:
        """Hear of a client; a leader counts that at once, the others report it to it."""
        if connection.session_id is None:
            return
        if self._quorum.leader is self:
            self._quorum.touch(connection.session_id, self._clock.now)
        else:
            self._heard[connection.session_id] = self._clock.now

    def report(self) -> dict[int, float]:
        """Tell which sessions were heard of since the last time."""
        if not self.votes:
            return {}
        heard, self._heard = self._heard, {}
        return heard

    def accepts(self, seen: int) -> bool:
        """Whether it takes a client that has seen so much: no server shows anybody the past."""
        return self.running and self.zxid >= seen

    def greet(
        self, connection: Connection, session: tuple[int, bytes] | None, timeout: float
    ) -> None:
        """Answer the connect request; without a quorum no session can be told from another."""
        self.connections.append(connection)
        if not self.commits or REQUESTS in connection.swallows:
            return
        granted = min(max(timeout, self.limits[0]), self.limits[1])
        if session is None:
            record = self._quorum.open(granted)
        else:
            known = self._quorum.resume(*session, granted)
            if known is None:
                connection.answer("connect", Handshake(response=_EXPIRED))
                connection.broken = True
                return
            record = known
        connection.session_id = record.session_id
        response = wire.ConnectResponse(
            timeout=granted,
            session_id=record.session_id,
            password=record.password,
            read_only=False,
        )
        connection.answer("connect", Handshake(response=response))

    def serve(self, connection: Connection) -> None:
        """Do the next request of a client."""
        question = connection.requests.popleft()
        if connection.faults(connection, "request", question.name):
            return
        if connection.session_id not in self._quorum.sessions:
            connection.broken = True
            return
        self.hear(connection)
        answer = self._do(connection, question)
        connection.answer(question.name, Reply(zxid=self.zxid, answer=answer))

    def disown(self, session_id: int) -> None:
        """End a session's connection: it is resumed on another one."""
        for connection in tuple(self.connections):
            if connection.session_id == session_id:
                connection.broken = True
                self.forget(connection)

    def forget(self, connection: Connection) -> None:
        """Notice the end of a connection: its watches are gone."""
        if connection in self.connections:
            self.connections.remove(connection)
        for path in tuple(self._watches):
            self._watches[path].pop(connection, None)
            if not self._watches[path]:
                del self._watches[path]

    @property
    def watches(self) -> dict[str, int]:
        """How many connections watch which path."""
        return {path: len(watchers) for path, watchers in self._watches.items()}

    # --- within --------------------------------------------------------------------------------

    def _do(self, connection: Connection, question: Question) -> Any:
        if question.writes:
            answers = self._quorum.commit(*map(connection.owned, question.operations))
            self._apply_all()
            return _WRITTEN.get(question.name, _only)(answers)
        return self._read(connection, question)

    def _read(self, connection: Connection, question: Question) -> Any:
        """``exists`` leaves its watch also where there is no znode, the others do not."""
        znode = self.tree.get(question.path)
        if question.watched and (znode is not None or question.name == "exists"):
            self._watches.setdefault(question.path, {})[connection] = None
        if znode is None:
            return None if question.name == "exists" else Refusal(Code.NO_NODE)
        return _READ[question.name](znode)

    def follow(self) -> None:
        """Apply what was committed, as far as it gets here."""
        if self.running and not self.lagging and not self.isolated:
            self._apply_all()

    def _apply_all(self) -> None:
        while self._position < len(self._quorum.log):
            transaction = self._quorum.log[self._position]
            self._position += 1
            for path, znode in transaction.changes.items():
                if znode is not None:
                    self.tree[path] = znode
                else:
                    self.tree.pop(path, None)
            for path, happened in transaction.events:
                self._tell(path, happened)

    def _tell(self, path: str, happened: Happened) -> None:
        for connection in self._watches.pop(path, ()):
            connection.answer("event", News(path=path, happened=happened))

    def end_session(self, session_id: int) -> None:
        """End the connection of a session that has ended, if that is heard here."""
        for connection in self.connections:
            if connection.session_id == session_id and not self.isolated:
                connection.broken = True

    def _end_all(self) -> None:
        self._heard.clear()
        for connection in tuple(self.connections):
            connection.broken = True
            connection.requests.clear()
            self.forget(connection)


def _data(znode: Znode) -> tuple[bytes, Stat]:
    return znode.data, znode.stat


def _only(answers: list[Any]) -> Any:
    return answers[0]


def _path(answers: list[Any]) -> Any:
    """The older create tells the path alone."""
    return answers[0] if isinstance(answers[0], Refusal) else answers[0][0]


_WRITTEN: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "multi": lambda answers: answers,
    "create": _path,
}
_READ: Final[dict[str, Callable[[Znode], Any]]] = {
    "getData": _data,
    "exists": lambda znode: znode.stat,
    "getChildren": lambda znode: list(znode.children),
}
