"""One session in memory: its computer's clock, its client, and what can happen next to it."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

import attrs

from zkelect.testing.fake_client import FakeClient
from zkelect.testing.fake_clock import MachineClock
from zkelect.testing.fake_pool import TurnedPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.session.session import Session
    from zkelect.testing.fake_server import Connection

__all__ = ["Machine", "Move"]


class Move(StrEnum):
    """What can happen next to one session. Moves of one kind keep their order, no others."""

    READ = "read"
    """Its client reads the next thing that came from the server."""
    DROP = "drop"
    """Its client notices that the connection has ended; what it has not read is lost."""
    SERVE = "serve"
    """The server does its next request."""
    ANSWER = "answer"
    """It is handed the next answer."""
    EVENT = "event"
    """It is handed the next watch event."""
    CALL = "call"
    """Its next callback runs."""
    DIAL = "dial"
    """Its client dials a server."""


@attrs.define(eq=False)
class Machine:
    """What belongs to one session.

    :ivar asleep: the machine is suspended: nothing happens on it, only to its requests.
    :ivar held: moves that wait until they are released. :ivar wanted: when the session's
        watchdog wants its next turn.
    """

    clock: MachineClock
    client: FakeClient
    pool: TurnedPool
    session: Session
    asleep: bool = False
    held: set[Move] = attrs.field(factory=set)
    wanted: float = -math.inf

    @property
    def moves(self) -> list[Move]:
        """What can happen now, in the order in which it does when nobody chooses."""
        return [move for move in _POSSIBLE if self._can(move)]

    @property
    def next_move(self) -> Move | None:
        """The first of the moves."""
        return next((move for move in _POSSIBLE if self._can(move)), None)

    def make(self, move: Move) -> None:
        """Let it happen."""
        match move:
            case Move.READ:
                self.client.read()
            case Move.DROP:
                self.client.drop()
            case Move.SERVE:
                self._serve()
            case Move.ANSWER:
                self.client.answers.popleft()()
            case Move.EVENT:
                self.client.events.popleft()()
            case Move.CALL:
                self.pool.run_next()
            case Move.DIAL:
                self.client.dial()

    def turn(self) -> None:
        """Let the session's watchdog look at everything."""
        if not self.asleep and not self.session.closed:
            self.wanted = self.session.turn()

    @property
    def due(self) -> float:
        """When something happens here by the passing of time alone."""
        if self.asleep or self.session.closed:
            return math.inf
        return min(self.wanted, self.client.due)

    def _can(self, move: Move) -> bool:
        """Whether it is possible; on a machine that sleeps only its server does anything."""
        if move in self.held or (self.asleep and move is not Move.SERVE):
            return False
        return _POSSIBLE[move](self)

    def _serve(self) -> None:
        connection = _served(self)
        assert connection is not None  # it was a possible move
        connection.server.serve(connection)


def _served(machine: Machine) -> Connection | None:
    """Return the connection over which the server has something to do, the older one first."""
    for connection in (machine.client.former, machine.client.connection):
        if connection is not None and connection.servable:
            return connection
    return None


def _reads(machine: Machine) -> bool:
    connection = machine.client.connection
    return connection is not None and bool(connection.replies)


def _drops(machine: Machine) -> bool:
    connection = machine.client.connection
    return connection is not None and connection.broken


_POSSIBLE: dict[Move, Callable[[Machine], bool]] = {
    Move.READ: _reads,
    Move.DROP: _drops,
    Move.SERVE: lambda machine: _served(machine) is not None,
    Move.ANSWER: lambda machine: bool(machine.client.answers),
    Move.EVENT: lambda machine: bool(machine.client.events),
    Move.CALL: lambda machine: bool(machine.pool.waiting),
    Move.DIAL: lambda machine: machine.client.dialable,
}
