"""The lease rule: how long a leader may go on when it hears nothing.

An answered ping or read proves nothing: a server cut off from the quorum goes on
answering them. An acknowledged write proves less than one would think: a follower
tells the ensemble leader which sessions were active only in its answers to the
leader's own pings, every half tick, and that news can die with it. Only a chain of
quorum commits is evidence, and this is the chain:

1. After the commit of probe *j* the ensemble leader's next ping to the learner is due
   within half a tick, so it leaves before the commit of a probe sent later than that.
2. Leader to learner is FIFO: the learner answers that ping, with *j*'s activity in its
   table, before it passes on the answer to the later probe.
3. Learner to leader is FIFO: that answer is applied before the request of the next one.
4. When that next one is committed the session was open, and no newer ensemble leader
   existed before it was sent; any later one starts every session with a full timeout.

So the answer of probe *k* proves that the session was touched not before probe
*f(k)* was sent, and it cannot expire until its timeout after that. It needs no
bound on message delay; it trusts FIFO links, the tick as configured, clocks within
1 % of true rate, and equal session limits on all servers.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import count
from typing import Final

import attrs

__all__ = [
    "GAP",
    "SLACK",
    "VOID",
    "Lease",
    "pace_of",
    "patience_of",
    "smallest_timeout",
    "steady_lease",
]

SLACK: Final = 0.1
"""J: seconds by which the ensemble leader's ping thread may run late."""

GAP: Final = 1.2 * SLACK
"""Least distance between an answer and the next probe, in seconds."""

_RATE: Final = 0.98
_MARGIN: Final = 0.05
_TICK_RATE: Final = 1.01


def pace_of(timeout: float) -> float:
    """Return the seconds from one answer to the next probe, for a session timeout."""
    return max(timeout / 15, GAP)


def patience_of(timeout: float) -> float:
    """Return the seconds after which an unanswered request condemns its socket."""
    return timeout / 5


@attrs.define
class _Probe:
    """One link of the chain; ``base`` is when f of it was sent."""

    asked: float
    answered: float | None = None
    base: float = -math.inf


class Lease:
    """One session's lease: what its answers have proven, as a deadline.

    Instants are float seconds of one clock that the caller reads; nothing here does.
    A lease lives as long as its session id; make a new one for a new session.

    :param tick: the servers' tickTime in seconds, if it is known; otherwise half the
        session timeout is taken, which is the most it can be.
    :param hops: 1; 2 for observers behind observerMasterPort, or when the ensemble
        leader may starve for processor time.
    """

    __slots__ = ("_connected", "_hops", "_probes", "_tick", "deadline", "timeout")

    def __init__(self, *, tick: float | None = None, hops: int = 1) -> None:
        self.deadline: float = -math.inf
        self.timeout: float = math.inf
        self._tick = tick
        self._hops = hops
        self._connected = -math.inf
        self._probes: deque[_Probe] = deque()

    @property
    def span(self) -> float:
        """Seconds within which the ensemble leader must have pinged its learner."""
        tick = self.timeout / 2 if self._tick is None else self._tick
        return _TICK_RATE * tick / 2 + SLACK

    def connect(self, started: float, timeout: float) -> None:
        """Start a new chain: a server answered our handshake. It proves nothing yet.

        :param started: instant read before the TCP connect.
        :param timeout: the timeout this server granted, seconds. The smallest one in
            the life of the session counts: a new ensemble leader takes the one of
            the session's creation.
        """
        self._probes.clear()
        self._connected = started
        if timeout < self.timeout:
            self.timeout = timeout
            self.deadline = min(self.deadline, self._from(started))

    def ask(self, at: float) -> None:
        """Note that a probe goes out.

        :param at: instant read before the request is handed over.
        :raises ValueError: the last probe is unanswered; pipelined probes prove nothing.
        """
        if self.pending:
            raise ValueError("a probe is under way; only one at a time is evidence")
        self._probes.append(_Probe(at))

    def answer(self, at: float) -> None:
        """Note that the probe under way was committed, every item of it.

        :param at: instant read after its answer.
        :raises ValueError: no probe is under way on this connection.
        """
        if not self.pending:
            raise ValueError("no probe is under way")
        probe, touched = self._probes[-1], self._touched()
        probe.answered = at
        probe.base = self._connected if touched is None else touched.asked
        base = touched.base if touched is not None and self._hops == 2 else probe.base
        self.deadline = max(self.deadline, self._from(base))

    def discard(self) -> None:
        """Forget the probe under way: it failed, so it is no link of the chain."""
        if self.pending:
            self._probes.pop()

    def void(self) -> None:
        """End this lease for good: session gone, machine suspended, process forked."""
        self.deadline = -math.inf
        self.timeout = -math.inf  # so that no late answer can raise the deadline again

    def renewed(self) -> Lease:
        """Return a lease of the same session that has nothing proven yet."""
        lease = Lease(tick=self._tick, hops=self._hops)
        lease.timeout = self.timeout
        return lease

    def stale(self, at: float) -> bool:
        """Whether the next answer proves nothing: the chain is young, its connection old.

        A new connection would prove more with its first probe than this one with many.
        """
        return len(self._probes) < 4 and at >= self._from(self._connected)

    @property
    def pending(self) -> bool:
        """Whether a probe is under way."""
        return bool(self._probes) and self._probes[-1].answered is None

    def _from(self, base: float) -> float:
        if math.isinf(self.timeout):
            return -math.inf  # nobody told the timeout, or the lease is void
        return base + _RATE * self.timeout - _MARGIN

    def _touched(self) -> _Probe | None:
        """Find f(k), the youngest probe whose touch has surely reached the leader."""
        probes = self._probes
        if len(probes) < 4:
            return None
        limit = probes[-3].asked - self.span
        while len(probes) > 4 and _answered_by(probes[1], limit):
            probes.popleft()  # f never falls, so what is older is not needed again
        return probes[0] if _answered_by(probes[0], limit) else None


def _answered_by(probe: _Probe, limit: float) -> bool:
    return probe.answered is not None and probe.answered <= limit


VOID: Final = Lease()
"""The lease of a leadership that is over: its deadline has always passed."""


def steady_lease(timeout: float, tick: float | None = None) -> float:
    """Return the lease left at an answer on a perfect network, in seconds.

    :param timeout: session timeout. :param tick: tickTime, both in seconds.
    """
    pace = pace_of(timeout)
    span = _TICK_RATE * (timeout / 2 if tick is None else tick) / 2 + SLACK
    return _RATE * timeout - _MARGIN - (2 + math.ceil(span / pace)) * pace


def smallest_timeout(tick: float | None = None) -> float:
    """Return the least session timeout that keeps a quarter of itself as lease, seconds."""
    tenths = next(n for n in count(1) if steady_lease(n / 10, tick) >= n / 40)
    return tenths / 10
