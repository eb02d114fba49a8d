"""Cases that must come out right, by number, each made to happen by a proxy on one server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest
from election.actor import SESSION_TIMEOUT, TICK
from election.waiting import WITHIN, until

import zkelect
from zkelect.core.record import Record, encode_record, record_path
from zkelect.session.terms import history_path, term_path
from zkelect.testing import FaultProxy, expire

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Operator
    from election.actor import Actor, Campaign
    from election.diary import Sentry
    from kazoo.client import KazooClient

    from zkelect.testing import LocalEnsemble

LONG = 4.0


def found(operator: Operator, path: str) -> None:
    """Make an election as one leaves it behind in which somebody has led."""
    operator.kazoo.create(record_path(path), encode_record(Record(uuid=32 * "5")), makepath=True)
    operator.kazoo.create(term_path(path), b"{}")
    operator.kazoo.create(history_path(path), b"[]")
    operator.kazoo.create(path)


@pytest.fixture(autouse=True)
def election(operator: Operator, path: str) -> None:
    """So the first create of a candidate succeeds."""
    found(operator, path)


def created(proxy: FaultProxy, path: str) -> int:
    """Count the creates of candidates that reached the server."""
    return sum(
        frame.passed and frame.direction == "requests" and frame.name == "create2"
        for frame in proxy.log
        if any(each.startswith(f"{path}/") for each in frame.paths)
    )


def at(proxy: FaultProxy, direction: str, name: str, nth: int = 0) -> float:
    """Return when the n-th frame of a name came; -1 is the last."""
    return [f.at for f in proxy.log if (f.direction, f.name) == (direction, name)][nth]


@attrs.frozen
class Known:
    """A session whose credentials were noted while it was connected."""

    hosts: str
    held: tuple[int, bytes]

    def credentials(self) -> tuple[int, bytes]:
        return self.held


# --- H07: the server answers pings but swallows writes ---------------------------------------


def test_h07_a_lease_lapses_on_a_server_that_answers_all_but_writes(
    behind: Callable[..., tuple[Actor, FaultProxy]], cast: Callable[..., Actor], watch: type[Sentry]
) -> None:
    """A deposed ensemble leader: it welcomes whoever reconnects (measured: 6.5 s of false life)."""
    (a, proxy), b = behind("A"), cast("B")
    leadership = a.lead()
    b.queue()
    sentry = watch(leadership)
    proxy.isolate()
    elected = b.diary.wait("granted")
    sentry.relieve()
    deposed = a.diary.wait("deposed")
    assert deposed.reason == "lapsed"
    assert sentry.passed < elected.at
    assert deposed.at < elected.at
    assert elected.leadership.token > leadership.token
    welcomed = [
        f.at for f in proxy.log if (f.name, f.fault) == ("connect", "isolated") and f.passed
    ]
    assert welcomed, "it was never connected to the server that had lost the others"
    proxy.heal()
    a.diary.assert_paired()


def test_h07_an_adopted_client_that_stays_connected_has_no_lease_by_pings(
    proxy: FaultProxy,
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    campaign: Callable[..., Campaign],
    cast: Callable[..., Actor],
    watch: type[Sentry],
    path: str,
) -> None:
    """Its connection cannot be dropped, so kazoo says CONNECTED until the end and after."""
    client, session = adopted(proxy.hosts, tick_time=TICK)
    leadership = campaign(zkelect.Election(session, path, name="A")).leadership()
    b = cast("B").queue()
    told: list[str] = []
    client.add_listener(told.append)
    sentry = watch(leadership)
    proxy.isolate()
    elected = b.diary.wait("granted")
    sentry.relieve()
    assert leadership.reason == "lapsed"
    assert sentry.passed < elected.at
    assert client.connected
    assert not told
    assert proxy.replies["ping"] >= 1
    proxy.heal()


# --- H10: another session, and nobody says so ------------------------------------------------


def test_h10_a_leader_whose_session_was_swapped_is_deposed_at_once(
    behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    """ClickHouse #116690: no LOST, and the old znode lives on."""
    a, proxy = behind("A")
    first = a.lead()
    swap = proxy.swap_session()
    a.forwarder.drop()
    deposed = a.diary.wait("deposed")
    assert swap.fired
    assert (deposed.leadership, deposed.reason) == (first, "expired")
    assert first.node in operator.nodes(path)  # its session has not timed out
    again = a.diary.wait("elected", 2).leadership
    assert again.token > first.token
    assert again.node != first.node
    assert operator.nodes(path) == [again.node]
    answers = [f for f in proxy.log if (f.direction, f.name) == ("replies", "connect")]
    assert not any(frame.error for frame in answers)
    assert answers[1].at < deposed.at < at(proxy, "requests", "create2", -1)
    a.session.close()
    a.diary.wait("deposed", 2)
    a.diary.assert_paired()


# --- H19: the smallest timeout of the session's life -----------------------------------------


@pytest.mark.parametrize("small", ["first", "later"])
def test_h19_the_lease_counts_with_the_smallest_timeout_ever_granted(
    small: str,
    stand_between: Callable[[str], FaultProxy],
    zookeeper: LocalEnsemble,
    cast: Callable[..., Actor],
    path: str,
) -> None:
    """The server grants 4 s, the rewritten welcome 2 s: the smaller one rules from then on."""
    proxy = stand_between(zookeeper.hosts)
    if small == "first":
        proxy.rewrite_connect(timeout=2.0)
    a = cast("A", server=proxy.hosts, session_timeout=2.0 if small == "first" else LONG)
    leadership = a.lead()
    if small == "later":
        assert a.session.timeout == LONG
        proxy.rewrite_connect(timeout=2.0)
        reconnect(a)
    for granted in (LONG, 10.0):
        proxy.rewrite_connect(timeout=granted)
        reconnect(a)
        assert a.session.timeout == 2.0
        assert leadership.remaining() < 2.0
        assert leadership.check() == leadership.token
    assert not proxy.unfired


def reconnect(actor: Actor) -> None:
    """Drop the link, and wait for the first probe on the next one to be answered."""
    flaps = len(actor.diary.all("suspended"))
    actor.forwarder.drop()
    actor.diary.wait("suspended", flaps + 1)
    multis = actor.forwarder.replies["multi"]
    assert actor.forwarder.wait_for(
        lambda: actor.forwarder.replies["multi"] > multis + 1, timeout=WITHIN
    )


# --- H20, H21: the reply to create is lost ---------------------------------------------------


@pytest.mark.parametrize("then", ["cut", "hang", "torn"])
def test_h20_a_lost_reply_to_create_makes_no_second_znode(
    then: Any, behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    """CURATOR-45."""
    a, proxy = behind("A")
    if then == "torn":
        lost = proxy.tear_reply("create", path=f"{path}/*", size=20)
    else:
        lost = proxy.drop_reply("create", path=f"{path}/*", then=then)
    session_id = a.session.session_id
    leadership = a.lead()
    assert lost.fired
    assert a.session.session_id == session_id
    assert operator.nodes(path) == [leadership.node]
    assert created(proxy, path) == 1
    assert leadership.token.czxid == operator.kazoo.exists(f"{path}/{leadership.node}").czxid


def test_h20_a_lost_create_is_sent_again(
    behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    a, proxy = behind("A")
    proxy.drop_request("create", path=f"{path}/*")
    leadership = a.lead()
    assert operator.nodes(path) == [leadership.node]
    assert created(proxy, path) == 1


def test_h21_the_znode_of_a_session_that_expired_meanwhile_is_not_adopted(
    behind: Callable[..., tuple[Actor, FaultProxy]],
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    """CURATOR-498."""
    a, proxy = behind("A")
    known = Known(zookeeper.hosts, a.session.credentials())
    lost = proxy.drop_reply("create", path=f"{path}/*")
    a.forwarder.refuse()
    a.start()
    assert lost.wait(WITHIN)
    (old,) = operator.nodes(path)
    czxid = operator.kazoo.exists(f"{path}/{old}").czxid
    expire(known)
    a.forwarder.accept()
    leadership = a.diary.wait("elected").leadership
    assert leadership.node != old
    assert leadership.token.czxid > czxid
    assert operator.nodes(path) == [leadership.node]


def test_h21_the_znode_of_a_swapped_session_is_not_adopted_though_it_is_still_there(
    behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    """CURATOR-696: its owner is another session, and decides."""
    a, proxy = behind("A")
    lost, swap = proxy.drop_reply("create", path=f"{path}/*"), proxy.swap_session()
    a.start()
    assert lost.wait(WITHIN)
    assert swap.wait(WITHIN)
    (old,) = operator.nodes(path)[:1]
    owner = operator.kazoo.exists(f"{path}/{old}").ephemeralOwner
    leadership = a.diary.wait("elected").leadership
    assert owner not in (0, a.session.session_id)
    assert leadership.node != old
    assert operator.nodes(path) == [leadership.node]


# --- H24, H25: an answer that comes late, a campaign that is over ------------------------------


def test_h24_the_late_answer_of_an_earlier_campaign_leaves_nothing_behind(
    behind: Callable[..., tuple[Actor, FaultProxy]],
    patient: LocalEnsemble,
    path: str,
    operate: Callable[..., Operator],
) -> None:
    """CURATOR-504: its znode is deleted before the next campaign makes one."""
    operator = operate(patient.hosts)
    found(operator, path)
    a, proxy = behind("A", server=patient.hosts, session_timeout=20.0)
    late = proxy.delay_reply("create", path=f"{path}/*")
    with pytest.raises(zkelect.NotElected), a.election.campaign(timeout=0.1):
        pass
    assert late.wait(WITHIN)
    (unwanted,) = operator.nodes(path)
    a.start()
    assert a.election.phase is zkelect.Phase.LEAVING
    late.release()
    leadership = a.diary.wait("elected").leadership
    assert leadership.node != unwanted
    assert operator.nodes(path) == [leadership.node]
    assert proxy.requests["connect"] == 1
    deletes = [f for f in proxy.log if f.direction == "requests" and f.name in ("delete", "multi")]
    gone = next(f.at for f in deletes if f"{path}/{unwanted}" in f.paths)
    assert gone < at(proxy, "requests", "create2", -1)


@pytest.mark.parametrize("lost", ["reply", "request"])
def test_h25_a_campaign_that_ended_while_suspended_leaves_nothing(
    lost: str, behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    """kazoo #54, #732: the create was done or not, nobody knows, and nobody waits any more."""
    a, proxy = behind("A", session_timeout=LONG)
    drop = proxy.drop_reply if lost == "reply" else proxy.drop_request
    rule = drop("create", path=f"{path}/*")
    session_id = a.session.session_id
    a.forwarder.refuse()
    with pytest.raises(zkelect.NotElected), a.election.campaign(timeout=0.3):
        pass
    assert rule.fired
    assert len(operator.nodes(path)) == (lost == "reply")
    a.forwarder.accept()
    until(lambda: a.election.phase is zkelect.Phase.IDLE, "the campaign is over")
    assert operator.nodes(path) == []
    assert a.session.session_id == session_id  # cleaned, not swept with its session
    assert created(proxy, path) == (lost == "reply")


# --- H26: the delete at resign ---------------------------------------------------------------


@pytest.mark.parametrize("lost", ["reply", "request"])
@pytest.mark.parametrize("then", ["cut", "hang"])
def test_h26_a_resignation_that_is_lost_is_made_good(
    lost: str,
    then: Any,
    behind: Callable[..., tuple[Actor, FaultProxy]],
    operator: Operator,
    path: str,
) -> None:
    """CURATOR-678: the next campaign never queues behind an orphan of our own."""
    a, proxy = behind("A")
    drop = proxy.drop_reply if lost == "reply" else proxy.drop_request
    with a.election.campaign(timeout=WITHIN) as first:
        rule = drop("multi", path=f"{path}.zkelect/history", then=then)
    with a.election.campaign(timeout=WITHIN) as second:
        assert rule.fired
        assert second.node != first.node
        assert second.token > first.token
        assert operator.nodes(path) == [second.node]
        assert first.reason == "resigned"
    until(lambda: not operator.nodes(path), "nothing is left")


# --- H28: the session dies while waiting -----------------------------------------------------


def test_h28_a_waiter_whose_session_was_swapped_is_not_elected_with_its_old_znode(
    behind: Callable[..., tuple[Actor, FaultProxy]],
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
) -> None:
    """etcd #11456: first in the queue, but not ours any more."""
    a, (b, proxy) = cast("A"), behind("B", session_timeout=LONG)
    a.lead()
    b.queue()
    old = operator.nodes(path)[1]
    swap = proxy.swap_session()
    b.forwarder.refuse()
    b.forwarder.drop()
    a.election.stop()
    until(lambda: operator.nodes(path) == [old], "the leader is gone, and B's znode is first")
    b.forwarder.accept()
    leadership = b.diary.wait("elected").leadership
    assert swap.fired
    assert leadership.node != old
    assert operator.nodes(path) == [leadership.node]
    stat = operator.kazoo.exists(f"{path}/{leadership.node}")
    assert stat.ephemeralOwner == b.session.session_id


# --- H29: an event is swallowed --------------------------------------------------------------


def test_h29_a_swallowed_event_is_made_good_by_reading_again(
    behind: Callable[..., tuple[Actor, FaultProxy]],
    cast: Callable[..., Actor],
    measured: Callable[[str, float, float], None],
    path: str,
) -> None:
    """pulsar #23125."""
    a, (b, proxy) = cast("A"), behind("B")
    leader = a.lead()
    b.queue()
    swallowed = proxy.swallow_event("deleted", path=f"{path}/{leader.node}")
    a.election.stop()
    assert swallowed.wait(WITHIN)
    missed = next(f.at for f in proxy.log if f.fault)
    elected = b.diary.wait("granted")
    measured("event swallowed, elected after", elected.at - missed, 10 * 5 * SESSION_TIMEOUT)
    assert proxy.requests["connect"] == 1


# --- H33: the parent is deleted --------------------------------------------------------------


def test_h33_a_parent_deleted_while_five_join_is_made_anew(
    behind: Callable[..., tuple[Actor, FaultProxy]],
    patient: LocalEnsemble,
    path: str,
    operate: Callable[..., Operator],
) -> None:
    """kazoo #563, CURATOR-724: five creates are on their way when the parent goes."""
    operator = operate(patient.hosts)
    found(operator, path)
    cast = [behind(name, server=patient.hosts, session_timeout=20.0) for name in "ABCDE"]
    held = [proxy.delay_request("create2", path=f"{path}/*") for _, proxy in cast]
    for actor, _ in cast:
        actor.start()
    assert all(rule.wait(WITHIN) for rule in held)
    operator.kazoo.delete(path)
    for rule in held:
        rule.release()
    actors = [actor for actor, _ in cast]
    until(lambda: len(operator.nodes(path)) == 5, "all five stand")
    until(lambda: any(actor.diary.all("elected") for actor in actors), "one leads")
    until(
        lambda: sum(actor.election.phase is zkelect.Phase.WAITING for actor in actors) == 4,
        "four wait",
    )
    (leader,) = [actor for actor in actors if actor.diary.all("elected")]
    assert leader.diary.wait("elected").leadership.node == operator.nodes(path)[0]


# --- H34: the end of the numbers -------------------------------------------------------------


def test_h34_a_counter_that_sticks_is_told_and_nothing_is_left(
    behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    """kazoo #730: a sequential create that says NodeExists."""
    a, proxy = behind("A")
    proxy.fail("create", "NodeExists", path=f"{path}/*")
    with (
        pytest.raises(zkelect.SequenceExhausted, match=path),
        a.election.campaign(timeout=WITHIN),
    ):
        pass
    assert operator.nodes(path) == []
    assert a.election.phase is zkelect.Phase.IDLE


@pytest.mark.parametrize(
    "number", [2147483647, -2147483648, -147483648, -1], ids=["last", "first", "nine", "one"]
)
@pytest.mark.parametrize("whose", ["own", "peer"])
def test_h34_a_number_outside_the_range_ends_the_campaign_and_leaves_nothing(
    whose: str,
    number: int,
    behind: Callable[..., tuple[Actor, FaultProxy]],
    operator: Operator,
    path: str,
) -> None:
    """As a server's counter goes on past its end: 2147483647, then eleven characters, then ten."""
    a, proxy = behind("A")
    peers: list[str] = []
    if whose == "peer":
        peers.append(f"{32 * '0'}__lock__{number:010d}")
        operator.kazoo.create(f"{path}/{peers[0]}", b"peer", ephemeral=True)
    else:
        proxy.shift_numbers(path, number)
    with (
        pytest.raises(zkelect.SequenceExhausted, match=f"__lock__{number:010d}'"),
        a.election.campaign(timeout=WITHIN),
    ):
        pass
    until(lambda: operator.nodes(path) == peers, "nothing of ours is left")


def test_h34_whoever_leads_at_the_end_of_the_numbers_leads_on_alone(
    behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    cast = [behind(name) for name in "ABC"]
    for _, proxy in cast:
        proxy.shift_numbers(path, 2**31 - 2)
    (a, _), *others = cast
    leadership = a.lead()
    assert leadership.node.endswith("2147483646")
    for each, _ in others:
        with (
            pytest.raises(zkelect.SequenceExhausted),
            each.election.campaign(timeout=WITHIN),
        ):
            pass
    until(lambda: len(operator.nodes(path)) == 1, "nothing of the others is left")
    assert leadership.check() == leadership.token
    assert len(a.diary.all("elected")) == 1


# --- errors that servers give on a live connection -------------------------------------------


NOTHING = [-112, -118]
"""Session expired, session moved: whether it was done is not said."""

REFUSED = [-124, -125]
"""SASL required, quota exceeded: it was not done."""


@pytest.mark.parametrize("error", NOTHING)
@pytest.mark.parametrize("done", [False, True])
def test_an_error_that_tells_nothing_of_a_create_makes_one_znode(
    error: int,
    done: bool,
    behind: Callable[..., tuple[Actor, FaultProxy]],
    operator: Operator,
    path: str,
) -> None:
    a, proxy = behind("A")
    proxy.fail("create", error, path=f"{path}/*", done=done)
    with a.election.campaign(timeout=WITHIN) as leadership:
        assert operator.nodes(path) == [leadership.node]
    assert created(proxy, path) == 1


@pytest.mark.parametrize("error", NOTHING)
@pytest.mark.parametrize("name", ["getChildren", "getData", "multi"])
def test_an_error_that_tells_nothing_makes_nobody_wait_for_ever(
    name: str, error: int, behind: Callable[..., tuple[Actor, FaultProxy]], path: str
) -> None:
    """What would be asked again on the next connection: so there has to be one."""
    a, proxy = behind("A")
    failed = proxy.fail(name, error, path=f"{path}*")
    a.lead()
    assert failed.fired


@pytest.mark.parametrize("error", NOTHING)
@pytest.mark.parametrize("done", [False, True])
def test_an_error_that_tells_nothing_of_a_resignation_blocks_no_heir(
    error: int,
    done: bool,
    behind: Callable[..., tuple[Actor, FaultProxy]],
    cast: Callable[..., Actor],
    path: str,
) -> None:
    (a, proxy), b = behind("A"), cast("B")
    first = a.lead()
    b.queue()
    proxy.fail("multi", error, path=f"{path}.zkelect/history", done=done)
    a.election.stop()
    assert b.diary.wait("elected").leadership.token > first.token


@pytest.mark.parametrize("error", REFUSED)
def test_a_create_that_is_refused_is_told(
    error: int, behind: Callable[..., tuple[Actor, FaultProxy]], operator: Operator, path: str
) -> None:
    a, proxy = behind("A")
    proxy.fail("create", error, path=f"{path}/*")
    with pytest.raises(zkelect.RequestFailed, match=path), a.election.campaign(timeout=WITHIN):
        pass
    assert operator.nodes(path) == []
    with a.election.campaign(timeout=WITHIN) as leadership:
        assert operator.nodes(path) == [leadership.node]


@pytest.mark.parametrize("error", [*NOTHING, *REFUSED])
def test_an_error_in_place_of_a_probe_s_answer_costs_no_leadership(
    error: int, behind: Callable[..., tuple[Actor, FaultProxy]]
) -> None:
    a, proxy = behind("A")
    leadership = a.lead()
    failed = proxy.fail("multi", error, path="*.zkelect")
    assert failed.wait(WITHIN)
    count = proxy.replies["multi"]
    assert proxy.wait_for(lambda: proxy.replies["multi"] > count + 3, timeout=WITHIN)
    assert leadership.check() == leadership.token


# --- H39 on one server: it has no quorum, and says so ----------------------------------------


def test_h39_a_read_only_server_renews_no_lease(
    behind: Callable[..., tuple[Actor, FaultProxy]], watch: type[Sentry]
) -> None:
    a, proxy = behind("A")
    leadership = a.lead()
    sentry = watch(leadership)
    read_only = proxy.rewrite_connect(read_only=True, times=None)
    a.forwarder.drop()
    sentry.relieve()
    assert a.diary.wait("deposed").reason == "lapsed"
    assert read_only.fired
    read_only.cancel()
    again = a.diary.wait("elected", 2).leadership
    assert again.token > leadership.token
