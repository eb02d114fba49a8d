"""A queue in order: who waits for whom, who may lead beside the leader, and who is an orphan."""

from __future__ import annotations

import attrs
import pytest
from cli.queues import RECORD, curator, election, handover, kazoo, ours, standings, term

from zkelect.cli.looking.lineup import Role, line_up, oddities
from zkelect.core.handover import HandoverState
from zkelect.core.znodes import LAST_SEQUENCE
from zkelect.session.overview import Overview, Standing


def roles(overview: Overview) -> list[str]:
    return [str(place.role) for place in line_up(overview)]


def predecessors(overview: Overview) -> list[int | None]:
    """Return the number of whom each waits for."""
    return [None if place.behind is None else place.behind.sequence for place in line_up(overview)]


def orphans(overview: Overview, known: dict[str, Standing]) -> dict[int, str]:
    return {entry.sequence: why for entry, why in oddities(line_up(overview), known).items()}


# --- who does what -------------------------------------------------------------------------------


def test_each_waits_for_the_one_ahead() -> None:
    overview = election(ours(2), ours(0), ours(1))
    assert roles(overview) == ["leads", "heir", "waits"]
    assert predecessors(overview) == [None, 0, 1]


def test_the_first_leads_once_its_term_is_written() -> None:
    assert roles(election(ours(0), ours(1), serving=False)) == ["first", "heir"]


def test_the_term_of_one_who_has_left_is_nobodys() -> None:
    overview = election(ours(1), term=None)
    assert overview.leader is None
    assert roles(overview) == ["first"]


def test_a_candidate_of_another_library_leads_by_being_first() -> None:
    assert roles(election(kazoo(0), ours(1), serving=False)) == ["leads", "heir"]


def test_a_peer_of_another_dialect_sees_nobody_ahead_and_may_lead_too() -> None:
    overview = election(ours(0), curator(1), ours(2), curator(3), kazoo(4))
    assert roles(overview) == ["leads", "may lead", "waits", "waits", "waits"]
    assert predecessors(overview) == [None, None, 1, 1, 2]


def test_a_switchover_counts_while_the_leader_it_was_asked_of_leads() -> None:
    overview = election(ours(0), ours(1))
    leader = overview.term
    assert leader is not None
    asked = handover(ours(1), leader)
    assert attrs.evolve(overview, handover=asked).pending == asked
    over = attrs.evolve(asked, state=HandoverState.WITHDRAWN)
    assert attrs.evolve(overview, handover=over).pending is None
    other = attrs.evolve(asked, token=attrs.evolve(leader.token, czxid=1))
    assert attrs.evolve(overview, handover=other).pending is None


@pytest.mark.parametrize("number", [-1, LAST_SEQUENCE + 1])
def test_numbers_that_cannot_be_ordered_end_the_election(number: int) -> None:
    assert election(f"{'0' * 12}80008{'0' * 15}__lock__{number:010d}").exhausted
    assert not election(ours(0), ours(LAST_SEQUENCE)).exhausted
    assert election(ours(0), counter=LAST_SEQUENCE + 1).exhausted


# --- orphans -------------------------------------------------------------------------------------


def test_nobody_of_a_sound_queue_is_an_orphan() -> None:
    overview = election(ours(0), ours(1), kazoo(2), kazoo(3))
    assert orphans(overview, standings(overview)) == {}


def test_of_two_znodes_of_one_campaign_the_second_is_left_over_whoever_was_read() -> None:
    overview = election(ours(0), ours(1, uuid=7), ours(2, uuid=7), kazoo(3), kazoo(4))
    assert orphans(overview, {}) == {2: "its campaign stands ahead of it"}


def test_a_session_of_ours_stands_once() -> None:
    overview = election(ours(0), ours(1), ours(2))
    known = standings(overview)
    known[ours(2)] = attrs.evolve(known[ours(2)], session_id=known[ours(0)].session_id)
    assert orphans(overview, known) == {2: "its session stands ahead of it"}


def test_a_znode_that_is_not_ephemeral_goes_by_nothing() -> None:
    overview = election(ours(0), kazoo(1))
    known = standings(overview)
    known[kazoo(1)] = attrs.evolve(known[kazoo(1)], session_id=0)
    assert orphans(overview, known) == {1: "not ephemeral"}


def test_of_what_may_not_be_read_nothing_is_said() -> None:
    overview = election(ours(0))
    assert orphans(overview, {ours(0): Standing(name=None)}) == {}


# --- what a znode tells --------------------------------------------------------------------------


def test_a_session_id_is_written_as_zookeepers_tools_do_and_never_shown_by_chance() -> None:
    assert Standing(name="a", session_id=-1).session == "0xffffffffffffffff"
    assert Standing(name="a", session_id=0x1000).session == "0x1000"
    assert Standing(name="a").session is None
    assert "4096" not in repr(Standing(name="a", session_id=0x1000))


def test_a_name_beyond_our_limit_is_told_to_be_longer() -> None:
    assert Standing(name="x", size=8193).shortened
    assert not Standing(name="x", size=8192).shortened


def test_the_first_of_the_queue_is_the_leader_of_its_term() -> None:
    overview = election(ours(0), term=term(ours(0)), record=RECORD)
    assert overview.leader == overview.first
    assert election().first is None
    assert [place.role for place in line_up(election(ours(0)))] == [Role.LEADS]
