"""The gateway and the book of terms: what is written beside an election, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from session.troupe import PATH, T, Troupe

from zkelect.core.history import decode_history
from zkelect.core.record import Term, decode_term
from zkelect.session.clock import SystemClock
from zkelect.session.gateway import Fault, Gateway
from zkelect.session.terms import TermBook, history_path, term_path
from zkelect.testing import FakeEnsemble
from zkelect.testing.fake_machine import Move
from zkelect.token import Token


def term_of(node: str, czxid: int) -> Term:
    token = Token(lineage="0" * 16, generation=1, czxid=czxid, holder="1" * 16)
    return Term(token=token, node=node, name="A")


def written(fake: FakeEnsemble) -> Term | None:
    znode = fake.znode(term_path(PATH))
    assert znode is not None
    return decode_term(znode.data)


def test_answers_are_given_in_the_order_of_the_requests(troupe: Troupe, fake: FakeEnsemble) -> None:
    """A create is handed over in two steps, so that what is asked after it would overtake."""
    session = troupe.connect()
    fake.create("/order")
    heard: list[str] = []
    with session.lock:
        session.gateway.create("/order/x", b"", lambda _: heard.append("create"))
        session.gateway.children("/order", lambda names: heard.append(f"{len(names)} child"))
    fake.settle()
    assert heard == ["create", "1 child"]


def test_a_leader_whose_candidate_is_gone_writes_no_term(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    """Who was evicted and does not know it yet would write over its successor's term."""
    a = troupe.lead("A")
    term = written(fake)
    assert term is not None and term.token == a.terms[0].token
    book = TermBook(a.session.gateway, PATH)
    book.announce(term_of("gone__lock__0000000000", 1))
    fake.settle()
    assert written(fake) == term


def test_two_who_write_at_once_lose_nothing(troupe: Troupe, fake: FakeEnsemble) -> None:
    """Each write is for the versions that were read: who was slower reads again."""
    a, b = troupe.lead("A"), troupe.queue("B")
    ours, theirs = fake.children(PATH)
    for each, node, czxid in ((a, ours, 101), (b, theirs, 102)):
        fake.hold(each.session, Move.ANSWER)
        TermBook(each.session.gateway, PATH).announce(term_of(node, czxid))
    fake.settle()  # both have read, and neither has written
    for each in (a, b):
        fake.release(each.session)
        fake.settle()
    last = written(fake)
    assert last is not None and last.token.czxid == 102
    assert last.count == 3
    znode = fake.znode(history_path(PATH))
    assert znode is not None
    assert [term.reason for term in decode_history(znode.data)] == ["died", "died"]


def test_every_item_of_a_multi_is_looked_at(troupe: Troupe, fake: FakeEnsemble) -> None:
    """H60: kazoo returns errors as list items."""
    a = troupe.lead("A")
    fake.hold(a.session, Move.EVENT, Move.CALL)
    proven = a.terms[0].deadline
    fake.delete(f"{PATH}/{a.terms[0].node}")
    fake.advance(T)
    assert a.terms[0].deadline <= max(proven, fake.clock.now)
    assert a.terms[0].reason == "evicted"  # told by the probe: its event is still under way


@pytest.mark.parametrize("name", ["delete", "multi"])
def test_h26_a_lost_deletion_is_asked_for_again(
    name: str, troupe: Troupe, fake: FakeEnsemble
) -> None:
    """CURATOR-678: otherwise one queues behind one's own orphan."""
    a = troupe.lead("A")
    lost: Any = fake.lose_request
    waiter = troupe.queue("B")
    who = a if name == "multi" else waiter
    fake.hold(who.session, Move.CALL)
    with who.session.lock:
        fake.advance(0.5)
        fake.settle()
    lost(who.session, name)
    fake.release(who.session)
    who.election.stop(0.0)
    fake.advance(T)
    other = waiter if who is a else a
    assert len(fake.children(PATH)) == 1
    assert other.election.phase.value == "leading"


class Refusal:
    """What kazoo hands over when a request has failed."""

    value = None

    def __init__(self, exception: Exception) -> None:
        self.exception = exception

    def rawlink(self, call: Callable[[Refusal], None]) -> None:
        call(self)


def test_a_reply_to_another_request_leaves_the_outcome_unknown() -> None:
    """kazoo raises RuntimeError and ends the link: no reason to give up the campaign.

    Found by the chaos run: a candidate whose create met it was told RequestFailed, and left.
    """
    told: list[Any] = []
    refused = Refusal(RuntimeError("xids do not match, expected 23 received 24"))
    client: Any = SimpleNamespace(get_children_async=lambda _: refused)
    Gateway(client, SystemClock(), (), lambda call, *given: call(*given)).children("/", told.append)
    assert told[0].fault is Fault.UNKNOWN
