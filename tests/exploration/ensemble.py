"""What can happen between one candidate and the servers, and to what the servers know.

The servers number, keep and delete znodes and end sessions as ZooKeeper does. A request is
done in order; what a write changed is told to whoever watches. A server that lags answers
reads by an old tree, until a write or a commit of this client makes it catch up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from theatre import PATH

from exploration.alone import Alone
from exploration.names import node_name
from exploration.promises import keep
from exploration.world import Candidate, News, Outcome, Servers, Tree, Znode, record_of
from zkelect.core import events as ev
from zkelect.core.events import Effect, Event
from zkelect.errors import RequestFailed

__all__ = ["Fresh", "Scene"]

REFUSAL: Final = RequestFailed(PATH, "get", "throttled")


class Fresh(NamedTuple):
    """Names that nobody has borne yet."""

    session: int
    uuid: str
    czxid: int


class Scene:
    """One candidate before the servers, and what may come of it.

    :param fresh: names for what it may make.
    """

    def __init__(self, alone: Alone, it: Candidate, servers: Servers, fresh: Fresh) -> None:
        self.alone = alone
        self.it = it
        self.servers = servers
        self.fresh = fresh
        self.state: Final = alone.state(it)

    @property
    def tree(self) -> Tree:
        return self.servers.tree

    @property
    def lives(self) -> bool:
        return self.state.session_id in self.servers.alive

    @property
    def linked(self) -> bool:
        """Whether the server would answer."""
        return self.state.connected and self.lives

    @property
    def own(self) -> list[Znode]:
        """The znodes of all its sessions."""
        return [znode for znode in self.tree.nodes if self._is_own(znode.owner)]

    @property
    def old_sessions(self) -> list[int]:
        """Sessions of its that are not closed, and that it has forgotten."""
        present = self.state.session_id
        return [s for s in self.servers.alive if self._is_own(s) and s != present]

    def _is_own(self, session: int) -> bool:
        return session >> 8 == ord("A") + self.alone.own

    # --- requests ----------------------------------------------------------------------------

    @property
    def request(self) -> Effect | None:
        """The next request that the server would do."""
        if not self.linked or not self.it.requests:
            return None
        effect: Effect = self.alone.words[self.it.requests[0]]
        return effect

    def serve(self) -> Outcome:
        request = self.request
        assert request is not None
        return _SERVE[type(request)](self, request)

    def create(self, request: ev.Create) -> Outcome:
        if not self.tree.parent:
            return self._reply(ev.ParentMissing(stamp=request.stamp))
        znode, tree = self._made(request.uuid)
        self.it = self.it._replace(hit=False)
        node, czxid, owner = znode
        reply = ev.Created(stamp=request.stamp, node=node, czxid=czxid, owner=owner)
        return self._reply(reply, tree)

    def create_again(self) -> Outcome:
        """A create whose reply was lost turns out to have been done once more."""
        _, tree = self._made(self.state.uuid)
        return self._outcome(self.it, tree)

    def _made(self, uuid: str) -> tuple[Znode, Tree]:
        tree, session = self.tree, self.state.session_id
        assert session is not None  # a create is asked for in a session
        znode = Znode(node_name(uuid, tree.counter), self.fresh.czxid, session)
        nodes = (*tree.nodes, znode)
        return znode, tree._replace(nodes=nodes, counter=tree.counter + 1)

    def read_roll(self, request: ev.ReadRoll) -> Outcome:
        tree = self.tree if self.it.view is None else self.it.view
        event = ev.Rolled(stamp=request.stamp, children=tree.names, record=record_of(tree))
        return self._reply(event, write=False)

    def make_parent(self, request: ev.MakeParent) -> Outcome:
        tree = self.tree._replace(parent=True, generation=self.tree.generation or 1)
        return self._reply(ev.ParentMade(stamp=request.stamp), tree)

    def commit(self, request: ev.Commit) -> Outcome:
        kind = ev.Committed if self.tree.parent else ev.ParentMissing
        return self._reply(kind(stamp=request.stamp))

    def watch(self, request: ev.Watch) -> Outcome:
        tree = self.tree if self.it.view is None else self.it.view
        znode = tree.find(request.node)
        vanished = ev.Vanished(stamp=request.stamp, node=request.node)
        if znode is None:
            return self._reply(vanished, write=False)
        watches = {*self.it.watches, self.alone.words.number(vanished)}
        self.it = self.it._replace(watches=tuple(sorted(watches)))
        event = ev.Watched(
            stamp=request.stamp, node=request.node, czxid=znode.czxid, owner=znode.owner
        )
        return self._reply(event, write=False)

    def read_record(self, request: ev.ReadRecord) -> Outcome:
        record = record_of(self.tree if self.it.view is None else self.it.view)
        if record is not None:
            touched = self.alone.words.number(ev.RecordTouched(stamp=request.stamp))
            watches = {*self.it.watches, touched}
            self.it = self.it._replace(watches=tuple(sorted(watches)))
        event = ev.Recorded(stamp=request.stamp, look=request.look, record=record)
        return self._reply(event, write=False)

    def delete(self, request: ev.Delete | ev.Withdraw) -> Outcome:
        tree, gone = _without(self.tree, [request.node])
        reply = ev.Deleted(stamp=request.stamp, node=request.node)
        return self._reply(reply, tree, News(gone=gone))

    def refuse(self) -> Outcome:
        request = self.request
        assert request is not None
        return self._reply(ev.Refused(stamp=request.stamp, error=REFUSAL), write=False)

    def _reply(
        self,
        event: Event,
        tree: Tree | None = None,
        news: News | None = None,
        *,
        write: bool = True,
    ) -> Outcome:
        """Answer the first request; behind a write its server has caught up."""
        if write:
            self._catch_up()
        before = self.it.before
        if tree is not None and tree != self.tree and before is None:
            before = self.tree
        it = self.it._replace(
            requests=self.it.requests[1:],
            replies=(*self.it.replies, self.alone.words.number(event)),
            before=before,
        )
        return self._outcome(it, tree, news)

    def _catch_up(self) -> None:
        """The server applies what the others have, and fires the watches it finds used up."""
        view = self.it.view
        if view is not None:
            gone = tuple(node for node in view.names if self.tree.find(node) is None)
            news = News(gone=gone, record=record_of(view) != record_of(self.tree))
            self.it = self.alone.catch_news(self.it._replace(view=None), news)

    def catch_up(self) -> Outcome:
        self._catch_up()
        return self._outcome(self.it)

    def _outcome(
        self, it: Candidate, tree: Tree | None = None, news: News | None = None
    ) -> Outcome:
        servers = None if tree is None else self.servers._replace(tree=tree)
        return Outcome(self.alone.candidates.number(it), servers=servers, news=news)

    # --- the program and its session ---------------------------------------------------------

    def _feed(self, event: Event, it: Candidate | None = None) -> Outcome:
        return self.alone.feed(self.it if it is None else it, event)

    def campaign(self) -> Outcome:
        campaigns = self.it.campaigns + 1
        event = ev.Campaigned(campaign=campaigns, uuid=self.fresh.uuid)
        return self._feed(event, self.it._replace(campaigns=campaigns))

    def probe(self) -> Outcome:
        """A probe is committed: it proves the session, or finds what has changed."""
        self._catch_up()
        state, record = self.state, record_of(self.tree)
        if state.node is not None and self.tree.find(state.node.node) is None:
            return self._feed(ev.Vanished(stamp=state.stamp, node=state.node.node))
        if record != state.record:
            return self._feed(ev.RecordTouched(stamp=state.stamp))
        keep("evicted", not state.is_evicted_by(record))
        it = self.it._replace(leased=True, backed=self.it.backed or state.leads)
        if not state.first:
            return self._outcome(it)
        return self._feed(ev.Proven(stamp=state.stamp), it)

    @property
    def probing(self) -> bool:
        """Whether a probe is sent, and would tell anything."""
        state = self.state
        if not self.linked or not state.warm or state.node is None or state.record is None:
            return False
        gone = self.tree.find(state.node.node) is None
        if not gone and record_of(self.tree) != state.record:
            return not self.alone.reads(self.it, ev.ReadRecord, ev.Recorded)
        wanting = state.first and state.kept_by is None
        return not self.it.leased or wanting or gone

    def resume(self, *, lags: bool = False) -> Outcome:
        return self._feed(ev.SessionResumed(), self._linked(lags=lags))

    def _linked(self, *, lags: bool) -> Candidate:
        if not lags:
            return self.it
        return self.it._replace(view=self.it.before)

    def learn_expiry(self) -> Outcome:
        it = self.it._replace(requests=(), leased=False)
        return self._feed(ev.SessionExpired(), it)

    def open(self, *, lags: bool = False) -> Outcome:
        """A new session; when there was an old one, nobody has told what became of it."""
        session = self.fresh.session
        it = self._linked(lags=lags)._replace(requests=(), leased=False, before=None)
        servers = self.servers._replace(alive=tuple(sorted((*self.servers.alive, session))))
        event = ev.SessionOpened(session_id=session, uuid=self.fresh.uuid)
        return self._feed(event, it)._replace(servers=servers)

    # --- what happens to the servers ---------------------------------------------------------

    def end_session(self, session: int, *, hit: bool = False) -> Outcome:
        """A session is over, and its ephemeral znodes with it."""
        nodes = [znode.node for znode in self.tree.nodes if znode.owner == session]
        tree, gone = _without(self.tree, nodes)
        alive = tuple(other for other in self.servers.alive if other != session)
        servers = self.servers._replace(tree=tree, alive=alive)
        before = self.it.before or (self.tree if gone else None)
        number = self.alone.candidates.number(self.it._replace(before=before))
        news = News(gone=gone, hit=(session,) if hit else ())
        return Outcome(number, servers=servers, news=news)

    def expire(self) -> Outcome:
        session = self.state.session_id
        assert session is not None
        return self.end_session(session)

    def close(self) -> Outcome:
        session = self.state.session_id
        assert session is not None
        return self.end_session(session, hit=True)

    def sweep(self) -> Outcome:
        return self.end_session(self.old_sessions[0])

    def meddle(self, which: int) -> Outcome:
        """Somebody deletes one of its znodes."""
        znode = self.own[which]
        tree, gone = _without(self.tree, [znode.node])
        return self._outcome(self.it, tree, News(gone=gone, hit=(znode.owner,)))

    def touch(self) -> Outcome:
        return self._outcome(self.it, news=News(touched=self.own[0].node))

    def remove_parent(self) -> Outcome:
        hit = tuple(znode.owner for znode in self.tree.nodes)
        tree = self.tree._replace(nodes=(), parent=False, counter=0)
        return self._outcome(self.it, tree, News(gone=self.tree.names, hit=hit))

    def set_generation(self, generation: int) -> Outcome:
        return self._write_record(self.tree._replace(generation=generation))

    def delete_record(self) -> Outcome:
        bare = self.tree._replace(generation=0, paused=False, first=0, evicted=())
        return self._write_record(bare)

    def pause(self) -> Outcome:
        first = self.tree.order[0].czxid if self.tree.nodes else 0
        return self._write_record(self.tree._replace(paused=True, first=first))

    def unpause(self) -> Outcome:
        return self._write_record(self.tree._replace(paused=False, first=0))

    # --- what an operator does who evicts a candidate --------------------------------------------

    @property
    def is_first(self) -> bool:
        """Whether the first in the queue is its own."""
        return bool(self.own) and self.tree.order[0] in self.own

    @property
    def waits(self) -> bool:
        """Whether one of its own has another one ahead."""
        return bool(self.own) and self._last_own is not self.tree.order[0]

    @property
    def _last_own(self) -> Znode:
        return max(self.own, key=lambda znode: znode.node[-10:])

    @property
    def overdue(self) -> Znode | None:
        """Who is asked to go and still there."""
        return next((znode for znode in self.own if znode.node in self.tree.evicted), None)

    def ask_to_go(self) -> Outcome:
        node = self.tree.order[0].node
        return self._outcome(self.it, self._evicting(node), News(record=True, touched=node))

    def delete_waiting(self) -> Outcome:
        """In one commit with the word in the record."""
        node = self._last_own.node
        tree, gone = _without(self._evicting(node), [node])
        return self._outcome(self.it, tree, News(record=True, gone=gone))

    def delete_overdue(self) -> Outcome:
        assert self.overdue is not None
        tree, gone = _without(self.tree, [self.overdue.node])
        return self._outcome(self.it, tree, News(gone=gone))

    def _evicting(self, node: str) -> Tree:
        """Who has gone stays in the record: it may not have heard of that."""
        return self.tree._replace(evicted=(*self.tree.evicted, node))

    def _write_record(self, tree: Tree) -> Outcome:
        return self._outcome(self.it, tree, News(record=True))

    @property
    def is_a(self) -> bool:
        """Whether it is A: what is nobody's own happens once, not once for each candidate."""
        return self.alone.own == 0


def _without(tree: Tree, nodes: list[str]) -> tuple[Tree, tuple[str, ...]]:
    left = tuple(znode for znode in tree.nodes if znode.node not in nodes)
    gone = tuple(znode.node for znode in tree.nodes if znode.node in nodes)
    return tree._replace(nodes=left), gone


_SERVE: Final[dict[type[Effect], Callable[[Scene, Any], Outcome]]] = {
    ev.Create: Scene.create,
    ev.ReadRoll: Scene.read_roll,
    ev.MakeParent: Scene.make_parent,
    ev.Commit: Scene.commit,
    ev.Watch: Scene.watch,
    ev.ReadRecord: Scene.read_record,
    ev.Delete: Scene.delete,
    ev.Withdraw: Scene.delete,
}
