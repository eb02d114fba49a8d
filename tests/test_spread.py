"""Rendezvous hashing: an even share for each worker, and few moves when one comes or goes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.spread import weigh
from zkelect.core.znodes import HIGHEST_PRIORITY, KAZOO, ranked

SHARDS: Final = [f"shard-{number:05}" for number in range(10_000)]
OURS: Final = "00000000000080008000000000000000"

names = st.text(st.characters(exclude_categories=["Cs"]))
elections = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)
crews = st.lists(names, min_size=1, max_size=8, unique=True)


def preferred(workers: Sequence[str], election: str) -> str:
    """Who leads when all stand, and nobody need move any more; the first one led before."""
    queue = KAZOO.read(
        KAZOO.prefix(ranked(OURS, weigh(worker, election))) + f"{place:010}"
        for place, worker in enumerate(workers)
    )
    leader = queue.entries[0]
    return workers[(queue.preferred_behind(leader) or leader).sequence]


@given(names, elections)
def test_a_weight_is_a_priority(worker: str, election: str) -> None:
    assert 0 <= weigh(worker, election) <= HIGHEST_PRIORITY


def test_weights_stay_as_they_are_over_releases_and_restarts() -> None:
    """Otherwise each roll-out would move nearly everything, twice."""
    assert weigh("worker-7", "shard-00001") == 2931
    assert weigh("worker-8", "shard-00001") == 4053
    assert weigh("ü", "a b") == 876


def test_where_one_name_ends_and_the_other_begins_counts() -> None:
    pairs = [("c", "ab"), ("bc", "a"), ("", "abc"), ("ab", "c")]
    assert len({weigh(worker, election) for worker, election in pairs}) == len(pairs)


@pytest.mark.parametrize("crew", [2, 3, 7, 40])
def test_each_of_n_workers_has_an_nth(crew: int) -> None:
    """As even as chance: within five standard deviations of a fair draw."""
    workers = [f"host-{number}" for number in range(crew)]
    share = Counter(preferred(workers, shard) for shard in SHARDS)
    fair = len(SHARDS) / crew
    assert len(share) == crew
    assert all(abs(share[worker] - fair) < 5 * math.sqrt(fair) for worker in workers)


@given(crews, st.data(), elections)
def test_when_a_worker_goes_only_its_own_move(
    workers: list[str], data: st.DataObject, election: str
) -> None:
    gone = data.draw(st.sampled_from(workers))
    left = [worker for worker in workers if worker != gone]
    before = preferred(workers, election)
    assert before == gone or preferred(left, election) == before


@given(crews, names, elections)
def test_when_a_worker_comes_others_move_only_to_it(
    workers: list[str], newcomer: str, election: str
) -> None:
    after = preferred([*workers, newcomer], election)
    assert after in (newcomer, preferred(workers, election))


def test_a_newcomer_takes_its_part_and_no_more() -> None:
    workers = [f"host-{number}" for number in range(4)]
    moved = [preferred([*workers, "new"], shard) == "new" for shard in SHARDS]
    fair = len(SHARDS) / 5
    assert abs(sum(moved) - fair) < 5 * math.sqrt(fair)


def test_equals_do_not_move_each_other() -> None:
    """Whoever leads of the two stays: otherwise they would take turns for ever."""
    queue = KAZOO.read(KAZOO.prefix(ranked(OURS, 7)) + f"{place:010}" for place in range(2))
    assert queue.preferred_behind(queue.entries[0]) is None
