"""The coordinator is killed at each phase boundary: the next one completes what was begun (H81).

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import LONG, until
from recipes.page_watch import PageWatch
from recipes.sampler import terms

from zkelect.recipes.page import Phase, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recipes.crew import Agent
    from recipes.stage import Stage

    from zkelect.recipes.page import Page

pytestmark = pytest.mark.timeout(600)

CHANGING = [Phase.DEMOTE, Phase.FREEZE, Phase.CATCH_UP, Phase.PROMOTE, Phase.OPEN]


class Assassin:
    """Kills the coordinator's agent as soon as it has written a page of this phase, once."""

    def __init__(self, here: Stage[Any], phase: Phase) -> None:
        self._here = here
        self._phase = phase
        self.killed = ""

    def __call__(self, page: Page) -> None:
        if page.phase is self._phase and not self.killed:
            self._here.crew.agents[page.coordinator].kill()
            self.killed = page.coordinator


@pytest.mark.parametrize("planned", [False, True], ids=["fail-over", "switchover"])
@pytest.mark.parametrize("phase", CHANGING)
def test_h81_the_coordinator_is_killed_at_each_phase(
    stage: Callable[..., Stage[Any]], phase: Phase, planned: bool
) -> None:
    """T4. Never two promotions with one token, and never two servers that take writes."""
    here = stage()
    first = here.primary
    assassin = Assassin(here, phase)
    with PageWatch(here.crew.board, assassin) as watch:
        before = here.crew.page
        assert before is not None
        begin(here, planned)
        until(lambda: assassin.killed, f"the coordinator is killed at {phase}")
        back = [here.crew.agents[name] for name in {assassin.killed, *([] if planned else [first])}]
        for agent in back:
            agent.start()  # as its init system does
        until(lambda: settled(here, before), "a primary is open again", within=LONG)
        until(partial(joined, here, back), "all follow, or are refused", within=LONG)
        here.primaries.append(here.crew.wait_steady())
    here.writer.wait_for(20)
    apart = here.refused()
    assert apart <= may_be_apart(here, watch.pages), "it was never promoted apart"
    check_promotions(watch.pages)
    check_terms(here, watch.pages)
    assert not planned or here.lost_rows() == []
    here.check_all_equal(without=apart)


def joined(here: Stage[Any], back: Sequence[Agent]) -> bool:
    """Tell whether all are; who comes back may be fenced once more, by the next coordinator."""
    for agent in back:
        agent.keep_running()
    return here.is_joined()


def may_be_apart(here: Stage[Any], pages: Sequence[Page]) -> set[str | None]:
    """Return who may have what no other has.

    Who died before another server knew of its promotion; and of a kind that does not heal, the
    old primary, which has confirmed what no replica had.
    """
    winners = {page.winner for page in pages}
    return winners if here.cluster.kind.heals else {here.primaries[0], *winners}


def begin(here: Stage[Any], planned: bool) -> None:
    """Have the primary changed, and do not wait for it."""
    if not planned:
        here.crew.kill_host(here.primary)
        return
    here.crew.board.ask(Request(id="once", to="beta", by="the test"))


def settled(here: Stage[Any], before: Page) -> bool:
    page = here.crew.page
    return page is not None and page.phase is Phase.STEADY and page.reign != before.reign


def check_promotions(pages: Sequence[Page]) -> None:
    """Each promotion has a token of its own, in the page that orders it and in the fence."""
    ordered = defaultdict(set)
    for page in pages:
        if page.phase is Phase.PROMOTE:
            ordered[page.promoted_by].add((page.serial, page.winner))
    assert ordered
    assert all(len(orders) == 1 for orders in ordered.values()), ordered
    opened = {(page.primary_token, page.primary) for page in pages if page.phase is Phase.OPEN}
    assert len(opened) == len({token for token, _ in opened}), opened


def check_terms(here: Stage[Any], pages: Sequence[Page]) -> None:
    """Who took writes, did so in the order in which the pages opened servers, one at a time."""
    opened = [page.primary for page in pages if page.phase in (Phase.OPEN, Phase.STEADY)]
    said = [(each.at, each.server) for each in here.sampler.samples if each.writable]
    found = [name for name, _, _ in terms(said)]
    rest = iter(opened)
    assert all(name in rest for name in found), (found, opened)
