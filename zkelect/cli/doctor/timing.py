"""Findings about time: the session timeout, what the lease is good for, clocks and pauses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from zkelect.cli.doctor.facts import Facts, Host, Session
from zkelect.cli.doctor.finding import Code, Finding
from zkelect.core.lease import pace_of, patience_of, smallest_timeout, steady_lease
from zkelect.session.clock import SLEPT

__all__ = ["examine_timing", "lease_of", "timeout_needed"]

_DIFFERENT: Final = 0.001
_CLOCK_OFF: Final = 1.0
"""Seconds between two wall clocks from which on the times on pages mislead people."""

_ROUND_TRIPS: Final = 4
"""Commits between a proof and the answer that tells it (core/lease.py), and one more."""


def examine_timing(facts: Facts) -> Iterator[Finding]:
    """Find what is wrong with times; nothing, where no session could be opened."""
    session = facts.session
    if session.granted is not None:
        yield from _timeout(session, session.granted)
        yield from _tick(session, session.granted, facts.ensemble.tick)
        yield from _commits(session, session.granted)
    if facts.host is not None:
        yield from _pauses(facts, facts.host)
        yield from _clocks(facts.host)


def lease_of(session: Session) -> float | None:
    """Return the lease left at each answer, on a perfect network."""
    return None if session.granted is None else steady_lease(session.granted, session.tick)


def timeout_needed(facts: Facts) -> float:
    """Return the session timeout that this host and these servers ask for, in seconds.

    With it a quarter of the timeout is left of the lease after the longest pause and four of
    the slowest commits that were seen; so no commit takes as long as a dead link, either.
    """
    pause = 0.0 if facts.host is None else facts.host.pause
    commit = 0.0 if facts.session.commits is None else facts.session.commits.worst
    tick = facts.session.tick
    fitting = (n / 10 for n in count(1) if _fits(n / 10, tick, pause, commit))
    return max(next(fitting), smallest_timeout(tick))


def _fits(timeout: float, tick: float | None, pause: float, commit: float) -> bool:
    left = steady_lease(timeout, tick) - pause - _ROUND_TRIPS * commit
    return left >= timeout / 4


def _timeout(session: Session, granted: float) -> Iterator[Finding]:
    least = smallest_timeout(session.tick)
    if granted < least:
        yield Finding(
            Code.TIMEOUT_TOO_SMALL,
            f"The servers grant {granted:g} s, and a steady lease needs {least:g} s: candidates "
            "refuse to connect.",
            f"Raise maxSessionTimeout to {least:g} s at least.",
        )
    elif abs(granted - session.asked) > _DIFFERENT:
        yield Finding(
            Code.OTHER_TIMEOUT,
            f"We ask for a session timeout of {session.asked:g} s and get {granted:g} s.",
            f"Ask for session_timeout={granted:g}, or change minSessionTimeout and "
            "maxSessionTimeout.",
        )


def _tick(session: Session, granted: float, tick: float | None) -> Iterator[Finding]:
    if tick is None:
        return
    if session.tick is not None and session.tick < tick - _DIFFERENT:
        yield Finding(
            Code.TICK_TOO_SMALL,
            f"We count on tick_time={session.tick:g}, and the servers' is {tick:g} s: leases are "
            "counted too long, and two may lead at once.",
            f"Set tick_time={tick:g}, or leave it out.",
        )
    elif session.tick is None and tick <= granted / 2:
        gained = steady_lease(granted, tick) - steady_lease(granted)
        yield Finding(
            Code.TICK_NOT_GIVEN,
            f"The servers' tickTime is {tick:g} s, and we are not told: with it the lease is "
            f"{gained:.1f} s longer.",
            f"Set tick_time={tick:g}, as long as it is never more on any server.",
        )


def _commits(session: Session, granted: float) -> Iterator[Finding]:
    commits = session.commits
    if commits is None:
        return
    told = f"The slowest of {commits.count} commits took {commits.worst:.3f} s"
    advice = "Look at the servers' disks and load (mntr: fsync, outstanding), and at the network."
    if commits.worst > patience_of(granted):
        yield Finding(
            Code.COMMITS_TOO_SLOW,
            f"{told}; at a session timeout of {granted:g} s a link that is silent for "
            f"{patience_of(granted):g} s counts as dead.",
            advice,
        )
    elif commits.worst > pace_of(granted):
        yield Finding(
            Code.COMMITS_SLOW,
            f"{told}, and a lease is renewed every {pace_of(granted):.2f} s at best: it will be "
            "short.",
            advice,
        )


def _pauses(facts: Facts, host: Host) -> Iterator[Finding]:
    lease, granted = lease_of(facts.session), facts.session.granted
    if lease is None or granted is None:
        return
    told = f"This host stood still for {host.pause:.3f} s (watched for {host.measured:.1f} s)"
    needed = timeout_needed(facts)
    if host.pause >= lease:
        yield Finding(
            Code.PAUSES_TOO_LONG,
            f"{told}; a leader here would lose its lease of {lease:.2f} s by it.",
            f"Ask for a session timeout of {needed:g} s or more, or give the host rest.",
        )
    elif needed > granted:
        yield Finding(
            Code.PAUSES_LONG,
            f"{told}; with the commits as they are that asks for a session timeout of {needed:g} "
            f"s, and {granted:g} s is granted.",
            f"Ask for {needed:g} s, or give the host rest.",
        )


def _clocks(host: Host) -> Iterator[Finding]:
    if host.slept is None:
        yield Finding(
            Code.SLEEP_UNSEEN,
            "This system has no CLOCK_BOOTTIME: that it slept is noticed only by the servers.",
            "Forbid it to suspend.",
        )
    elif host.slept >= SLEPT:
        yield Finding(
            Code.HOST_SLEEPS,
            f"This host has slept for {host.slept:.1f} s in all since it was started; each time "
            "its leaderships were over.",
            "Forbid it to suspend, if it shall lead.",
        )
    if host.ahead is not None and abs(host.ahead) - host.doubt > _CLOCK_OFF:
        side = "ahead of" if host.ahead > 0 else "behind"
        yield Finding(
            Code.CLOCK_OFF,
            f"This host's wall clock is {abs(host.ahead):.1f} s {side} the servers'. No lease "
            "counts on it, but people, certificates and timetables do.",
            "Set both by NTP.",
        )
