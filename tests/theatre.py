"""A stage for candidates: a tiny ensemble, a link to it for each, and the real machine.

Nothing here decides an election: the servers number, keep and delete znodes and fire
watches as ZooKeeper does; what a candidate makes of it is the machine's. Every message
waits in a queue until somebody lets it through, so that a story, or a search, chooses
the order. In three queues, since that is how they arrive: requests on the way to the
server, replies, and watch events (kazoo hands replies and events over on two threads).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Reason, Stamp
from zkelect.core.handover import Handover, HandoverState
from zkelect.core.machine import Machine
from zkelect.core.record import Record
from zkelect.core.state import State
from zkelect.core.znodes import KAZOO
from zkelect.errors import ZkelectError
from zkelect.token import Token

PATH: Final = "/elections/billing"
RECORD: Final = Record(uuid="0123456789abcdef0123456789abcdef")


# --- how things are spelt ------------------------------------------------------------------


def node_of(short_name: str) -> str:
    """Return the znode's full name: A#1 is A__lock__0000000001, of a create with uuid A."""
    uuid, _, number = short_name.partition("#")
    return f"{KAZOO.prefix(uuid)}{int(number):010d}"


def short(node: str) -> str:
    """Return how a story calls a znode; inverse of :func:`node_of`."""
    entry = KAZOO.parse(node)
    return node if entry is None else f"{entry.uuid}#{entry.sequence}"


def spell(what: Event | Effect) -> str:
    """Return an event or effect as a story writes it: its name, and what matters of it."""
    return " ".join((type(what).__name__, *_details(what)))


def _details(what: Event | Effect) -> list[str]:
    match what:
        case ev.Created(node=node, czxid=czxid):
            return [short(node), f"at {czxid}"]
        case ev.Grant(node=node, czxid=czxid):
            return [short(node), f"with token {czxid}"]
        case ev.Watched(node=node, owner=owner):
            return [short(node), f"of {spell_session(owner)}"]
        case ev.SessionOpened(session_id=session_id):
            return [spell_session(session_id)]
        case ev.Rolled(children=children, record=record):
            roll = [short(child) for child in children] or ["nobody"]
            return [*roll, *([] if record == RECORD else [_spell_record(record)])]
        case ev.Recorded(record=record):
            return [_spell_record(record)]
        case ev.Void(reason=reason) | ev.TermEnded(reason=reason):
            return [f"({reason})"]
        case ev.Fail(error=error) | ev.Refused(error=error) | ev.DeleteRefused(error=error):
            return [type(error).__name__]
        case _:
            return [short(what.node)] if hasattr(what, "node") else []


def spell_session(session_id: int | None) -> str:
    """Return the name of a session: A's first is a1, its second a2."""
    if session_id is None:
        return "no session"
    return f"{chr(session_id >> 8).lower()}{session_id & 0xFF}"


def _spell_record(record: Record | None) -> str:
    if record is None:
        return "without a record"
    told = [f"generation {record.generation}", *(["paused"] if record.paused else [])]
    told += [f"{short(eviction.node)} is asked to go" for eviction in record.evictions]
    return ", ".join(told)


def passing(leader: str) -> Handover:
    """Return a switchover that leader drives, to somebody behind all who hear of it."""
    return Handover(
        id="1",
        target=node_of("Z#99"),
        name="Z",
        leader=leader,
        token=Token(lineage="0" * 16, generation=1, czxid=1, holder="0" * 16),
        timeout=1.0,
        state=HandoverState.DRIVEN,
    )


# --- the servers ---------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Znode:
    czxid: int
    owner: int


@attrs.frozen(kw_only=True)
class Tree:
    """What every server agrees on after one transaction; ``gone`` is what that one deleted."""

    nodes: Mapping[str, Znode] = attrs.field(factory=dict)
    parent: bool = True
    record: Record | None = RECORD
    counter: int = 0
    gone: tuple[str, ...] = ()


class Ensemble:
    """All trees there have been; index is zxid. A lagging server looks at an old one."""

    def __init__(self, *, parent: bool = True) -> None:
        self.log = [Tree(parent=parent, record=RECORD if parent else None)]
        self.alive: set[int] = set()

    @property
    def tree(self) -> Tree:
        return self.log[-1]

    @property
    def zxid(self) -> int:
        return len(self.log) - 1

    def commit(self, **changes: Any) -> None:
        self.log.append(evolve(self.tree, **{"gone": (), **changes}))

    def make(self, prefix: str, owner: int) -> str:
        number = self.tree.counter
        node = f"{prefix}{number:010d}"
        znode = Znode(czxid=self.zxid + 1, owner=owner)
        self.commit(nodes={**self.tree.nodes, node: znode}, counter=min(number + 1, 2**31 - 1))
        return node

    def remove(self, *nodes: str) -> None:
        left = {node: znode for node, znode in self.tree.nodes.items() if node not in nodes}
        self.commit(nodes=left, gone=nodes)

    def remove_parent(self) -> None:
        self.remove(*self.tree.nodes)
        self.commit(parent=False, counter=0)

    def expire(self, session_id: int) -> None:
        self.alive.discard(session_id)
        self.remove(*(node for node, znode in self.tree.nodes.items() if znode.owner == session_id))

    def owned_by(self, session_id: int | None) -> list[str]:
        return [short(node) for node, znode in self.tree.nodes.items() if znode.owner == session_id]


# --- one candidate -------------------------------------------------------------------------


Note = Callable[["Candidate", Event, tuple[Effect, ...], State], None]


class Candidate:
    """One machine, its session, and its link to the ensemble.

    :param note: told of every step: the event, what the machine said, its state before.
    """

    def __init__(self, name: str, ensemble: Ensemble, note: Note) -> None:
        self.name = name
        self.ensemble = ensemble
        self.machine = Machine(State(path=PATH))
        self.leased = True
        self.session_id: int | None = None
        self.linked = False
        self.requests: deque[Effect] = deque()
        self.replies: deque[tuple[int, Event]] = deque()
        self.news: deque[Event] = deque()
        self.tasks: deque[Event] = deque()
        self.graces: deque[Event] = deque()
        self.position = 0
        self.performed: list[Effect] = []
        self.finished: list[int] = []
        self.campaigns = 0
        self._note = note
        self._seen = 0
        self._sessions = 0
        self._labels = 1
        self._created: set[str] = set()
        self._watches: dict[str, list[Stamp]] = {}
        self._record_watch: Stamp | None = None

    @property
    def state(self) -> State:
        return self.machine.state

    @property
    def grants(self) -> list[ev.Grant]:
        return [effect for effect in self.performed if isinstance(effect, ev.Grant)]

    @property
    def voids(self) -> list[ev.Void]:
        return [effect for effect in self.performed if isinstance(effect, ev.Void)]

    @property
    def watched(self) -> list[str]:
        return sorted(short(node) for node, stamps in self._watches.items() if stamps)

    @property
    def may_work(self) -> bool:
        """Whether its body may rightfully do the leader's work."""
        return self.state.term is not None and not self.state.released

    # --- what the program and its session say ------------------------------------------------

    def feed(self, event: Event) -> None:
        """Step the machine and do what it says."""
        event = evolve(event, leased=self.leased)
        before = self.state
        effects = self.machine.step(event)
        self._note(self, event, effects, before)
        self.performed.extend(effects)
        for effect in effects:
            self._perform(effect)

    def campaign(self) -> None:
        self.campaigns += 1
        self.feed(ev.Campaigned(campaign=self.campaigns, uuid=self._uuid()))

    def cancel(self) -> None:
        self.feed(ev.Cancelled(campaign=self.campaigns))

    def end_term(self, reason: Reason) -> None:
        if self.state.term is not None:
            self.feed(ev.TermEnded(term=self.state.term, reason=reason))

    def return_body(self) -> None:
        if self.state.term is not None:
            self.feed(ev.Returned(term=self.state.term))

    def prepare(self) -> None:
        if self.state.term is not None:
            self.feed(ev.Prepared(term=self.state.term))

    def reread(self) -> None:
        self.feed(ev.RollDue(stamp=self.state.stamp))

    def step_back(self) -> None:
        """Hear that whoever is just ahead leads, and hands over to somebody behind us."""
        handover = passing(self.state.ahead[-1].node)
        self.feed(ev.HandoverRead(stamp=self.state.stamp, handover=handover))

    def lapse(self) -> None:
        """Its lease runs out, and with it every grace."""
        self.leased = False
        if self.state.leads:
            self.end_term(Reason.LAPSED)
        while self.graces:
            self.feed(self.graces.popleft())

    def prove(self) -> None:
        self.leased = True
        self.feed(ev.Proven(stamp=self.state.stamp))

    # --- its link ----------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect with a new session, whatever became of the old one."""
        self._sessions += 1
        self.requests.clear()
        self.session_id = int.from_bytes(self.name.encode()) * 0x100 + self._sessions
        self.ensemble.alive.add(self.session_id)
        self._link()
        self.feed(ev.SessionOpened(session_id=self.session_id, uuid=self._uuid()))

    def drop(self, *, received: bool = False, queued: bool = False) -> None:
        """Lose the link: what the server has not done, it never will.

        :param received: what it has answered had arrived, and waits to be handed over.
        :param queued: requests had not left the client, and will on the next link.
        """
        self.linked = False
        self._watches.clear()
        self._record_watch = None
        if not queued:
            self.requests.clear()
        if not received:
            self.replies.clear()
            self.news.clear()
        self.feed(ev.SessionSuspended())

    def reconnect(self, *, lag: int = 0) -> None:
        """Link up again, with the same session if it lives.

        :param lag: so many transactions the new server is behind, if it may be: no
            server serves a client that has seen more than itself.
        """
        if self.session_id not in self.ensemble.alive:
            self.feed(ev.SessionExpired())
            self.connect()
            return
        self._link(lag)
        self.feed(ev.SessionResumed())

    def _link(self, lag: int = 0) -> None:
        self.linked = True
        self.position = max(self.ensemble.zxid - lag, self._seen)

    # --- letting messages through --------------------------------------------------------------

    def serve(self) -> None:
        """The server does the next request; one of a dead session it does not answer."""
        request = self.requests.popleft()
        if self.session_id not in self.ensemble.alive:
            return
        reply = _SERVE[type(request)](self, request)
        self.replies.append((self.position, reply))

    def refuse(self, error: ZkelectError) -> None:
        """The server refuses the next request, for a reason that stays."""
        request = self.requests.popleft()
        self.replies.append((self.position, ev.Refused(stamp=request.stamp, error=error)))

    def catch_up(self) -> None:
        """The server applies what the others have, and fires watches."""
        while self.position < self.ensemble.zxid:
            self.advance()

    def advance(self) -> None:
        self.position += 1
        before, after = self.ensemble.log[self.position - 1 : self.position + 1]
        if self._record_watch is not None and before.record != after.record:
            self.news.append(ev.RecordTouched(stamp=self._record_watch))
            self._record_watch = None
        for node in after.gone:
            for stamp in self._watches.pop(node, ()):
                self.news.append(ev.Vanished(stamp=stamp, node=node))

    def touch(self, node: str) -> None:
        """Somebody changes the data of a znode: its watches are used up."""
        for stamp in self._watches.pop(node, ()):
            self.news.append(ev.Changed(stamp=stamp, node=node))

    def hear_reply(self) -> None:
        zxid, reply = self.replies.popleft()
        self._seen = max(self._seen, zxid)
        self.feed(reply)

    def hear_news(self) -> None:
        self.feed(self.news.popleft())

    def do_task(self) -> None:
        """A timer of its own runs out."""
        self.feed(self.tasks.popleft())

    # --- performing ----------------------------------------------------------------------------

    def _perform(self, effect: Effect) -> None:
        match effect:
            case ev.Rest(stamp=stamp):
                self.tasks.append(ev.Rested(stamp=stamp))
            case ev.StartGrace(stamp=stamp):
                self.graces.append(ev.GraceEnded(term=stamp))
            case ev.Finish(campaign=campaign):
                self.finished.append(campaign)
            case ev.Request():
                assert self.linked, f"{self.name}: {effect} while its link is down"
                self.requests.append(effect)
            case _:
                pass

    def _uuid(self) -> str:
        if f"{self.name}{self._suffix}" in self._created:
            self._labels += 1
        return f"{self.name}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return str(self._labels) if self._labels > 1 else ""

    # --- the server's side of the link -----------------------------------------------------------

    def _serve_create(self, request: ev.Create) -> Event:
        self._created.add(request.uuid)
        servers = self.ensemble
        if not servers.tree.parent:
            self.catch_up()
            return ev.ParentMissing(stamp=request.stamp)
        assert self.session_id is not None
        node = servers.make(KAZOO.prefix(request.uuid), self.session_id)
        self.catch_up()
        znode = servers.tree.nodes[node]
        return ev.Created(stamp=request.stamp, node=node, czxid=znode.czxid, owner=znode.owner)

    def _serve_roll(self, request: ev.ReadRoll) -> Event:
        tree = self.ensemble.log[self.position]
        return ev.Rolled(stamp=request.stamp, children=tuple(tree.nodes), record=tree.record)

    def _serve_parent(self, request: ev.MakeParent) -> Event:
        record = self.ensemble.tree.record or RECORD
        self.ensemble.commit(parent=True, record=record)
        self.catch_up()
        return ev.ParentMade(stamp=request.stamp)

    def _serve_commit(self, request: ev.Commit) -> Event:
        self.ensemble.commit()
        self.catch_up()
        missing = not self.ensemble.tree.parent
        return (ev.ParentMissing if missing else ev.Committed)(stamp=request.stamp)

    def _serve_watch(self, request: ev.Watch) -> Event:
        znode = self.ensemble.log[self.position].nodes.get(request.node)
        if znode is None:
            return ev.Vanished(stamp=request.stamp, node=request.node)
        self._watches.setdefault(request.node, []).append(request.stamp)
        return ev.Watched(
            stamp=request.stamp, node=request.node, czxid=znode.czxid, owner=znode.owner
        )

    def _serve_record(self, request: ev.ReadRecord) -> Event:
        record = self.ensemble.log[self.position].record
        if record is not None:
            self._record_watch = request.stamp
        return ev.Recorded(stamp=request.stamp, look=request.look, record=record)

    def _serve_delete(self, request: ev.Delete | ev.Withdraw) -> Event:
        if request.node in self.ensemble.tree.nodes:
            self.ensemble.remove(request.node)
        self.catch_up()
        return ev.Deleted(stamp=request.stamp, node=request.node)


_SERVE: Final[dict[type[Effect], Callable[[Candidate, Any], Event]]] = {
    ev.Create: Candidate._serve_create,
    ev.ReadRoll: Candidate._serve_roll,
    ev.MakeParent: Candidate._serve_parent,
    ev.Commit: Candidate._serve_commit,
    ev.Watch: Candidate._serve_watch,
    ev.ReadRecord: Candidate._serve_record,
    ev.Delete: Candidate._serve_delete,
    ev.Withdraw: Candidate._serve_delete,
}
