"""The coordinator: looks, decides by the pure function, writes the next page; touches no server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import attrs

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.choice import Policy, discords
from zkelect.recipes.clock import now
from zkelect.recipes.gates import failure_of, waits
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.promotion import advance
from zkelect.recipes.view import Decision, Resign, View, Wait, Write

__all__ = ["Coordinator"]

_log: Final = logging.getLogger("zkelect.recipes")
_BRISK: Final = 0.02


class Coordinator:
    """What one member's process does while it leads the coordinators' election.

    Nothing is remembered from one term to the next, and in a term only since when something has
    been so: whoever follows finds all the rest on the board.

    :param name: of the member. :param interval: seconds between two looks.
    """

    def __init__(
        self,
        board: Board,
        name: str,
        policy: Policy,
        *,
        interval: float = 0.2,
        clock: Callable[[], float] = now,
    ) -> None:
        self._board = board
        self._name = name
        self._policy = policy
        self._interval = interval
        self._clock = clock
        self._told: Decision | None = None
        self._discord: tuple[str, ...] = ()
        self._changing = False

    def lead(self, leadership: zkelect.Leadership) -> None:
        """Decide as long as we lead, or until the next thing needs a higher token."""
        watch = _Watch(self._clock)
        while not leadership.wait_lost(self._pause):
            try:
                if self._step(leadership, watch):
                    return
            except zkelect.Unreachable as error:
                _log.info("%s: the coordinator %s looks again: %s", *self._who, error)

    @property
    def _pause(self) -> float:
        """Look more often while nobody may write."""
        return min(_BRISK, self._interval) if self._changing else self._interval

    @property
    def _who(self) -> tuple[str, str]:
        return self._board.path, self._name

    def _step(self, leadership: zkelect.Leadership, watch: _Watch) -> bool:
        """Look once and do what follows; return whether to give the office up."""
        page, version = self._board.page()
        self._changing = page is not None and page.phase is not Phase.STEADY
        view, sync_version = self._look(leadership, page, watch)
        self._warn(discords(view.beats))
        decision = advance(page, view, self._policy)
        self._tell(decision)
        if isinstance(decision, Write):
            self._board.turn(leadership, decision.page, version=version, sync_version=sync_version)
        return isinstance(decision, Resign)

    def _look(
        self, leadership: zkelect.Leadership, page: Page | None, watch: _Watch
    ) -> tuple[View, int]:
        sync, sync_version = self._board.sync()
        view = View(
            token=str(leadership.check()),
            coordinator=self._name,
            beats=self._board.beats(),
            holder=self._board.holder(),
            sync=sync,
            paused=self._board.paused(),
            request=self._board.request(),
        )
        return watch.timed(view, page), sync_version

    def _warn(self, discord: tuple[str, ...]) -> None:
        """Log once that agents were given different policies."""
        if discord != self._discord:
            self._discord = discord
            for line in discord:
                _log.warning("%s: %s", self._board.path, line)

    def _tell(self, decision: Decision) -> None:
        """Log what is decided, and a wait once for each reason."""
        if decision == self._told or decision == Wait():
            return
        self._told = decision
        match decision:
            case Write(page=page):
                winner = f", {page.winner} is to be the primary" if page.winner else ""
                why = f": {page.why}" if page.why else ""
                _log.info("%s: %s writes %s%s%s", *self._who, page.phase, winner, why)
            case Wait(reasons=reasons):
                _log.info("%s: %s waits: %s", *self._who, "; ".join(reasons))
            case Resign(reason=reason):
                _log.info("%s: %s resigns: %s", *self._who, reason)


class _Watch:
    """Since when this term has seen the page, and the primary failing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._serial: int | None = None
        self._serial_since = self._failing_since = clock()

    def timed(self, view: View, page: Page | None) -> View:
        """Return the view with the times for which things have been so."""
        instant = self._clock()
        serial = None if page is None else page.serial
        if serial != self._serial:
            self._serial, self._serial_since = serial, instant
        failing = (
            page is not None
            and page.phase is Phase.STEADY
            and not waits(page, view)
            and failure_of(page, view) != ""
        )
        if not failing:
            self._failing_since = instant
        return attrs.evolve(
            view, elapsed=instant - self._serial_since, failing=instant - self._failing_since
        )
