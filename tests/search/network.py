"""Connections that keep the order of what they carry, and nothing else.

The lease trusts TCP for exactly this, first in first out on each connection. It needs no
bound on delays, so here they have none: a direction may be held for as long as one likes,
and what was under way then arrives when the hold ends, or never.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final

import attrs

from search.timeline import Process, Timeline

__all__ = ["Link", "Network", "Weather"]

_NEXT: Final = 1e-9
"""Seconds between two arrivals on one connection, so that their order is told by time."""


@attrs.frozen(kw_only=True)
class Weather:
    """How long messages take: up to ``latency``, now and then up to ``spike`` more, seconds."""

    latency: float
    spike: float
    spike_chance: float


class Network:
    """Who can reach whom just now, and how long it takes."""

    def __init__(self, timeline: Timeline, chance: Random, weather: Weather) -> None:
        self.timeline = timeline
        self._chance = chance
        self._weather = weather
        self._holds: dict[tuple[int, int], tuple[float, float]] = {}

    def open(self, near: Process, far: Process) -> Link:
        """Connect two processes."""
        return Link(self, near, far)

    def hold(self, sender: Process, receiver: Process, duration: float) -> None:
        """Let nothing arrive in one direction for so long; TCP sends it again afterwards."""
        now = self.timeline.now
        key = sender.number, receiver.number
        since, until = self._holds.get(key, (now, now))
        self._holds[key] = (since if until >= now else now, max(until, now + duration))

    def reaches(self, one: Process, other: Process) -> bool:
        """Whether messages pass in both directions."""
        now = self.timeline.now
        return max(self.held(one, other, now), self.held(other, one, now)) <= now

    def held(self, sender: Process, receiver: Process, arriving: float) -> float:
        """Return when something that would arrive at an instant really does."""
        hold = self._holds.get((sender.number, receiver.number))
        if hold is None or not hold[0] <= arriving < hold[1]:
            return arriving
        return hold[1]

    def delay(self) -> float:
        """Return how long the next message is under way."""
        weather = self._weather
        delay = self._chance.random() * weather.latency
        if self._chance.random() < weather.spike_chance:
            delay += self._chance.random() * weather.spike
        return delay


class Link:
    """A TCP connection between two processes."""

    __slots__ = ("_arrivals", "_ends", "_network", "_open", "_under_way")

    def __init__(self, network: Network, near: Process, far: Process) -> None:
        self._network = network
        self._ends = {near.number: far, far.number: near}
        self._open = {near.number, far.number}
        self._arrivals = dict.fromkeys(self._open, 0.0)
        self._under_way: dict[int, deque[tuple[float, Callable[..., None], tuple[Any, ...]]]] = {
            number: deque() for number in self._open
        }

    def peer(self, end: Process) -> Process:
        """Return who is on the other side."""
        return self._ends[end.number]

    def is_open(self, end: Process) -> bool:
        """Whether this end takes what arrives."""
        return end.number in self._open

    def tell(self, sender: Process, call: Callable[..., None], *args: Any) -> None:
        """Send: the receiver does the call when this arrives, unless it has closed its end."""
        if sender.number in self._open:
            self._send(sender, call, args)

    def close(self, end: Process) -> None:
        """Close one end; the other hears of it after everything that was sent before."""
        if end.number in self._open:
            receiver = self._ends[end.number]
            self._send(end, receiver.lost, (self,))
            self._open.discard(end.number)

    def sever(self, end: Process) -> None:
        """Close one end and let the other not hear of it: the machine is off, the cable cut."""
        self._open.discard(end.number)

    def _send(self, sender: Process, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        network, receiver = self._network, self._ends[sender.number]
        arriving = network.timeline.now + network.delay()
        arriving = max(arriving, self._arrivals[receiver.number] + _NEXT)
        self._arrivals[receiver.number] = arriving
        self._under_way[receiver.number].append((arriving, call, args))
        network.timeline.at(arriving, receiver, self._arrive, sender, receiver)

    def _arrive(self, sender: Process, receiver: Process) -> None:
        """Hand over the oldest message: there are as many of these events as messages."""
        network, under_way = self._network, self._under_way[receiver.number]
        arriving, call, args = under_way[0]
        held = network.held(sender, receiver, arriving)
        if held <= network.timeline.now:
            under_way.popleft()
            if receiver.number in self._open:
                call(*args)
        elif held < math.inf:
            network.timeline.at(held, receiver, self._arrive, sender, receiver)
