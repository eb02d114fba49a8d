"""An ensemble in memory, its clients, and a clock: every message waits until it is let through.

Everything above kazoo is the real code: :class:`zkelect.Session`, its watchdog, probes
and lease, :class:`zkelect.Election`. Only kazoo and the servers are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, Self

import attrs

from zkelect.errors import InvalidArgument, RequestFailed
from zkelect.session.session import Session
from zkelect.testing.fake_client import FakeClient
from zkelect.testing.fake_clock import MachineClock, VirtualClock
from zkelect.testing.fake_link import FakeLink
from zkelect.testing.fake_pool import TurnedPool
from zkelect.testing.fake_quorum import Quorum
from zkelect.testing.fake_server import Connection, FakeServer
from zkelect.testing.fake_tree import Create, Delete, Operation, Put, Refusal, Znode

__all__ = ["FakeEnsemble", "Move", "Step"]

_LEAST_ADVANCE: Final = 0.01
"""Seconds: so that a watchdog that wants to be called at once cannot stop the time."""

_ENDLESS: Final = 100_000


class Move(StrEnum):
    """What can happen next to one client, each in an order of its own."""

    READ = "reads what came from its server, or loses it"
    DROP = "notices that its connection has ended"
    SERVE = "has its next request done by the server"
    ANSWER = "is handed its next answer"
    EVENT = "is handed its next watch event"
    CALL = "runs its next callback"
    DIAL = "dials a server"


@attrs.frozen
class Step:
    """One move of one session; the number is its place among the ensemble's sessions."""

    session: int
    move: Move


@attrs.define(eq=False)
class _Machine:
    """One session's computer: its clock, its client, the session itself once it is made."""

    clock: MachineClock
    client: FakeClient
    pool: TurnedPool
    asleep: bool = False
    held: set[Move] = attrs.field(factory=set)
    session: Session | None = None
    wanted: float = -math.inf


@attrs.define
class _Fault:
    connection_of: FakeClient
    kind: str
    name: str
    left: int
