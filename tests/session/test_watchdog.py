"""What time can break, and who notices: dead links, lapsed leases, machines that slept."""

from __future__ import annotations

import gc
import weakref

import pytest
from session.troupe import PATH, T, Troupe, client_of

import zkelect
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.fake_client import State
from zkelect.testing.fake_machine import Move


def test_h02_a_process_that_stood_still_knows_at_its_first_check(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """No thread of ours has run since: the clock alone says so."""
    (term,) = troupe.lead("A").terms
    fake.elapse(3 * T)
    with pytest.raises(zkelect.LeadershipLost, match="lapsed"):
        term.check()
    assert term.remaining() == 0.0


def test_h03_a_leader_without_servers_is_deposed_by_its_own_clock(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a = troupe.lead("A")
    for server in fake.servers:
        server.stop()
    fake.advance(1.5 * T)
    assert a.ends == ["lapsed"]


def test_h05_h06_a_link_is_dead_when_an_answer_is_owed_for_long_whatever_is_sent(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a = troupe.lead("A")
    fake.advance(T)
    fake.cut(a.session)
    cut, dialled = client_of(a.session).connection, fake.clock.now
    while client_of(a.session).connection is cut:
        a.session.gateway.children("/", lambda _: None)  # the application is busy
        fake.advance(0.05)
        assert fake.clock.now - dialled < T / 2, "the dead link is kept"


def test_h10_a_session_that_was_swapped_without_a_word_ends_the_term(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """ClickHouse #116690."""
    a = troupe.lead("A")
    (first,) = a.terms
    fake.swap(a.session)
    troupe.until(lambda: a.ends, "A has heard of it")
    assert a.ends == ["expired"]
    with pytest.raises(zkelect.LeadershipLost, match="expired"):
        first.check()
    troupe.until(lambda: len(a.terms) == 2, "A leads again")
    assert a.terms[1].token > first.token
    assert a.terms[1].session_id == a.session.session_id != first.session_id


@pytest.mark.parametrize("seconds", [60.0, 0.2])
def test_h17_a_machine_that_slept_leads_no_more(
    seconds: float, troupe: Troupe, fake: FakeEnsemble
) -> None:
    a = troupe.lead("A")
    (term,) = a.terms
    fake.sleep(a.session, seconds)
    with pytest.raises(zkelect.LeadershipLost, match="machine-suspended"):
        term.check()
    assert term.remaining() == 0.0
    fake.turn()
    assert a.phase is zkelect.Phase.LEAVING
    fake.settle()
    assert a.ends == ["machine-suspended"]


def test_h29_a_swallowed_event_is_made_good_by_the_slow_reread(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """pulsar #23125."""
    a, b = troupe.lead("A"), troupe.queue("B")
    fake.lose_event(b.session)
    a.election.stop(0.0)
    fake.advance(T)
    assert not b.terms
    fake.advance(5 * T)
    assert b.terms


def test_a_change_of_the_predecessor_is_not_its_end(troupe: Troupe, fake: FakeEnsemble) -> None:
    troupe.lead("A")
    b = troupe.queue("B")
    fake.put(f"{PATH}/{fake.children(PATH)[0]}", b"changed")
    fake.advance(T)
    assert b.phase is zkelect.Phase.WAITING
    fake.delete(f"{PATH}/{fake.children(PATH)[0]}")
    fake.settle()
    assert b.terms  # the watch was set anew


def test_a_candidate_that_comes_late_need_not_wait_for_an_old_connection(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """A new connection proves more with its first probe than an old one with many."""
    session = fake.connect(session_timeout=4.0)
    fake.advance(8.0)
    a = troupe.cast("A", session).start()
    began = fake.clock.now
    while not a.terms:
        fake.advance(0.02)
    assert fake.clock.now - began < 0.2


def test_h45_under_a_body_that_hangs_the_znode_stays_until_the_lease_it_counts_on_is_over(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """On a face that waits for the body; nobody waits for it here, it never returns."""
    a = troupe.cast("A", stall_timeout=0.5)
    granted = a.election._candidacy
    granted.begin()
    troupe.until(lambda: granted.leadership, "A is granted")
    leadership = granted.leadership
    assert leadership is not None
    granted.prepared(leadership)
    (node,) = fake.children(PATH)
    deadline = leadership.deadline
    while leadership.reason is None:
        deadline = leadership.deadline
        fake.advance(0.01)
    assert leadership.reason == "stalled"
    while fake.children(PATH) == [node]:
        fake.advance(0.01)
        assert fake.clock.now < deadline + T
    assert fake.clock.now >= deadline


def test_h01_the_candidates_of_an_expired_session_are_gone(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    (old,) = a.terms
    expire(a.session)
    assert old.node not in fake.children(PATH)
    troupe.until(lambda: b.terms and a.ends, "B leads, and A has heard of it")
    assert a.ends == ["expired"]


def test_h20_a_lost_reply_to_a_create_makes_no_second_candidate(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """Whoever simply tries again makes two (CURATOR-45)."""
    troupe.lead("Z").election.stop(0.0)
    fake.advance(T)
    a = troupe.cast("A")
    fake.lose_reply(a.session, "create2")
    a.start()
    troupe.until(lambda: a.terms, "A leads")
    assert troupe.asked[a.session].count("create2") == 1
    assert fake.children(PATH) == [a.terms[0].node]


def test_h32_two_of_the_same_name_are_two(troupe: Troupe, fake: FakeEnsemble) -> None:
    a, b = (troupe.cast("twin").start() for _ in range(2))
    troupe.until(lambda: a.terms, "one leads")
    fake.advance(12 * T)
    assert len(fake.children(PATH)) == 2
    assert (len(a.terms), a.ends, b.terms) == (1, [], [])


def test_h32_one_session_stands_once(troupe: Troupe, fake: FakeEnsemble) -> None:
    """Two would share its lease, and one death would take both."""
    session = troupe.connect()
    a, b = (troupe.cast(name, session) for name in "AB")
    a.start()
    with pytest.raises(zkelect.CampaignInProgress, match="'A' of this session"):
        b.start()
    troupe.until(lambda: a.terms, "A leads")
    with pytest.raises(zkelect.CampaignInProgress, match="'A' of this session"):
        b.start()
    a.terms[0].end("stalled")  # it will stand again, and keeps its place
    with pytest.raises(zkelect.CampaignInProgress, match="'A' of this session"):
        b.start()
    fake.drop(session)
    a.election.stop(0.0)
    b.start()  # what is left of A goes when the link is back
    troupe.until(lambda: b.terms, "B leads")
    assert fake.children(PATH) == [b.terms[0].node]


def test_h37_a_campaign_has_one_deadline_however_often_the_queue_moves(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    from zkelect.session.patience import Patience

    troupe.lead("A")
    b = troupe.queue("B")
    patience = Patience(b.election._candidacy, 0.5)
    fake.advance(0.6)
    with b.session.lock, pytest.raises(zkelect.NotElected, match=r"0\.5"):
        patience.wait()


def test_h31_whoever_stands_behind_its_own_name_says_so(
    troupe: Troupe, fake: FakeEnsemble, caplog: pytest.LogCaptureFixture
) -> None:
    """patroni #774, storm #3107."""
    troupe.lead("host-a")
    troupe.queue("host-a")
    (said,) = (record for record in caplog.records if "same name" in record.getMessage())
    assert said.levelname == "WARNING"
    assert fake.children(PATH)[0] in said.getMessage()


def test_nothing_is_asked_while_the_link_is_down(troupe: Troupe, fake: FakeEnsemble) -> None:
    """patroni #1981: what is queued is done when nobody wants it any more."""
    a = troupe.lead("A")
    for server in fake.servers:
        server.stop()
    fake.drop(a.session)
    fake.settle()
    assert client_of(a.session).state is State.CONNECTING
    before = len(troupe.asked[a.session])
    a.election.stop(0.0)
    fake.advance(T / 4)
    assert len(troupe.asked[a.session]) == before


def test_h18_a_link_that_flaps_costs_neither_leadership_nor_place(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    nodes = fake.children(PATH)
    for _ in range(20):
        for each in (a, b):
            fake.drop(each.session)
        fake.advance(T / 4)
    assert (a.ends, b.terms, fake.children(PATH)) == ([], [], nodes)
    fake.hold(b.session, Move.CALL)
    a.election.stop(0.0)
    fake.settle()
    fake.release(b.session)
    fake.settle()
    assert [term.node for term in b.terms] == nodes[1:]


def test_h43_what_has_left_is_forgotten(troupe: Troupe, fake: FakeEnsemble) -> None:
    """kazoo #542: a watch, a timer or a list that keeps one campaign keeps ten thousand."""
    troupe.lead("A")
    session = troupe.connect()
    forgotten: list[weakref.ref[object]] = []
    for _ in range(5):
        election = zkelect.Election(session, PATH, name="B")
        forgotten.append(weakref.ref(election))
        forgotten.append(weakref.ref(election._candidacy))
        election.start()
        fake.settle()
        assert election.phase is zkelect.Phase.WAITING
        election.stop(0.0)
        fake.settle()
        del election
    fake.advance(6 * T)
    gc.collect()
    assert [made() for made in forgotten] == [None] * 10
