"""All that can happen next: the real machines, before servers that are a few tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from exploration.alone import ALONE, Alone, outcome_of
from exploration.ensemble import BETWEEN, Fresh, Scene
from exploration.judging import check_finish, check_grant
from exploration.names import CZXID, fresh, is_dense, label, labels_of, session_name, sessions_of
from exploration.promises import Broken, keep
from exploration.world import Candidate, Outcome, Outcomes, Servers, World, all_servers

from zkelect.core import events as ev
from zkelect.core.state import State

__all__ = ["FAULTS", "Model", "Move", "spell_move"]

Move = tuple[int, str]
"""Whom it happens to, and what, in the words of ALONE and BETWEEN."""

FAULTS: Final = tuple(
    kind for table in (ALONE, BETWEEN) for kind, what in table.items() if what.faults
)
"""What can be forbidden."""


def spell_move(move: Move) -> str:
    """Return a move as a story tells it."""
    return move[1].replace("X", chr(ord("A") + move[0]))


class Model:
    """The worlds of so many candidates.

    :param campaigns: how often each may stand. :param forbidden: faults that do not happen.
    :param renames: False keeps the names as they come, for a transcript.
    """

    def __init__(
        self,
        candidates: int,
        *,
        campaigns: int = 2,
        forbidden: Iterable[str] = (),
        renames: bool = True,
    ) -> None:
        self.who: Final = range(candidates)
        self.alone: Final = [Alone(own, campaigns) for own in self.who]
        self.servers: Final = all_servers()
        self._forbidden = frozenset(forbidden)
        self._renames = renames
        self._meetings: dict[tuple[int, int, Fresh], Outcomes] = {}

    def beginning(self, servers: Servers, faults: int) -> World:
        """Return the world in which nobody has connected yet."""
        nobody = (
            alone.candidates.number(Candidate(state=alone.words.beginning)) for alone in self.alone
        )
        return (faults, self.servers.number(servers), *nobody)

    # --- looking at a world --------------------------------------------------------------------

    def candidate(self, world: World, own: int) -> Candidate:
        """Return one candidate of a world."""
        return self.alone[own].candidates[world[2 + own]]

    def state(self, world: World, own: int) -> State:
        """Return the state of one machine."""
        return self.alone[own].state(self.candidate(world, own))

    def everybody(self, world: World) -> list[tuple[State, Candidate]]:
        """Return all machines and what is round them."""
        return [(self.state(world, own), self.candidate(world, own)) for own in self.who]

    def alive(self, world: World) -> tuple[int, ...]:
        """Return the sessions that are neither closed nor expired."""
        return self.servers[world[1]].alive

    def mask(self, world: World) -> int:
        """Return the names that somebody in a world remembers."""
        mask = self.servers.masks[world[1]]
        for own, alone in enumerate(self.alone, 2):
            mask |= alone.candidates.masks[world[own]]
        return mask

    # --- what can happen -----------------------------------------------------------------------

    def happenings(self, world: World) -> Iterator[tuple[Move, World | Broken]]:
        """Yield all that can happen next, with the world it makes or the promise it breaks."""
        mask, left = self.mask(world), world[0]
        for own in self.who:
            for outcomes in (self._lonely(world, own), self._met(world, own, mask)):
                for kind, (faults, outcome) in outcomes.items():
                    if faults <= left and kind not in self._forbidden:
                        yield (own, kind), self._become(world, own, faults, outcome)

    def take(self, world: World, move: Move) -> World:
        """Return the world that a move makes, forbidden or not, whatever the number of faults.

        :raises Broken: it breaks a promise.
        """
        made = self._become(world, move[0], *self.outcome(world, move))
        if isinstance(made, Broken):
            raise made
        return made

    def outcome(self, world: World, move: Move) -> tuple[int, Outcome | Broken]:
        """Return how many faults a move counts for, and what comes of it."""
        own, kind = move
        if kind in ALONE:
            return self._lonely(world, own)[kind]
        return self._met(world, own, self.mask(world))[kind]

    def can(self, world: World, own: int, kind: str) -> bool:
        """Tell whether that can happen to one candidate, forbidden or not."""
        if kind in ALONE:
            return kind in self._lonely(world, own)
        return kind in self._met(world, own, self.mask(world))

    def _lonely(self, world: World, own: int) -> Outcomes:
        """Return what can come of a candidate alone."""
        return self.alone[own].moves(world[2 + own])

    def _met(self, world: World, own: int, mask: int) -> Outcomes:
        """Return what can come of a candidate and the servers: of equal ones it is equal."""
        names = Fresh(
            session=session_name(own, fresh(mask, sessions_of(own))),
            uuid=label(own, fresh(mask, labels_of(own))),
            czxid=fresh(mask, CZXID) + 1,
        )
        key = world[1], world[2 + own], names
        found = self._meetings.get(key)
        if found is None:
            found = self._meetings[key] = dict(self._meet(world, own, names))
        return found

    def _meet(
        self, world: World, own: int, names: Fresh
    ) -> Iterator[tuple[str, tuple[int, Outcome | Broken]]]:
        for kind, what in BETWEEN.items():
            scene = Scene(
                self.alone[own], self.candidate(world, own), self.servers[world[1]], names
            )
            if what.can(scene):
                yield kind, (what.faults, outcome_of(what.act, scene))

    # --- what comes of it ----------------------------------------------------------------------

    def _become(
        self, world: World, own: int, faults: int, outcome: Outcome | Broken
    ) -> World | Broken:
        """Put the outcome into the world, tell everybody, judge."""
        if isinstance(outcome, Broken):
            return outcome
        parts = [*world]
        parts[0] -= faults
        parts[2 + own] = outcome.number
        if outcome.servers is not None:
            parts[1] = self.servers.number(outcome.servers)
        if outcome.news:
            for other, alone in enumerate(self.alone, 2):
                parts[other] = alone.tell(parts[other], outcome.news)
        try:
            self._judge(parts, own, outcome)
        except Broken as broken:
            return broken
        return self._canonical(tuple(parts))

    def _judge(self, parts: list[int], own: int, outcome: Outcome) -> None:
        for said in outcome.said:
            servers, it = self.servers[parts[1]], self.alone[own].candidates[parts[2 + own]]
            if isinstance(said, ev.Finish):
                check_finish(said, servers)
            elif not it.hit:
                check_grant(said, servers)
                parts[1] = self.servers.number(servers._replace(token=said.czxid))
        working = [own for own in self.who if self.alone[own].works(parts[2 + own])]
        keep("exclusive", len(working) <= 1)

    def _canonical(self, world: World) -> World:
        """Return the same world with its names ranked."""
        mask = self.mask(world)
        if is_dense(mask) or not self._renames:
            return world
        candidates = (
            alone.candidates.rank(number, mask)
            for alone, number in zip(self.alone, world[2:], strict=True)
        )
        return (world[0], self.servers.rank(world[1], mask), *candidates)
