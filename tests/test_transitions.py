"""The page of transitions is up to date, and what must hold in every state that can be reached."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event
from zkelect.core.machine import TABLE
from zkelect.core.state import Phase, State

SOURCE: Final = Path(__file__).resolve().parent.parent / "docs" / "transitions.py"
FURTHER: Final = 3
"""Steps beyond those that the page is drawn from."""

Taken = tuple[State, Event, State, tuple[Effect, ...]]


def load(source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    return load(SOURCE)


@pytest.fixture(scope="module")
def steps(drawing: ModuleType) -> list[Taken]:
    return list(drawing.walk(drawing.DEPTH + FURTHER))


def test_the_page_of_transitions_is_up_to_date(drawing: ModuleType) -> None:
    page = drawing.page(drawing.edges())
    assert drawing.PAGE.read_text("utf-8") == page, "run: python docs/transitions.py"


def test_the_page_shows_every_edge(drawing: ModuleType, steps: list[Taken]) -> None:
    taken = {
        (before.phase, after.phase, type(event).__name__)
        for before, event, after, _ in steps
        if before.phase is not after.phase
    }
    drawn = {(*edge, event) for edge, labels in drawing.edges().items() for event in labels}
    assert taken == drawn


def test_every_handler_of_the_table_is_needed(steps: list[Taken]) -> None:
    idle = {
        (kind, phase)
        for kind, row in TABLE.items()
        for phase, handler in zip(Phase, row, strict=True)
        if getattr(handler, "__name__", "") == "_"
    }
    useful = {
        (type(event), before.phase)
        for before, event, after, effects in steps
        if before != after or effects
    }
    silent = {(kind, phase) for kind in TABLE for phase in Phase} - useful - idle
    assert silent == set()


# --- what holds after every step -----------------------------------------------------------


def of_kind(effects: tuple[Effect, ...], kind: type[Effect]) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


def asks_only_while_connected(taken: Taken) -> bool:
    _, _, after, effects = taken
    return after.connected or not of_kind(effects, ev.Request)


def grants_only_the_first_with_a_lease(taken: Taken) -> bool:
    before, event, after, effects = taken
    if not of_kind(effects, ev.Grant):
        return after.phase is not Phase.PREPARING or before.phase is Phase.PREPARING
    return (
        event.leased
        and after.connected
        and not after.ahead
        and after.node is not None
        and not after.node.exhausted
        and after.record is not None
        and after.record.paused is None
        and not after.looking
        and after.phase is Phase.PREPARING
        and not before.leads
    )


def voids_once_when_a_term_ends(taken: Taken) -> bool:
    before, _, after, effects = taken
    return len(of_kind(effects, ev.Void)) == int(before.leads and not after.leads)


def leads_with_term_znode_and_record(taken: Taken) -> bool:
    after = taken[2]
    if not after.leads:
        return after.term is None or after.phase is Phase.LEAVING
    return None not in (after.term, after.node, after.record, after.session_id)


def has_nothing_when_idle(taken: Taken) -> bool:
    after = taken[2]
    return after.phase is not Phase.IDLE or not (
        after.node or after.sent or after.found or after.term or after.again
    )


def finishes_as_soon_as_nothing_is_left(taken: Taken) -> bool:
    before, _, after, effects = taken
    left = after.term or after.node or after.sent or after.doomed
    if after.phase is Phase.LEAVING and not left:
        return False
    over = before.phase is not Phase.IDLE and after.phase is Phase.IDLE
    return bool(of_kind(effects, ev.Finish)) or not over


def deletes_what_is_not_its_candidate(taken: Taken) -> bool:
    _, _, after, effects = taken
    own = after.node.node if after.node is not None else None
    doomed = {effect.node for effect in effects if isinstance(effect, ev.Delete)}
    return after.phase is Phase.LEAVING or own not in doomed | after.doomed


def withdraws_when_the_body_may_no_longer_work(taken: Taken) -> bool:
    _, _, after, effects = taken
    if not of_kind(effects, ev.Withdraw):
        return True
    return after.phase is Phase.LEAVING and (after.term is None or after.released)


def creates_once_in_an_attempt(taken: Taken) -> bool:
    before, _, after, effects = taken
    creates = of_kind(effects, ev.Create)
    return len(creates) == 0 or (len(creates) == 1 and after.attempt > before.attempt)


def stamps_with_the_present_try(taken: Taken) -> bool:
    """A deletion may carry the stamp before: what became of a znode counts in any."""
    _, _, after, effects = taken
    answered = (ev.Create, ev.ReadRoll, ev.MakeParent, ev.Commit, ev.Watch, ev.Rest)
    return all(effect.stamp == after.stamp for effect in effects if isinstance(effect, answered))


PROMISES: Final = [
    asks_only_while_connected,
    grants_only_the_first_with_a_lease,
    voids_once_when_a_term_ends,
    leads_with_term_znode_and_record,
    has_nothing_when_idle,
    finishes_as_soon_as_nothing_is_left,
    deletes_what_is_not_its_candidate,
    withdraws_when_the_body_may_no_longer_work,
    creates_once_in_an_attempt,
    stamps_with_the_present_try,
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_in_every_state_that_can_be_reached(
    promise: Callable[[Taken], bool], steps: list[Taken]
) -> None:
    broken: Iterator[Taken] = (taken for taken in steps if not promise(taken))
    assert next(broken, None) is None
