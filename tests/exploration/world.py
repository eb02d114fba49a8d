"""A world: the servers, and each candidate with its link, its lease and its body of work.

Plain tuples, never changed. What a candidate holds of machine states and messages are
numbers in its :class:`Lexicon`, so that a world is hashed and compared in no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from theatre import PATH, RECORD

from exploration.names import (
    SEQUENCE,
    Ranks,
    Visit,
    mentions,
    rename,
    rename_czxid,
    rename_node,
    rename_session,
)
from exploration.promises import Broken
from zkelect.core import events as ev
from zkelect.core.eviction import Eviction
from zkelect.core.pause import Pause
from zkelect.core.record import Record
from zkelect.core.state import State

__all__ = [
    "Candidate",
    "Interned",
    "Lexicon",
    "News",
    "Outcome",
    "Outcomes",
    "Servers",
    "Step",
    "Tree",
    "World",
    "Znode",
    "all_candidates",
    "all_servers",
    "record_of",
]

PAUSE: Final = Pause(by="K")

World = tuple[int, ...]
"""Faults left; the number of the servers; the number of each candidate."""


class Znode(NamedTuple):
    node: str
    czxid: int
    owner: int


class Tree(NamedTuple):
    """What a server knows below the election's path.

    :ivar nodes: by czxid. :ivar generation: of the record; 0 when there is none.
    :ivar paused: whether the record says so. :ivar first: the czxid of who was the first when
        that was written, and may be granted all the same; 0 when nobody was.
    :ivar evicted: znodes whose candidates the record asks to go.
    :ivar counter: what the next create is numbered.
    """

    nodes: tuple[Znode, ...] = ()
    parent: bool = True
    generation: int = 1
    paused: bool = False
    first: int = 0
    evicted: tuple[str, ...] = ()
    counter: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(znode.node for znode in self.nodes)

    @property
    def order(self) -> list[Znode]:
        return sorted(self.nodes, key=lambda znode: znode.node[-10:])

    def find(self, node: str) -> Znode | None:
        return next((znode for znode in self.nodes if znode.node == node), None)


class Servers(NamedTuple):
    """What the quorum knows.

    :ivar alive: sessions that are neither closed nor expired.
    :ivar token: the token of the latest grant; it must rise.
    """

    tree: Tree = Tree()
    alive: tuple[int, ...] = ()
    token: int = 0


class Candidate(NamedTuple):
    """One candidate: its machine, its link, its clock and its body of work.

    :ivar requests: on the way to the server. :ivar replies: on the way back, behind what
        happened in between. :ivar news: watch events, that replies may overtake.
    :ivar watches: what the server would tell. :ivar tasks: rests that are not over.
    :ivar graces: of a term that ended, while its body may rightfully go on.
    :ivar leased: whether the lease is valid at this moment.
    :ivar backed: whether the term's body may still count on the lease.
    :ivar hit: somebody from outside deleted its znode or closed its session.
    :ivar missed: a watch event was lost, so that only the slow re-read can help.
    :ivar view: what its server knows, when that lags behind.
    :ivar before: what its next server may know at least: the tree before the first write
        of its own whose reply it has not heard.
    :ivar campaigns: begun. :ivar finished: the last one told to be over.
    :ivar cancelled: the last one that its user gave up.
    """

    state: int
    requests: tuple[int, ...] = ()
    replies: tuple[int, ...] = ()
    news: tuple[int, ...] = ()
    watches: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()
    graces: tuple[int, ...] = ()
    leased: bool = True
    backed: bool = False
    hit: bool = False
    missed: bool = False
    view: Tree | None = None
    before: Tree | None = None
    campaigns: int = 0
    finished: int = 0
    cancelled: int = 0


class News(NamedTuple):
    """What watches tell, and what cannot be seen by those it is done to.

    :ivar gone: znodes that were deleted. :ivar touched: one whose data was changed.
    :ivar record: whether the record was changed or deleted.
    :ivar hit: sessions that somebody from outside has meddled with.
    """

    gone: tuple[str, ...] = ()
    touched: str = ""
    record: bool = False
    hit: tuple[int, ...] = ()


Step = tuple[int, int, bool]
"""A machine's state and an event, by their numbers, and whether the lease is valid."""


class Outcome(NamedTuple):
    """What becomes of a candidate, and of the servers.

    :ivar number: the candidate's. :ivar said: what its world must judge.
    :ivar step: state, event and lease of the machine's step, if it made one.
    :ivar servers: None when they are as they were.
    """

    number: int
    step: Step | None = None
    said: tuple[ev.Grant | ev.Finish, ...] = ()
    servers: Servers | None = None
    news: News | None = None


Outcomes = Mapping[str, Outcome | Broken]
"""What can happen, in a story's words, and what comes of it."""


def record_of(tree: Tree) -> Record | None:
    """Return the record as a reader would find it."""
    if not tree.generation:
        return None
    return Record(
        uuid=RECORD.uuid,
        generation=tree.generation,
        paused=PAUSE if tree.paused else None,
        evictions=tuple(Eviction(id="1", node=node) for node in tree.evicted),
    )


# --- values by number ------------------------------------------------------------------------

_T = TypeVar("_T")


class Interned(Generic[_T]):
    """Gives equal values one number, and keeps the mask of the names in each.

    :param mask_of: mentions the names in a value.
    :param ranked: replaces them by their ranks in a mask.
    """

    def __init__(self, mask_of: Callable[[_T], int], ranked: Callable[[_T, int], _T]) -> None:
        self._mask_of = mask_of
        self._ranked = ranked
        self._numbers: dict[_T, int] = {}
        self._ranks: dict[tuple[int, int], int] = {}
        self.values: list[_T] = []
        self.masks: list[int] = []

    def __getitem__(self, number: int) -> _T:
        return self.values[number]

    def number(self, value: _T) -> int:
        """Return the number of a value, a new one if it is seen for the first time."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
            self.masks.append(self._mask_of(value))
        return found

    def rank(self, number: int, mask: int) -> int:
        """Return the number of the same value with its names ranked among those in a mask."""
        found = self._ranks.get((number, mask))
        if found is None:
            found = self.number(self._ranked(self.values[number], mask))
            self._ranks[number, mask] = found
        return found


class Lexicon(Interned[Any]):
    """One candidate's machine states, events and effects, by number."""

    def __init__(self, own: int) -> None:
        super().__init__(
            lambda what: mentions(lambda visit: rename(what, own, visit)),
            lambda what, mask: rename(what, own, Ranks(mask)),
        )
        self.beginning: Final = self.number(State(path=PATH))


def _rename_tree(tree: Tree, visit: Visit) -> Tree:
    nodes = tuple(
        Znode(rename_node(node, visit), rename_czxid(czxid, visit), rename_session(owner, visit))
        for node, czxid, owner in tree.nodes
    )
    return tree._replace(
        nodes=nodes,
        first=rename_czxid(tree.first, visit),
        evicted=tuple(rename_node(node, visit) for node in tree.evicted),
        counter=visit(SEQUENCE, tree.counter),
    )


def _rename_servers(servers: Servers, visit: Visit) -> Servers:
    return Servers(
        tree=_rename_tree(servers.tree, visit),
        alive=tuple(rename_session(session, visit) for session in servers.alive),
        token=rename_czxid(servers.token, visit),
    )


def all_servers() -> Interned[Servers]:
    """Return the numbers of what servers know."""
    return Interned(
        lambda servers: mentions(lambda visit: _rename_servers(servers, visit)),
        lambda servers, mask: _rename_servers(servers, Ranks(mask)),
    )


def all_candidates(words: Lexicon) -> Interned[Candidate]:
    """Return the numbers of what may be true of one candidate."""

    def mask_of(it: Candidate) -> int:
        mask = words.masks[it.state]
        for number in (*it.requests, *it.replies, *it.news, *it.watches, *it.tasks, *it.graces):
            mask |= words.masks[number]
        for tree in (it.view, it.before):
            if tree is not None:
                mask |= mentions(partial(_rename_tree, tree))
        return mask

    def ranked(it: Candidate, mask: int) -> Candidate:
        def all_of(numbers: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(words.rank(number, mask) for number in numbers)

        return it._replace(
            state=words.rank(it.state, mask),
            requests=all_of(it.requests),
            replies=all_of(it.replies),
            news=all_of(it.news),
            watches=tuple(sorted(all_of(it.watches))),
            tasks=all_of(it.tasks),
            graces=all_of(it.graces),
            view=_ranked_tree(it.view, mask),
            before=_ranked_tree(it.before, mask),
        )

    return Interned(mask_of, ranked)


def _ranked_tree(tree: Tree | None, mask: int) -> Tree | None:
    return None if tree is None else _rename_tree(tree, Ranks(mask))
