"""A replicated store in memory, and a resource for each of its servers: what agents look after."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import attrs

from zkelect import Leadership
from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer, Member, Observed, Role
from zkelect.recipes.position import Branch, Position, Relation, compare
from zkelect.recipes.resource import NeedsRebuild, NotNow

__all__ = ["Cluster", "Refused", "Server"]

_TAKES_NO_WRITES = "takes no writes"


class Refused(Exception):
    """A write that no server acknowledged."""


@attrs.define(kw_only=True, eq=False)
class Server:
    """One of them.

    :ivar log: the rows it has, from the first.
    :ivar opened: from when to when writers were let in.
    """

    name: str
    role: Role
    history: tuple[Branch, ...]
    log: list[int] = attrs.Factory(list)
    following: str | None = None
    receiving: bool = True
    open: bool = False
    crashed: bool = False
    link: bool = True
    required: frozenset[str] = frozenset()
    marks: list[str] = attrs.Factory(list)
    opened: list[tuple[float, float]] = attrs.Factory(list)
    since: float = 0.0
    armed: float | None = None

    @property
    def position(self) -> Position:
        return Position(self.history, len(self.log))


class Cluster:
    """Servers that replicate when they are written to; ``lock`` stands for their network."""

    def __init__(self, *names: str, system: str = "s") -> None:
        self.lock = threading.RLock()
        self.system = system
        first = names[0]
        root = (Branch("one"),)
        self.servers = {
            name: Server(name=name, role=Role.REPLICA, history=root, following=first)
            for name in names
        }
        primary = self.servers[first]
        primary.role, primary.following, primary.open, primary.since = (
            Role.PRIMARY,
            None,
            True,
            now(),
        )
        self.branches = 0
        self.promoted: list[tuple[str, str]] = []

    # --- what clients do -----------------------------------------------------------------------

    def write(self, name: str, row: int) -> None:
        """Write to one server; what is acknowledged has gone to all for whom it waits."""
        with self.lock:
            server = self.servers[name]
            if not self.writable(server):
                raise Refused(f"{name} {_TAKES_NO_WRITES}")
            server.log.append(row)
            self.replicate(server)
            lacking = [
                other
                for other in server.required
                if len(self.servers[other].log) < len(server.log)
                or self.servers[other].history != server.history
            ]
            if lacking:
                raise Refused(f"{name} waits for {lacking}")

    def writable(self, server: Server) -> bool:
        stopped = server.armed is not None and now() >= server.armed
        return server.role is Role.PRIMARY and server.open and not server.crashed and not stopped

    def writable_names(self) -> list[str]:
        with self.lock:
            return [server.name for server in self.servers.values() if self.writable(server)]

    def replicate(self, primary: Server) -> None:
        for other in self.servers.values():
            follows = compare(other.position, primary.position) in (Relation.BEHIND, Relation.EQUAL)
            if self.attached(other, primary) and follows:
                other.log, other.history = list(primary.log), primary.history

    def attached(self, other: Server, primary: Server) -> bool:
        follows = other.role is Role.REPLICA and other.following == primary.name
        return follows and other.receiving and other.link and not other.crashed

    # --- faults ----------------------------------------------------------------------------------

    def crash(self, name: str) -> None:
        """Kill the server, not its agent."""
        with self.lock:
            server = self.servers[name]
            self.shut(server)
            server.crashed = True

    def restart(self, name: str) -> None:
        """Start a server that was killed; it never takes writes by itself."""
        with self.lock:
            server = self.servers[name]
            server.crashed = False
            if server.role is Role.PRIMARY:
                server.role = Role.DEMOTED

    def lag(self, name: str) -> None:
        """Let no more rows come to this one, as over a dead link."""
        with self.lock:
            self.servers[name].link = False

    def shut(self, server: Server) -> None:
        if server.open:
            server.opened.append((server.since, now()))
        server.open = False


class MemoryResource:
    """The resource of one server of a cluster in memory.

    :ivar before: called with the name of each act before it is done: to fail, to wait, to look.
    """

    def __init__(self, cluster: Cluster, name: str, *, priority: int = 0) -> None:
        self._cluster = cluster
        self._server = cluster.servers[name]
        self._member = Member(name=name, address=f"memory:{name}", priority=priority)
        self.acts: list[str] = []

    def before(self, act: str) -> None:
        """Do nothing; a test puts something else here."""

    @contextmanager
    def _acting(self, act: str) -> Iterator[Server]:
        self.before(act)
        with self._cluster.lock:
            self.acts.append(act)
            if self._server.crashed and act not in ("demote", "arm"):
                raise NotNow(f"{self._server.name} is down")
            yield self._server

    @property
    def member(self) -> Member:
        return self._member

    def check(self) -> None: ...

    def observe(self) -> Observed:
        with self._cluster.lock:
            server = self._server
            return Observed(
                role=Role.STOPPED if server.crashed else server.role,
                position=server.position,
                healthy=not server.crashed,
                system=self._cluster.system,
            )

    def reach(self, member: Member) -> Answer:
        with self._cluster.lock:
            other = self._cluster.servers[member.name]
            return Answer.YES if self._cluster.writable(other) else Answer.NO

    def demote(self, *, planned: bool, deadline: float) -> Position | None:
        with self._acting("demote") as server:
            if server.role is Role.PRIMARY:
                if planned and server.open and not server.crashed:
                    self._cluster.replicate(server)
                self._cluster.shut(server)
                server.role = Role.DEMOTED
            return server.position

    def fence(self, member: Member, deadline: float) -> Answer:
        return Answer.NO

    def freeze(self, until: Position | None, deadline: float) -> Position:
        with self._acting("freeze") as server:
            server.receiving = False
            return server.position

    def catch_up(self, deadline: float) -> Position:
        with self._acting("catch up") as server:
            return server.position

    def promote(self, deadline: float) -> Position:
        with self._acting("promote") as server:
            if server.role is not Role.PRIMARY:
                self._cluster.branches += 1
                branch = Branch(f"{server.name}.{self._cluster.branches}", len(server.log))
                server.history = (*server.history, branch)
                server.role, server.following = Role.PRIMARY, None
            return server.position

    def verify(self, deadline: float) -> Position:
        with self._acting("verify") as server:
            if server.role is not Role.PRIMARY:
                raise RuntimeError(f"{server.name} is {server.role}")
            return server.position

    def claim(self, leadership: Leadership) -> None:
        with self._acting("claim") as server:
            token = str(leadership.check())
            assert not server.marks or server.marks[-1] <= token
            server.marks.append(token)
            self._cluster.promoted.append((token, server.name))

    def open(self, deadline: float) -> Position:
        with self._acting("open") as server:
            if not server.open:
                server.open, server.since, server.receiving = True, now(), True
            return server.position

    def follow(self, primary: Member, position: Position | None, deadline: float) -> None:
        with self._acting("follow") as server:
            source = self._cluster.servers[primary.name]
            if not self._cluster.writable(source):
                raise NotNow(f"{primary.name} {_TAKES_NO_WRITES}")
            relation = compare(server.position, source.position)
            if relation is Relation.UNRELATED:
                raise NeedsRebuild("it has another history from the first row on")
            if relation not in (Relation.BEHIND, Relation.EQUAL):  # rewound
                server.log, server.history = list(source.log), source.history
            server.role, server.following, server.receiving = Role.REPLICA, primary.name, True
            self._cluster.replicate(source)

    def arm(self, deadline: float) -> None:
        with self._cluster.lock:
            self._server.armed = deadline

    def disarm(self) -> None:
        with self._cluster.lock:
            self._server.armed = None

    # --- synchronous ---------------------------------------------------------------------------

    def require(self, names: Collection[str], deadline: float) -> None:
        with self._acting("require") as server:
            server.required = frozenset(names)

    def in_step(self) -> Collection[str]:
        with self._cluster.lock:
            if self._server.crashed:
                raise NotNow(f"{self._server.name} is down")
            self._cluster.replicate(self._server)
            return [
                other.name
                for other in self._cluster.servers.values()
                if self._cluster.attached(other, self._server)
                and other.position == self._server.position
            ]
