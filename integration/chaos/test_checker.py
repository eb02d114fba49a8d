"""The checker itself: it must find what is broken, and must not find what is not shown."""

from __future__ import annotations

import attrs
import pytest

from chaos.checker import JUDGES, check
from chaos.forgery import FIRST, SECOND, event, judged
from chaos.history import Event, History
from chaos.judging import Verdict

# --- honest, and incomplete ----------------------------------------------------------------


def test_an_honest_history_is_valid_and_every_promise_was_judged() -> None:
    judgement = check(judged())
    assert [finding.violations for finding in judgement.findings] == [()] * len(JUDGES)
    assert all(finding.judged for finding in judgement.findings)
    assert judgement.verdict is Verdict.VALID


def test_nothing_at_all_is_unknown() -> None:
    judgement = check(History(()))
    assert {finding.verdict for finding in judgement.findings} == {Verdict.UNKNOWN}
    assert judgement.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("kind", ["begun", "finished", "logged", "replayed", "inflicted"])
def test_a_history_that_lacks_a_part_is_unknown(kind: str) -> None:
    judgement = check(judged(without=lambda event: event.kind == kind))
    assert not judgement.broken
    assert judgement.verdict is Verdict.UNKNOWN


def test_a_store_whose_log_is_missing_makes_it_unknown() -> None:
    def two(one: Event) -> Event:
        if one.kind != "begun":
            return one
        return attrs.evolve(one, fields={**one.fields, "stores": ["s", "t"]})

    assert "the log of t is missing" in check(judged(instead=two)).findings[4].gaps


@pytest.mark.parametrize(
    ("kind", "promise"), [("row", "I1"), ("granted", "I3"), ("healed", "I8"), ("woken", "I10")]
)
def test_a_promise_of_which_nothing_was_seen_is_unknown(kind: str, promise: str) -> None:
    judgement = check(judged(without=lambda event: event.kind == kind))
    unknown = {one.name for one in judgement.findings if one.verdict is Verdict.UNKNOWN}
    assert promise in unknown


def test_a_line_that_cannot_be_read_makes_it_unknown() -> None:
    history = attrs.evolve(judged(), defects=("c1.1.jsonl:7 cannot be read",))
    assert check(history).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("kind", ["crashed", "stuck"])
def test_a_candidate_that_crashed_or_hung_makes_it_unknown(kind: str) -> None:
    assert check(judged(event(3.0, "c1.1", kind, error="oh"))).verdict is Verdict.UNKNOWN


def test_the_wall_clock_was_set_so_transactions_cannot_be_placed() -> None:
    judgement = check(judged(event(5.0, "director", "beaten", wall=1006.0)))
    assert not judgement.broken
    assert judgement.findings[3].verdict is Verdict.UNKNOWN


# --- stores --------------------------------------------------------------------------------


def late_write(token: str = FIRST, after: str = "5") -> list[Event]:
    """A write of the first leader while the second one leads, accepted."""
    return [
        event(3.0, "c1.1", "asked", op="9", what="write", store="s", token=FIRST),
        event(3.1, "s", "row", op="9", after=after, token=token),
        event(3.2, "c1.1", "answered", op="9", outcome="done"),
    ]


def after_nine(one: Event) -> Event:
    """What follows the late write in the chain."""
    return event(one.at, "s", "row", **{**one.fields, "after": "9"}) if is_row(one, "6") else one


def is_row(one: Event, op: str) -> bool:
    return one.kind == "row" and one["op"] == op


def is_of(one: Event, kind: str, token: str) -> bool:
    return one.kind == kind and one.get("token") == token


def test_i1_i2_a_stale_write_is_accepted() -> None:
    judgement = check(judged(*late_write(), instead=after_nine))
    assert judgement.broken == {"I1", "I2"}


def test_i2_a_stale_write_is_accepted_behind_a_claim_that_has_written_nothing_yet() -> None:
    fifth = {"5", "6"}
    judgement = check(
        judged(
            *late_write(after="3"),
            without=lambda one: one.get("op") in fifth,
            instead=lambda one: one,
        )
    )
    assert "I2" in judgement.broken
    assert "I1" not in judgement.broken


def test_i5_an_acknowledged_write_is_not_there() -> None:
    judgement = check(judged(without=lambda one: is_row(one, "6")))
    assert "I5" in judgement.broken


def test_i5_a_write_is_there_twice() -> None:
    row = event(10.2, "s", "row", op="6", after="6", token=SECOND)
    assert check(judged(row)).broken == {"I5"}


@pytest.mark.parametrize("outcome", ["fenced", "lost", "busy", "refused"])
def test_i5_a_refused_write_is_there(outcome: str) -> None:
    def refuse(one: Event) -> Event:
        refused = one.kind == "answered" and one["op"] == "6"
        return event(one.at, one.by, "answered", op="6", outcome=outcome) if refused else one

    assert check(judged(instead=refuse)).broken == {"I5"}


@pytest.mark.parametrize("there", [True, False])
def test_i5_a_write_of_unknown_outcome_may_be_there_once(there: bool) -> None:
    def unanswered(one: Event) -> bool:
        return (one.kind == "answered" and one["op"] == "6") or (not there and is_row(one, "6"))

    assert "I5" not in check(judged(without=unanswered)).broken


def test_i5_a_write_that_nobody_asked_for() -> None:
    row = event(11.0, "s", "row", op="77", after="6", token=SECOND)
    assert check(judged(row)).broken == {"I5"}


def test_i5_a_write_under_another_token() -> None:
    def forge(one: Event) -> Event:
        return (
            event(one.at, "s", "row", op="3", after="2", token=SECOND) if is_row(one, "3") else one
        )

    assert "I5" in check(judged(instead=forge)).broken


def test_i7_the_chain_forks() -> None:
    def forget(one: Event) -> Event:
        return (
            event(one.at, "s", "row", op="5", after="2", token=SECOND) if is_row(one, "5") else one
        )

    assert check(judged(instead=forget)).broken == {"I7"}


# --- leases --------------------------------------------------------------------------------


def ended(reason: str | None, *, deadline: float = 3.0) -> History:
    """The first term, ended otherwise; None: its process was killed and told nothing."""

    def end(one: Event) -> Event:
        if is_of(one, "ended", FIRST):
            return event(2.05, "c1.1", "ended", token=FIRST, reason=reason, passed=2.0)
        if is_of(one, "leased", FIRST):
            return event(1.2, "c1.1", "leased", token=FIRST, deadline=deadline)
        return one

    def dropped(one: Event) -> bool:
        return is_of(one, "resigned", FIRST) or (reason is None and is_of(one, "ended", FIRST))

    return judged(without=dropped, instead=end)


def test_i3_a_check_passed_while_another_one_led() -> None:
    def late(one: Event) -> Event:
        if not is_of(one, "ended", FIRST):
            return one
        return event(2.3, "c1.1", "ended", token=FIRST, reason="fenced", passed=2.25)

    assert check(judged(instead=late)).broken == {"I3", "I4"}


@pytest.mark.parametrize("reason", ["lapsed", "expired", None])
def test_i3_i4_a_deadline_lay_beyond_the_successor(reason: str | None) -> None:
    assert check(ended(reason)).broken == {"I3", "I4"}


@pytest.mark.parametrize("reason", ["lapsed", "expired", None])
def test_a_deadline_before_the_deletion_breaks_nothing(reason: str | None) -> None:
    assert not check(ended(reason, deadline=2.09)).broken


def test_a_leader_that_was_killed_while_it_resigned_claims_no_longer() -> None:
    assert not check(judged(without=lambda one: is_of(one, "ended", FIRST))).broken


def test_i3_a_fork_leads_beside_its_parent() -> None:
    fork = event(1.65, "c1.1", "forked", token=FIRST, checked="done", tried={"s": "lost"})
    assert check(judged(fork)).broken == {"I3"}


def test_i4_the_znode_went_while_the_lease_was_valid() -> None:
    def sooner(one: Event) -> Event:
        gone = one.kind == "deleted" and one["node"] == "n1"
        return event(1.9, "zookeeper", "deleted", node="n1", session="0x1") if gone else one

    assert check(judged(instead=sooner)).broken == {"I4"}


def test_i4_a_grant_without_a_znode() -> None:
    def missing(one: Event) -> bool:
        return one.kind == "created" and one["node"] == "n2"

    assert "I4" in check(judged(without=missing)).broken


@pytest.mark.parametrize("act", ["delete", "close"])
def test_what_an_operator_ended_is_taken_out_of_i3_and_i4_alone(act: str) -> None:
    order = event(1.8, "c1.1", "ordered", act=act, token=FIRST)
    taken = ended("expired")
    history = attrs.evolve(taken, events=(*taken.events, order))
    assert not check(_sorted(history)).broken
    stale = attrs.evolve(history, events=(*history.events, *late_write()))
    assert {"I1", "I2", "I7"} <= check(_sorted(stale)).broken


def test_an_operator_who_comes_after_the_fact_excuses_nothing() -> None:
    order = event(2.5, "c1.1", "ordered", act="delete", token=FIRST)
    taken = ended("expired")
    assert check(_sorted(attrs.evolve(taken, events=(*taken.events, order)))).broken == {"I3", "I4"}


def _sorted(history: History) -> History:
    return History(tuple(sorted(history.events, key=lambda event: event.at)))


def test_i6_a_token_is_granted_twice() -> None:
    again = event(2.15, "c3.1", "granted", token=FIRST, node="n1", session="0x1")
    assert "I6" in check(judged(again)).broken


# --- queue ---------------------------------------------------------------------------------


def test_i8_nobody_leads_after_a_healing() -> None:
    def loses(one: Event) -> Event:
        over = is_of(one, "ended", SECOND)
        return (
            event(3.5, "c2.1", "ended", token=SECOND, reason="fenced", passed=3.5) if over else one
        )

    def dropped(one: Event) -> bool:
        return is_of(one, "leased", SECOND) and one.at > 4

    judgement = check(judged(without=dropped, instead=loses))
    assert "I8" in judgement.broken


def test_i8_a_leader_that_has_not_claimed_does_not_count() -> None:
    def unclaimed(one: Event) -> bool:
        return one.kind == "answered" and one["op"] == "4"

    assert "I8" in check(judged(without=unclaimed)).broken


def test_i8_nothing_is_accepted_in_a_peace() -> None:
    judgement = check(judged(without=lambda one: one.get("op") == "6"))
    assert judgement.broken == {"I8"}


def test_i8_the_next_fault_came_too_soon_to_tell() -> None:
    def too_soon(one: Event) -> bool:
        return one.kind == "answered" and one["op"] == "4"

    judgement = check(judged(event(7.9, "director", "inflicting", fault="hole"), without=too_soon))
    assert judgement.findings[7].judged == 0


@pytest.mark.parametrize(("owner", "name"), [("0x9", "c2.1"), ("0x2", "c1.1"), ("0x2", "somebody")])
def test_i9_a_znode_is_nobodys_in_a_peace(owner: str, name: str) -> None:
    call = event(15.3, "observer", "called", moment="peace", roll=[["n2", owner, name]])
    assert check(judged(call)).broken == {"I9"}


def test_i9_a_znode_of_a_killed_process_remains_in_a_peace() -> None:
    call = event(15.3, "observer", "called", moment="peace", roll=[["n1", "0x1", "c1.1"]])
    exited = event(3.0, "director", "exited", process="c1.1", status=-9)
    assert check(judged(call)).broken == set()
    assert check(judged(call, exited)).broken == {"I9"}


def test_i9_a_znode_remains_when_all_have_left() -> None:
    call = event(16.55, "observer", "called", moment="end", roll=[["n2", "0x2", "c2.1"]])
    assert check(judged(call)).broken == {"I9"}


def test_i9_a_znode_outlives_its_session() -> None:
    def kept(one: Event) -> bool:
        return one.kind == "deleted" and one["node"] == "n2"

    assert check(judged(without=kept)).broken == {"I9"}


def third(left: float) -> list[Event]:
    """Forge one who stands until then, and is woken by the first death."""
    return [
        event(0.7, "c3.1", "opened", session="0x3"),
        event(1.05, "zookeeper", "created", node="n3", session="0x3"),
        event(2.1, "director", "woken", candidate=3, path="/e/n1"),
        event(left, "zookeeper", "deleted", node="n3", session="0x3"),
        event(left, "zookeeper", "closed", session="0x3"),
    ]


def test_i10_two_are_woken_by_one_death() -> None:
    assert check(judged(*third(left=2.2))).broken == {"I10"}


def test_i10_who_has_left_hears_what_it_had_watched() -> None:
    assert check(judged(*third(left=2.05))).verdict is Verdict.VALID


def test_i10_two_watch_the_queue_itself() -> None:
    herd = [event(2.1, "director", "woken", candidate=n, path="/e") for n in (2, 3)]
    assert check(judged(*herd)).broken == {"I10"}


def test_every_promise_has_a_forged_history_that_breaks_it() -> None:
    """Named after it, here above: who adds a promise adds its forgery."""
    named = {name.split("_")[1].upper() for name in globals() if name.startswith("test_i")}
    assert {judge.name for judge in JUDGES} <= named
