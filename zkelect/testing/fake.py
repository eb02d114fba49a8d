"""An ensemble in memory, its clients, and a clock: every message waits until it is let through.

Everything above kazoo is the real code: :class:`zkelect.Session` with its watchdog, probes
and lease, and :class:`zkelect.Election`. Only kazoo and the servers are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import attrs

from zkelect.errors import InvalidArgument, Misuse, RequestFailed
from zkelect.session.session import Session
from zkelect.testing.conversation import REPLIES, REQUESTS, Direction
from zkelect.testing.fake_client import FakeClient
from zkelect.testing.fake_clock import MachineClock, VirtualClock
from zkelect.testing.fake_link import FakeLink
from zkelect.testing.fake_machine import Machine, Move
from zkelect.testing.fake_pool import TurnedPool
from zkelect.testing.fake_quorum import Quorum
from zkelect.testing.fake_server import Connection, FakeServer
from zkelect.testing.fake_tree import Create, Delete, Operation, Put, Refusal, Transaction, Znode

__all__ = ["FakeEnsemble", "Step"]

_LEAST_ADVANCE: Final = 0.01
"""Seconds: a watchdog that wants its turn at once, again and again, must not stop the time."""

_ENDLESS: Final = 20_000
"""So many steps without an end are an error of the code under test."""


@attrs.frozen
class Step:
    """One move of one session."""

    session: Session = attrs.field(repr=False)
    move: Move


@attrs.define(kw_only=True)
class _Fault:
    client: FakeClient
    kind: str
    name: str
    left: int


class FakeEnsemble:
    """ZooKeeper in memory, without network, threads or time of its own.

    ::

        fake = FakeEnsemble()
        session = fake.connect()
        election = zkelect.Election(session, "/elections/billing")
        election.start()
        fake.settle()                   # every message is let through
        expire(session)                 # as with a real server
        fake.advance(3.0)               # seconds of its clock

    Nothing happens unless :meth:`settle`, :meth:`advance` or :meth:`take` let it: so a test
    chooses in which order things happen. Nothing can be waited for, so ``campaign()`` and
    ``run()`` raise Misuse, and ``leader()`` gets no answer; ``start()`` and ``listen()`` do not
    wait, and callbacks run as steps like everything else. Access rights are not
    looked at. Not for use by several threads.

    :param servers: how many there are; 1 or more. :param tick_time: theirs, seconds above 0;
        they grant session timeouts from 2 to 20 of it.
    :raises InvalidArgument: a number is outside its range.

    :ivar clock: the time of this world. :ivar servers: each can lag, lose the quorum, stop.
    :ivar sessions: those that were connected here and are not closed.
    """

    def __init__(self, servers: int = 1, *, tick_time: float = 2.0) -> None:
        if servers < 1:
            raise InvalidArgument("servers", servers, "1 or more")
        if not 0 < tick_time < math.inf:
            raise InvalidArgument("tick_time", tick_time, "seconds above 0")
        limits = 2 * tick_time, 20 * tick_time
        self.clock: Final = VirtualClock(now=1000.0)
        self.tick_time: Final = tick_time
        self._quorum = Quorum(self.clock, tick_time)
        self.servers: Final = tuple(
            FakeServer(n, self._quorum, self.clock, limits) for n in range(servers)
        )
        self._quorum.elect()
        self._machines: dict[Session, Machine] = {}
        self._homes: dict[FakeClient, int] = {}
        self._faults: list[_Fault] = []

    def __repr__(self) -> str:
        return f"<FakeEnsemble of {len(self.servers)} at {self.clock.now:.2f} s>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- sessions ----------------------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """What stands for a connection string; nothing listens there."""
        return ",".join(server.address for server in self.servers)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions that are not closed."""
        return tuple(session for session in self._machines if not session.closed)

    def connect(
        self,
        *,
        session_timeout: float = 10.0,
        tick_time: float | None = None,
        hops: int = 1,
        server: int = 0,
    ) -> Session:
        """Open a session, as :func:`zkelect.connect` does, for a machine of its own.

        :param server: which one to dial first, from 0; the others in turn.
        """
        clock = MachineClock(self.clock)
        pool = TurnedPool(clock.boottime)
        made: list[FakeClient] = []

        def make_link(session: Session) -> FakeLink:
            client = FakeClient(
                session_timeout=session_timeout,
                clock=clock,
                observer=session,
                choose=self._choose,
                faults=self._is_lost,
            )
            made.append(client)
            session.pool = pool
            return FakeLink(client, expire=self._expire, end=self._end)

        session = Session(
            hosts=self.hosts,
            session_timeout=session_timeout,
            make_link=make_link,
            acl=(),
            tick_time=tick_time,
            hops=hops,
            clock=clock,
        )
        machine = Machine(clock, made[0], pool, session)
        self._machines[session] = machine
        self._homes[made[0]] = server
        session.begin(threaded=False)
        for move in (Move.DIAL, Move.READ):
            if move in machine.moves:
                machine.make(move)
        machine.turn()
        return session

    def close(self) -> None:
        """Close every session; what still stands is left to expire."""
        for session in self.sessions:
            session.close(timeout=0.0)

    # --- letting things happen ---------------------------------------------------------------

    @property
    def steps(self) -> list[Step]:
        """Everything that can happen next."""
        return [
            Step(session, move)
            for session, machine in self._machines.items()
            for move in machine.moves
        ]

    def take(self, step: Step) -> None:
        """Let one of the :attr:`steps` happen."""
        machine = self._machines[step.session]
        if step.move not in machine.moves:
            raise Misuse(f"{step.move!r} cannot happen now; see steps")
        machine.make(step.move)

    def deliver_next(self) -> bool:
        """Let the next step happen; return whether there was one."""
        for machine in self._machines.values():
            move = machine.next_move
            if move is not None:
                machine.make(move)
                return True
        return False

    def settle(self, choose: Callable[[Sequence[Step]], Step] | None = None) -> None:
        """Let everything happen that can, until all is quiet; no time passes.

        :param choose: picks the next step, such as ``random.Random(7).choice``; None: the
            first.
        """
        for _ in range(_ENDLESS):
            if self._advance_one(choose):
                continue
            self.turn()
            if not self._advance_one(choose):
                return
        raise Misuse(f"{_ENDLESS} steps, and no end: {self.steps}")

    def turn(self) -> None:
        """Let every session's watchdog look at everything, now."""
        for machine in self._machines.values():
            machine.turn()

    def advance(
        self, seconds: float, choose: Callable[[Sequence[Step]], Step] | None = None
    ) -> None:
        """Let time pass, and everything happen in it at its time; see :meth:`settle`.

        :param seconds: 0 or more. :raises InvalidArgument: no clock of a lease goes back.
        """
        until = self.clock.later(seconds)
        self.settle(choose)
        while self.clock.now < until:
            self.elapse(min(self.due, until) - self.clock.now)
            self.settle(choose)

    def elapse(self, seconds: float) -> None:
        """Let time pass, and nothing happen but what it brings about by itself.

        Servers expire sessions, clients send pings and give up dead connections.
        """
        until = self.clock.later(seconds)
        while True:
            awake = [each.client for each in self._machines.values() if not each.asleep]
            due = min([until, self._quorum.due, *(client.due for client in awake)])
            self.clock.now = max(self.clock.now, due)
            for client in awake:
                client.pass_time()
            self._quorum.ping()
            self._quorum.expire()
            if due >= until:
                return

    @property
    def due(self) -> float:
        """When something happens by the passing of time alone; always in the future."""
        awake = [machine.due for machine in self._machines.values()]
        return max(min([self._quorum.due, *awake]), self.clock.now + _LEAST_ADVANCE)

    def hold(self, session: Session, *moves: Move) -> None:
        """Let these moves wait until :meth:`release`: a slow network, a busy thread."""
        self._machines[session].held.update(moves)

    def release(self, session: Session) -> None:
        """Hold nothing back any more."""
        self._machines[session].held.clear()

    # --- faults --------------------------------------------------------------------------------

    def drop(self, session: Session) -> None:
        """End the connection. The session lives on; kazoo connects again."""
        self._machines[session].client.shut()

    def move(self, session: Session, server: int) -> None:
        """End the connection, and let another server be dialled next."""
        self._homes[self._machines[session].client] = server
        self.drop(session)

    def cut(self, session: Session, *directions: Direction) -> None:
        """Swallow what passes; the connection looks alive.

        :param directions: ``"requests"``, ``"replies"``; none stands for both.
        """
        client = self._machines[session].client
        client.swallows.update(directions or (REQUESTS, REPLIES))
        if client.connection is not None:
            client.connection.cut(client.swallows)

    def heal(self, session: Session) -> None:
        """End every cut; a connection that has met one is reset."""
        client = self._machines[session].client
        client.swallows.clear()
        if client.connection is not None and client.connection.swallows:
            client.shut()

    def lose_reply(self, session: Session, name: str, nth: int = 1) -> None:
        """Lose the nth reply from now to requests of that name, and the connection with it.

        :param name: ZooKeeper's: "create2" (candidates), "create", "getData", "exists",
            "getChildren", "delete", "multi".
        """
        self._lose(session, "reply", name, nth)

    def lose_request(self, session: Session, name: str, nth: int = 1) -> None:
        """Lose the nth request from now of that name, and the connection with it."""
        self._lose(session, "request", name, nth)

    def lose_event(self, session: Session, nth: int = 1) -> None:
        """Lose the nth watch event from now; nobody notices."""
        self._lose(session, "event", "event", nth)

    def swap(self, session: Session) -> None:
        """Let the next reconnect end in another session, without a word about the old one.

        Some servers do so (ClickHouse #116690).
        """
        self._machines[session].client.swapped = True
        self.drop(session)

    def pause(self, session: Session) -> None:
        """Stop the session's process, as SIGSTOP does; time goes on, and the servers do."""
        self._machines[session].asleep = True

    def resume(self, session: Session) -> None:
        """Let a paused process go on."""
        self._machines[session].asleep = False

    def sleep(self, session: Session, seconds: float) -> None:
        """Suspend the session's machine, while the time of the others goes on."""
        self.pause(session)
        self.advance(seconds)
        self._machines[session].clock.slept += seconds
        self.resume(session)

    def kill(self, session: Session) -> None:
        """Let the session's process die; the servers have what it has sent."""
        self.pause(session)
        client = self._machines[session].client
        if client.connection is not None:
            client.hang_up()

    def elect(self) -> None:
        """Let another server lead the ensemble: every session starts anew with its timeout."""
        self._quorum.elect(besides=self._quorum.leader)

    def mend(self) -> None:
        """End every fault, also those to come. The dead stay dead, the paused paused."""
        self._faults.clear()
        for server in self.servers:
            server.recover()
        for session in self.sessions:
            self.release(session)
            self.heal(session)

    # --- looking, and doing as somebody else ---------------------------------------------------

    @property
    def zxid(self) -> int:
        """The number of the last transaction."""
        return self._quorum.zxid

    @property
    def log(self) -> list[Transaction]:
        """Every transaction there has been."""
        return self._quorum.log

    def znode(self, path: str) -> Znode | None:
        """Return a znode as the majority has it, None when there is none."""
        return self._quorum.tree.get(path)

    def children(self, path: str) -> list[str]:
        """Return the children in the order in which they were made; of nothing, none."""
        znode = self.znode(path)
        found = [] if znode is None else [*znode.children]
        return sorted(found, key=lambda child: self._quorum.tree[f"{path}/{child}"].czxid)

    def owned(self, session_id: int) -> list[str]:
        """Return the paths of a session's ephemeral znodes."""
        tree = self._quorum.tree
        return [path for path, znode in tree.items() if znode.owner == session_id]

    def alive(self, session_id: int) -> bool:
        """Whether that session is open."""
        return session_id in self._quorum.sessions

    def create(self, path: str, data: bytes = b"") -> None:
        """Make a persistent znode. :raises RequestFailed: the servers refuse it."""
        self._do("create", Create(path=path, data=data))

    def put(self, path: str, data: bytes) -> None:
        """Set a znode's data. :raises RequestFailed: the servers refuse it."""
        self._do("write", Put(path=path, data=data))

    def delete(self, path: str) -> None:
        """Delete a znode and all below it. :raises RequestFailed: there is none."""
        for child in self.children(path):
            self.delete(f"{path}/{child}")
        self._do("delete", Delete(path=path))

    def number(self, path: str, following: int) -> None:
        """Set which number the next sequential child of that path gets."""
        self._quorum.tree[path] = attrs.evolve(self._quorum.tree[path], creations=following)

    # --- within ------------------------------------------------------------------------------

    def _advance_one(self, choose: Callable[[Sequence[Step]], Step] | None) -> bool:
        if choose is None:
            return self.deliver_next()
        steps = self.steps
        if steps:
            self.take(choose(steps))
        return bool(steps)

    def _do(self, permission: str, operation: Operation) -> Any:
        (answer,) = self._quorum.commit(operation)
        if isinstance(answer, Refusal):
            raise RequestFailed(operation.path, permission, str(answer))
        return answer

    def _lose(self, session: Session, kind: str, name: str, nth: int) -> None:
        if nth < 1:
            raise InvalidArgument("nth", nth, "1 or more")
        client = self._machines[session].client
        self._faults.append(_Fault(client=client, kind=kind, name=name, left=nth))

    def _is_lost(self, connection: Connection, kind: str, name: str) -> bool:
        for fault in self._faults:
            if fault.client.connection is connection and (fault.kind, fault.name) == (kind, name):
                fault.left -= 1
                if not fault.left:
                    self._faults.remove(fault)
                    connection.break_off(kind)
                    return True
        return False

    def _choose(self, client: FakeClient) -> FakeServer | None:
        home = self._homes[client]
        turned = (*self.servers[home:], *self.servers[:home])
        return next((server for server in turned if server.accepts(client.last_zxid)), None)

    def _expire(self, session_id: int) -> bool:
        """Take the session over on another connection, and close it there."""
        if not self.alive(session_id):
            return False
        for server in self.servers:
            server.disown(session_id)
        self._quorum.close(session_id)
        return True

    def _end(self, client: FakeClient, release: bool) -> None:
        """Let the servers do what was asked before, then close; or leave all as it is."""
        machine = next(each for each in self._machines.values() if each.client is client)
        while release and Move.SERVE in machine.moves:
            machine.make(Move.SERVE)
        if release and client.session is not None:
            self._expire(client.session[0])
        client.close()
        while client.answers:
            client.answers.popleft()()
