"""A small history that never happened, for the checker's own tests: honest as it is.

Candidate 1 leads from 1.1 on, resigns at 2.0 and stands again; candidate 2 leads from 2.2 on,
through a fault that heals at 4.0 and a peace from 5.0 to 15.0, until all leave at 16.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from chaos.history import Event, History

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FIRST", "SECOND", "event", "honest", "judged"]

_LINEAGE: Final = "1" * 16
FIRST: Final = f"00000001-{1:016x}-{_LINEAGE}-{'a' * 16}"
SECOND: Final = f"00000001-{2:016x}-{_LINEAGE}-{'b' * 16}"
_PATH: Final = "/e"


def event(at: float, by: str, kind: str, /, **fields: Any) -> Event:
    """Forge one event."""
    return Event(at, by, kind, fields)


def honest() -> list[Event]:
    """Return a history in which every promise is judged and holds."""
    return sorted(
        [*_run(), *_first_term(), *_second_term(), *_queue(), *_evidence()],
        key=lambda event: event.at,
    )


def judged(
    *more: Event,
    without: Callable[[Event], bool] = lambda _: False,
    instead: Callable[[Event], Event] = lambda event: event,
) -> History:
    """Return the honest history with some events more, some fewer, some changed."""
    kept = [instead(event) for event in honest() if not without(event)]
    return History(tuple(sorted([*kept, *more], key=lambda event: event.at)))


def _run() -> list[Event]:
    return [
        event(
            0.0, "director", "begun", path=_PATH, stores=["s"], session_timeout=2.0, faults=["hole"]
        ),
        event(0.0, "director", "beaten", wall=1000.0),
        event(3.0, "director", "inflicting", fault="hole"),
        event(3.0, "director", "inflicted", fault="hole", struck="c2", seconds=1.0),
        event(4.0, "director", "healed", faults=["hole"]),
        event(5.0, "director", "calmed"),
        event(15.0, "director", "alarmed"),
        event(15.5, "director", "ending"),
        event(16.6, "director", "finished"),
    ]


def _first_term() -> list[Event]:
    return [
        event(0.5, "c1.1", "opened", session="0x1"),
        event(1.1, "c1.1", "granted", token=FIRST, node="n1", session="0x1"),
        event(1.2, "c1.1", "leased", token=FIRST, deadline=3.0),
        *_operation("c1.1", 1.3, "claim", "1", FIRST),
        *_operation("c1.1", 1.4, "write", "2", FIRST, after=""),
        *_operation("c1.1", 1.5, "write", "3", FIRST, after="2"),
        event(1.6, "c1.1", "forked", token=FIRST, checked="lost", tried={"s": "lost"}),
        event(2.0, "c1.1", "resigned", token=FIRST),
        event(2.05, "c1.1", "ended", token=FIRST, reason="resigned", passed=2.0),
    ]


def _second_term() -> list[Event]:
    return [
        event(0.6, "c2.1", "opened", session="0x2"),
        event(2.2, "c2.1", "granted", token=SECOND, node="n2", session="0x2"),
        event(2.3, "c2.1", "leased", token=SECOND, deadline=4.2),
        *_operation("c2.1", 2.4, "claim", "4", SECOND),
        *_operation("c2.1", 2.5, "write", "5", SECOND, after="3"),
        *_operation("c2.1", 10.0, "write", "6", SECOND, after="5"),
        event(15.9, "c2.1", "leased", token=SECOND, deadline=17.8),
        event(16.0, "c2.1", "ended", token=SECOND, reason="resigned", passed=15.95),
    ]


def _operation(
    by: str, at: float, what: str, op: str, token: str, after: str | None = None
) -> list[Event]:
    asked = event(at, by, "asked", op=op, what=what, store="s", token=token)
    answered = event(at + 0.02, by, "answered", op=op, outcome="done", latency=0.02)
    row = event(at + 0.01, "s", "row", op=op, after=after, token=token)
    return [asked, answered] if after is None else [asked, row, answered]


def _queue() -> list[Event]:
    return [
        event(2.1, "director", "woken", candidate=1, path="/e/n1"),
        event(2.1, "director", "woken", candidate=2, path="/e/n1"),
        event(15.2, "observer", "called", moment="peace", roll=[["n2", "0x2", "c2.1"]]),
        event(16.5, "observer", "called", moment="end", roll=[]),
    ]


def _evidence() -> list[Event]:
    return [
        event(0.9, "zookeeper", "created", node="n1", session="0x1"),
        event(1.0, "zookeeper", "created", node="n2", session="0x2"),
        event(2.1, "zookeeper", "deleted", node="n1", session="0x1"),
        event(16.1, "zookeeper", "deleted", node="n2", session="0x2"),
        event(16.2, "zookeeper", "closed", session="0x2"),
        event(17.0, "s", "logged", rows=4),
        event(17.0, "zookeeper", "replayed", transactions=5),
    ]
