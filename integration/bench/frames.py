"""Counts on the wire, from the log of a :class:`zkelect.testing.Forwarder`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zkelect.testing import Frame

__all__ = ["join_of", "requests_before", "round_trips"]

_JOIN = {"create2", "getChildren", "getData"}
_READS = 3  # getData: the record, the own znode, the predecessor; the heir's: the record again


def join_of(frames: Iterable[Frame], *, heir: bool = False) -> tuple[Frame, ...]:
    """Return the frames of a candidate's way into the queue, until its watches are set.

    Probes and pings go on beside it: nothing of the join waits for them.
    """
    joining: list[Frame] = []
    watched = 0
    for frame in frames:
        if frame.name in _JOIN:
            joining.append(frame)
            watched += frame.name == "getData" and frame.direction == "replies"
        if watched == _READS + heir:
            return tuple(joining)
    raise LookupError(f"no join in {[frame.name for frame in joining]}")


def round_trips(frames: Iterable[Frame]) -> tuple[tuple[str, ...], ...]:
    """Return the requests in batches: a batch ends when all of it has been answered.

    A server so quick that it answers the first request of a batch before the next has come
    makes two batches of one, never one of two: the least of several counts is the true one.
    """
    batches: list[tuple[str, ...]] = []
    batch: list[str] = []
    unanswered = 0
    for frame in frames:
        if frame.direction == "requests":
            batch.append(frame.name)
            unanswered += 1
            continue
        unanswered -= 1
        if unanswered == 0:
            batches.append(tuple(batch))
            batch.clear()
    return tuple(batches)


def requests_before(frames: Sequence[Frame], instant: float) -> tuple[str, ...]:
    """Return what was asked between the first watch event and an instant of the boot clock."""
    event = next(frame for frame in frames if frame.name == "event")
    return tuple(
        frame.name
        for frame in frames
        if frame.direction == "requests" and event.at <= frame.at <= instant
    )
