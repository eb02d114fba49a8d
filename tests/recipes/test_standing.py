"""What an agent tells load balancers: pure."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from zkelect.recipes.member import Observed, Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.standing import Standing, answers_reads, pages_of

PRIMARY = Standing(
    path="/cluster",
    name="a",
    primary=True,
    replica=False,
    role=Role.PRIMARY,
    behind=0,
    remaining=1.23456,
    token="t",
    connected=True,
    usable=True,
)
REPLICA = attrs.evolve(PRIMARY, primary=False, replica=True, role=Role.REPLICA, token=None)


def page(phase: Phase) -> Page:
    return Page(phase=phase, token="t", coordinator="c", primary="a", winner="b")


@attrs.frozen
class Agent:
    found: Standing

    def standing(self) -> Standing:
        return self.found


# --- who answers reads -------------------------------------------------------------------------


@pytest.mark.parametrize("phase", Phase)
def test_a_replica_answers_reads_whatever_is_done_about_the_primary(phase: Phase) -> None:
    assert answers_reads(page(phase), "b", Observed(role=Role.REPLICA), age=0.1)


@pytest.mark.parametrize("phase", Phase)
def test_a_standby_that_follows_nobody_answers_only_during_a_change(phase: Phase) -> None:
    """It was frozen; at other times it may be that for ever."""
    answers = answers_reads(page(phase), "b", Observed(role=Role.DEMOTED), age=0.1)
    assert answers == (phase is not Phase.STEADY)


@pytest.mark.parametrize("phase", Phase)
def test_an_old_primary_answers_no_reads_before_it_follows(phase: Phase) -> None:
    """It may have what is lost."""
    assert not answers_reads(page(phase), "a", Observed(role=Role.DEMOTED), age=0.1)


@pytest.mark.parametrize(
    ("observed", "age"),
    [
        (Observed(role=Role.PRIMARY), 0.1),
        (Observed(role=Role.STOPPED), 0.1),
        (Observed(role=Role.UNKNOWN), 0.1),
        (Observed(role=Role.REPLICA, healthy=False), 0.1),
        (Observed(role=Role.REPLICA, rebuild="it wrote apart"), 0.1),
        (Observed(role=Role.REPLICA), 10.0),
    ],
)
def test_all_others_answer_no_reads(observed: Observed, age: float) -> None:
    assert not answers_reads(page(Phase.FREEZE), "b", observed, age=age)


def test_without_a_page_a_replica_answers() -> None:
    assert answers_reads(None, "b", Observed(role=Role.REPLICA), age=0.1)
    assert not answers_reads(None, "b", Observed(role=Role.DEMOTED), age=0.1)


# --- the pages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "holds"),
    [
        (PRIMARY, {"/": True, "/primary": True, "/replica": False, "/health": True}),
        (REPLICA, {"/": False, "/primary": False, "/replica": True, "/health": True}),
        (attrs.evolve(REPLICA, usable=False), {"/health": False}),
    ],
)
def test_each_page_asks_one_thing(standing: Standing, holds: dict[str, bool]) -> None:
    pages = pages_of(Agent(standing))
    assert {path: pages[path]()[0] for path in holds} == holds


def test_it_is_told_as_json_and_never_more_than_there_is() -> None:
    told: dict[str, Any] = json.loads(json.dumps(pages_of(Agent(PRIMARY))["/primary"]()[1]))
    assert told["remaining"] == 1.234
    assert (told["role"], told["name"], told["token"]) == ("primary", "a", "t")
