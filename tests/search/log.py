"""What the servers agree on: a log of transactions, and the tree that it makes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import attrs

if TYPE_CHECKING:
    from search.network import Link

__all__ = ["Kind", "Ledger", "Stand", "Transaction", "Tree"]


class Stand(NamedTuple):
    """A candidate: the session that owns it, and its how-manieth campaign it is."""

    session: int
    campaign: int


@attrs.frozen
class Tree:
    """What a server knows: open sessions with the timeout of their creation, and the roll.

    The timeout of the creation is the one that is kept in the log and in snapshots. A
    reconnect to a server that grants another one changes it at the leader's tracker only.
    """

    sessions: Mapping[int, float]
    roll: tuple[Stand, ...] = ()


class Kind(Enum):
    """What a transaction does."""

    CHECK = auto()  # a probe: nothing, but by a quorum
    CLOSE = auto()
    JOIN = auto()
    LEAVE = auto()


@attrs.frozen
class Transaction:
    """One entry of the log.

    :ivar link: the client's connection that it came by; the server at its end answers.
    :ivar decided: of a close, the instant at which an ensemble leader found it overdue.
    """

    kind: Kind
    session: int
    link: Link | None = None
    stand: Stand | None = None
    decided: float = math.inf

    def change(self, tree: Tree) -> Tree:
        """Return the tree as it is after this."""
        match self.kind:
            case Kind.CHECK:
                return tree
            case Kind.CLOSE:
                sessions = {s: t for s, t in tree.sessions.items() if s != self.session}
                return Tree(sessions, tuple(s for s in tree.roll if s.session != self.session))
            case Kind.JOIN if self.stand is not None and self.stand not in tree.roll:
                return Tree(tree.sessions, (*tree.roll, self.stand))
            case Kind.LEAVE:
                return Tree(tree.sessions, tuple(s for s in tree.roll if s != self.stand))
        return tree


class Ledger:
    """What nobody in the history can see whole: the truth that leases are judged by.

    :ivar decided: when the leader that closed a session decided to; the earliest instant
        at which it may be said to have expired.
    :ivar closed: when a quorum had agreed.
    :ivar least: the smallest timeout that a session was ever touched with.
    """

    def __init__(self) -> None:
        self.decided: dict[int, float] = {}
        self.closed: dict[int, float] = {}
        self.least: dict[int, float] = {}
        self.leaders = 0

    def committed(self, transaction: Transaction, now: float) -> None:
        """Note what can never be undone: a majority has it."""
        if transaction.kind is Kind.CLOSE and transaction.session not in self.closed:
            self.decided[transaction.session] = transaction.decided
            self.closed[transaction.session] = now

    def touched(self, session: int, timeout: float) -> None:
        """Note the timeout that a leader counts with."""
        self.least[session] = min(timeout, self.least.get(session, math.inf))
