"""Draw docs/transitions.md from the transition table itself: ``python docs/transitions.py``.

The table lists the handlers. The edges of the diagram are found by walking: every event
that can come meets every state that can be reached, through the real ``step``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Reason, Stamp
from zkelect.core.handover import Handover, HandoverState
from zkelect.core.machine import TABLE, step
from zkelect.core.pause import Pause
from zkelect.core.record import Record
from zkelect.core.state import Phase, State
from zkelect.core.znodes import KAZOO
from zkelect.errors import RequestFailed
from zkelect.token import Token

PAGE: Final = Path(__file__).with_suffix(".md")
DEPTH: Final = 6
"""Steps from the beginning; going further finds no other edge (tests/test_transitions.py)."""

Edges = dict[tuple[Phase, Phase], set[str]]

# --- what can come -------------------------------------------------------------------------

SESSIONS: Final = (7, 8)
RECORD: Final = Record(uuid="0123456789abcdef0123456789abcdef")
RENEWED: Final = evolve(RECORD, generation=2)
PAUSED: Final = evolve(RECORD, paused=Pause(by="k"))
HANDOVER: Final = Handover(
    id="1",
    target="",
    name="",
    leader="",
    token=Token(lineage="0" * 16, generation=1, czxid=1, holder="0" * 16),
    timeout=1.0,
    state=HandoverState.DRIVEN,
)
THEIRS: Final = KAZOO.prefix("a") + "0000000001"
OURS: Final = KAZOO.prefix("b") + "0000000002"
STRAY: Final = KAZOO.prefix("b") + "0000000003"
WORN: Final = KAZOO.prefix("b") + "2147483647"
REFUSAL: Final = RequestFailed("/election", "get", "refused")
BEGINNING: Final = State(path="/election")


def possible_events(s: State) -> Iterator[Event]:
    """Yield what can come in a state: a small alphabet of each event, in its variants."""
    yield ev.Campaigned(campaign=1, uuid="b")
    yield ev.Cancelled(campaign=1)
    yield from _session_events(s)
    if s.term is not None:
        yield from _term_events(s.term)
    if s.session_id is not None:
        yield from _answers(s, s.session_id)


def _session_events(s: State) -> Iterator[Event]:
    yield from (ev.SessionOpened(session_id=i, uuid="b") for i in SESSIONS if i != s.session_id)
    if s.session_id is None:
        return
    yield ev.SessionExpired()
    yield ev.SessionSuspended() if s.connected else ev.SessionResumed()


def _term_events(term: Stamp) -> Iterator[Event]:
    yield ev.Prepared(term=term)
    yield ev.TermEnded(term=term, reason=Reason.RESIGNED)
    yield ev.TermEnded(term=term, reason=Reason.STALLED)
    yield ev.Returned(term=term)
    yield ev.GraceEnded(term=term)


def _answers(s: State, session_id: int) -> Iterator[Event]:
    if s.sent and not s.lost:
        yield from _created(s.stamp, session_id)
    else:  # replies keep the order of the requests: the roll comes behind the create
        yield from _rolled(s.stamp)
    yield from _answers_about_us(s.stamp, session_id)
    yield from _recorded(s)
    yield from _handed(s.stamp)
    yield from _late_answers(evolve(s.stamp, attempt=s.attempt - 1), session_id)
    yield ev.Refused(stamp=s.stamp, error=REFUSAL)
    yield ev.ParentMissing(stamp=s.stamp)
    yield ev.ParentMade(stamp=s.stamp)
    yield ev.Committed(stamp=s.stamp)
    yield ev.Rested(stamp=s.stamp)
    yield ev.RollDue(stamp=s.stamp)
    for leased in (False, True):
        yield ev.Proven(stamp=s.stamp, leased=leased)
        yield ev.Vanished(stamp=s.stamp, node=THEIRS, leased=leased)


def _created(stamp: Stamp, session_id: int) -> Iterator[Event]:
    for node in (OURS, STRAY, WORN):
        yield ev.Created(stamp=stamp, node=node, czxid=1, owner=session_id)


def _rolled(stamp: Stamp) -> Iterator[Event]:
    for record in (RECORD, RENEWED, None):
        yield ev.Rolled(stamp=stamp, children=(THEIRS, OURS), record=record)
    for children in ((), (OURS,), (OURS, STRAY), (THEIRS, OURS, WORN)):
        yield ev.Rolled(stamp=stamp, children=children, record=RECORD)
        yield ev.Rolled(stamp=stamp, children=children, record=RECORD, leased=True)


def _recorded(s: State) -> Iterator[Event]:
    for record in (RECORD, PAUSED, RENEWED, None):
        yield ev.Recorded(stamp=s.stamp, look=s.look, record=record, leased=True)


def _handed(stamp: Stamp) -> Iterator[Event]:
    """A switchover: past us, to us, from us."""
    for leader, target in ((THEIRS, STRAY), (THEIRS, OURS), (OURS, THEIRS)):
        handover = evolve(HANDOVER, leader=leader, target=target)
        yield ev.HandoverRead(stamp=stamp, handover=handover)
    for node in (THEIRS, OURS):
        yield ev.Watched(stamp=stamp, node=node, czxid=1, owner=0, touched=True)


def _answers_about_us(stamp: Stamp, session_id: int) -> Iterator[Event]:
    yield ev.RecordTouched(stamp=stamp)
    yield ev.Changed(stamp=stamp, node=THEIRS)
    for node in (OURS, STRAY):
        yield ev.Watched(stamp=stamp, node=node, czxid=1, owner=session_id)
        yield ev.Watched(stamp=stamp, node=node, czxid=1, owner=0)
        yield ev.Vanished(stamp=stamp, node=node)
        yield ev.Changed(stamp=stamp, node=node)
        yield ev.Deleted(stamp=stamp, node=node)
        yield ev.DeleteRefused(stamp=stamp, node=node, error=REFUSAL)


def _late_answers(stamp: Stamp, session_id: int) -> Iterator[Event]:
    yield ev.Created(stamp=stamp, node=STRAY, czxid=1, owner=session_id)
    yield ev.Deleted(stamp=stamp, node=STRAY)


# --- walking -------------------------------------------------------------------------------


def walk(depth: int) -> Iterator[tuple[State, Event, State, tuple[Effect, ...]]]:
    """Yield every step from every state that can be reached within so many steps."""
    met, at_hand = {BEGINNING}, deque([(BEGINNING, 0)])
    while at_hand:
        before, steps = at_hand.popleft()
        for event in possible_events(before):
            after, effects = step(before, event)
            yield before, event, after, effects
            after = _renumbered(after)
            if after not in met and steps < depth:
                met.add(after)
                at_hand.append((after, steps + 1))


def _renumbered(s: State) -> State:
    """Count attempts from 1 again, so that equal situations are equal states."""
    term = s.term and evolve(s.term, attempt=int(s.term == s.stamp))
    return evolve(s, attempt=1, walked=0, look=0, czxid=min(s.czxid, 1), term=term)


def edges(depth: int = DEPTH) -> Edges:
    """Return which events lead from one phase to another."""
    found: Edges = {}
    for before, event, after, _ in walk(depth):
        if before.phase is not after.phase:
            found.setdefault((before.phase, after.phase), set()).add(type(event).__name__)
    return found


# --- drawing -------------------------------------------------------------------------------


def page(drawn: Edges) -> str:
    """Return the page as it should read now."""
    return _PAGE.format(diagram="\n".join(_diagram(drawn)), table="\n".join(_table()))


def _diagram(drawn: Edges) -> Iterator[str]:
    yield "    [*] --> idle"
    order = [event.__name__ for event in ev.EVENTS]
    for before in Phase:
        for after in Phase:
            if (before, after) in drawn:
                label = ", ".join(sorted(drawn[before, after], key=order.index))
                yield f"    {before} --> {after}: {label}"


def _table() -> Iterator[str]:
    yield f"| event | {' | '.join(Phase)} |"
    yield f"|---|{'---|' * len(Phase)}"
    for event, row in TABLE.items():
        yield f"| {event.__name__} | {' | '.join(map(_cell, row))} |"


def _cell(handler: object) -> str:
    name = getattr(handler, "__name__", "")
    return "" if name == "_" else f"`{name}`"


_PAGE: Final = """\
# Transitions of a candidate

Drawn by `python docs/transitions.py` from the transition table in `zkelect/core/machine.py`;
a test fails when this page is out of date.

An arrow is there when the real `step` takes it: every event that can come was tried in every
state that can be reached. That a session is suspended is no phase: it is said of the session,
and the lease decides what it means.

```mermaid
stateDiagram-v2
{diagram}
```

What each event does in each phase; an empty cell changes nothing. Before the table, answers
of an earlier try and events of another term are dropped, except for what became of a znode of
ours: a create that was answered late is deleted. The handlers stand in `joining.py`,
`waiting.py`, `yielding.py`, `leading.py`, `leaving.py` and `reconnecting.py` of `zkelect/core`.

{table}
"""

if __name__ == "__main__":
    PAGE.write_text(page(edges()), "utf-8")
