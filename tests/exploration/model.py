"""All that can happen next: the real machines, before servers that are a few tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from exploration.alone import ALONE, MENDING, Alone
from exploration.between import BETWEEN, Meeting
from exploration.ensemble import Fresh
from exploration.judging import check_finish, check_grant, is_unheard
from exploration.names import CZXID, fresh, is_dense, label, labels_of, session_name, sessions_of
from exploration.promises import Broken, keep
from exploration.world import Candidate, Outcome, Outcomes, Servers, World, all_servers
from zkelect.core import events as ev
from zkelect.core.state import State

__all__ = ["FAULTS", "HAPPENINGS", "Model", "Move", "spell_move"]

Move = tuple[int, str]
"""Whom it happens to, and what, in the words of ALONE and BETWEEN."""

_COSTS: Final = {kind: what.faults for table in (ALONE, BETWEEN) for kind, what in table.items()}

HAPPENINGS: Final = tuple(kind for kind, faults in _COSTS.items() if faults < MENDING)
"""What can happen while nothing is mended."""

FAULTS: Final = tuple(kind for kind in HAPPENINGS if _COSTS[kind])
"""What can be forbidden, and happens only so often."""


def spell_move(move: Move) -> str:
    """Return a move as a story tells it."""
    return move[1].replace("X", chr(ord("A") + move[0]))


class Model:
    """The worlds of so many candidates.

    :param campaigns: how often each may stand. :param kinds: of faults that happen.
    :param renames: False keeps the names as they come, for a transcript.
    """

    def __init__(
        self,
        candidates: int,
        *,
        campaigns: int = 2,
        kinds: Iterable[str] = FAULTS,
        renames: bool = True,
    ) -> None:
        self.who: Final = range(candidates)
        self.alone: Final = [Alone(own, campaigns) for own in self.who]
        self.servers: Final = all_servers()
        self._forbidden = frozenset(FAULTS).difference(kinds)
        self._renames = renames
        self._meetings: dict[tuple[int, int, int, tuple[int, int, int]], Meeting] = {}

    def beginning(self, servers: Servers, faults: int) -> World:
        """Return the world in which nobody has connected yet."""
        nobody = (
            alone.candidates.number(Candidate(state=alone.words.beginning)) for alone in self.alone
        )
        return (faults, self.servers.number(servers), *nobody)

    # --- looking at a world ------------------------------------------------------------------

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

    # --- what can happen ---------------------------------------------------------------------

    def happenings(self, world: World) -> Iterator[tuple[Move, World | Broken]]:
        """Yield all that can happen next, with the world it makes or the promise it breaks."""
        mask, left = self.mask(world), world[0]
        for own in self.who:
            for outcomes in (self._lonely(world, own), self._met(world, own, mask)):
                for kind in outcomes:
                    if _COSTS[kind] <= left and kind not in self._forbidden:
                        yield (own, kind), self._become(world, (own, kind), outcomes[kind])

    def take(self, world: World, move: Move) -> World:
        """Return the world that a move makes, forbidden or not, whatever the number of faults.

        :raises Broken: it breaks a promise.
        """
        made = self._become(world, move, self.outcome(world, move))
        if isinstance(made, Broken):
            raise made
        return made

    def outcome(self, world: World, move: Move) -> Outcome | Broken:
        """Return what comes of a move."""
        own, kind = move
        if kind in ALONE:
            return self._lonely(world, own)[kind]
        return self._met(world, own, self.mask(world))[kind]

    def possible(self, world: World, own: int) -> tuple[Outcomes, Outcomes]:
        """Return what can come of a candidate alone, and of it and the servers."""
        return self._lonely(world, own), self._met(world, own, self.mask(world))

    def _lonely(self, world: World, own: int) -> Outcomes:
        return self.alone[own].moves(world[2 + own])

    def _met(self, world: World, own: int, mask: int) -> Outcomes:
        """Of an equal candidate, equal servers and equal names it is equal."""
        names = (
            fresh(mask, sessions_of(own)),
            fresh(mask, labels_of(own)),
            fresh(mask, CZXID),
        )
        key = own, world[1], world[2 + own], names
        found = self._meetings.get(key)
        if found is None:
            found = self._meetings[key] = Meeting(
                self.alone[own],
                self.candidate(world, own),
                self.servers[world[1]],
                Fresh(session_name(own, names[0]), label(own, names[1]), names[2] + 1),
            )
        return found

    # --- what comes of it --------------------------------------------------------------------

    def _become(self, world: World, move: Move, outcome: Outcome | Broken) -> World | Broken:
        """Put the outcome into the world, tell everybody, judge."""
        if isinstance(outcome, Broken):
            return outcome
        own, kind = move
        parts = [*world]
        parts[0] -= _COSTS[kind]
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
            elif is_unheard(said, servers, it):
                parts[2 + own] = self.alone[own].candidates.number(it._replace(hit=True))
            elif not it.hit:
                check_grant(said, servers, heard=not it.missed)
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
