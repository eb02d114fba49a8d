"""What is said to a guarded Redis, with replies of the test's own: no server."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest
from redis.crc import key_slot
from redis.exceptions import NoScriptError, ResponseError
from stores.bearers import make_bearer

from zkelect.errors import (
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LeadershipLost,
    RequestFailed,
    StoreBusy,
)
from zkelect.stores.mark import Mark
from zkelect.stores.redis_exchange import Call, Exchange
from zkelect.stores.redis_script import COMMAND, LOOK, RAISE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stores.bearers import FakeBearer

    from zkelect.stores.redis_exchange import Talk

RUN, HISTORY = "a" * 40, "b" * 40
ORIGIN = f"{RUN}/{HISTORY}"
PRESENT = f"master_replid:{HISTORY}\r\n"
INFO = (
    f"redis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:{RUN}\r\n",
    f"role:master\r\nmaster_replid:{HISTORY}\r\nmaster_replid2:{'0' * 40}\r\n",
)
PASSED = [1, b"OK"]


@pytest.fixture
def exchange() -> Exchange:
    return Exchange(store="redis", domain="d")


def marked(czxid: int, *, origin: str = ORIGIN) -> list[Any]:
    """Make the reply to a look at a server with this leader's mark."""
    return [str(Mark(token=make_bearer(czxid).token, origin=origin)), *INFO]


def refused(czxid: int, *, origin: str = ORIGIN) -> list[Any]:
    """Make the reply of a script that found this leader's mark, and wrote nothing."""
    return [0, *marked(czxid, origin=origin)]


def hold(talk: Talk[Any], replies: Iterable[Any]) -> tuple[Any, list[Call]]:
    """Answer each call with the next reply; return the result, and the calls."""
    waiting, calls = iter(replies), []
    try:
        calls.append(next(talk))
        while True:
            reply = next(waiting)
            failed = isinstance(reply, ResponseError)
            calls.append(talk.throw(reply) if failed else talk.send(reply))
    except StopIteration as end:
        return end.value, calls


def claimed(exchange: Exchange, czxid: int) -> FakeBearer:
    leader = make_bearer(czxid)
    hold(exchange.claim(leader, initialize=True), [[None, *INFO], [1]])
    return leader


def scripts(calls: list[Call]) -> list[Any]:
    return [call.words[1] for call in calls]


# --- one rule: the script compares, Python judges --------------------------------------------


def test_a_claim_looks_judges_and_replaces_what_it_judged(exchange: Exchange) -> None:
    leader = make_bearer(6)
    _, calls = hold(exchange.claim(leader), [marked(5), [1]])
    assert scripts(calls) == [LOOK.sha, RAISE.sha]
    assert calls[1].words[3:6] == ("zkelect:{d}", marked(5)[0], PRESENT)
    assert Mark.parse(str(calls[1].words[6])) == Mark(
        token=leader.token, election=leader.path, holder=leader.name, origin=ORIGIN
    )


def test_a_write_shows_the_mark_that_was_judged(exchange: Exchange) -> None:
    leader = claimed(exchange, 5)
    done, calls = hold(exchange.set(leader, "k", "v", expire=None), [PASSED])
    assert done == b"OK"
    (call,) = calls
    assert call.words[:5] == ("EVALSHA", COMMAND.sha, 2, "zkelect:{d}", "k")
    assert Mark.parse(str(call.words[5])).token == leader.token
    assert call.words[6:] == (PRESENT, "SET", "v")


def test_a_write_that_has_not_claimed_here_looks_first(exchange: Exchange) -> None:
    _, calls = hold(exchange.command(make_bearer(5), "k", "INCRBY", 1), [marked(5), PASSED])
    assert scripts(calls) == [LOOK.sha, COMMAND.sha]


def test_what_the_script_refuses_the_rule_tells(exchange: Exchange) -> None:
    leader = claimed(exchange, 5)
    with pytest.raises(Fenced):
        hold(exchange.command(leader, "k", "INCRBY", 1), [refused(6)])
    assert leader.ends == ["fenced"]


def test_a_refusal_that_the_rule_does_not_share_is_no_pass(exchange: Exchange) -> None:
    leader = make_bearer(5)
    with pytest.raises(RequestFailed, match="a bug"):
        hold(exchange.command(leader, "k", "INCRBY", 1), [marked(5), refused(5)])


def test_a_mark_that_was_written_anew_is_compared_anew(exchange: Exchange) -> None:
    """The same token in other words, as an operator may have put it back."""
    leader = claimed(exchange, 5)
    _, calls = hold(exchange.command(leader, "k", "INCRBY", 1), [refused(5), PASSED])
    assert [call.words[5] for call in calls][1] == refused(5)[1]


def test_a_claim_that_was_overtaken_is_judged_again(exchange: Exchange) -> None:
    leader = make_bearer(6)
    with pytest.raises(Fenced):
        hold(exchange.claim(leader), [marked(5), refused(7), marked(7)])


def test_a_mark_that_never_stays_is_given_up(exchange: Exchange) -> None:
    turns = (reply for _ in repeat(None) for reply in (marked(5), refused(5)))
    with pytest.raises(StoreBusy, match="8 times"):
        hold(exchange.claim(make_bearer(6)), turns)


def test_a_refusal_out_of_what_was_seen_before_is_never_told(exchange: Exchange) -> None:
    """The leader was told that its mark is lost; since then the store may have been mended."""
    leader = make_bearer(5)
    with pytest.raises(FenceStateLost):
        hold(exchange.command(leader, "k", "INCRBY", 1), [marked(5, origin="elsewhere")])
    _, calls = hold(exchange.command(leader, "k", "INCRBY", 1), [marked(5), PASSED])
    assert scripts(calls) == [LOOK.sha, COMMAND.sha]


def test_h56_without_a_mark_nobody_begins_anew_unasked(exchange: Exchange) -> None:
    """As after FLUSHALL, or a restart that kept nothing."""
    leader = make_bearer(5)
    writes = (exchange.command(who, "k", "INCRBY", 1) for who in (leader, leader.token))
    for talk in (exchange.claim(leader), *writes):
        with pytest.raises(FenceStateLost, match="no mark"):
            hold(talk, [[None, *INFO]])
    _, calls = hold(exchange.claim(leader, initialize=True), [[None, *INFO], [1]])
    assert (scripts(calls), leader.ends) == ([LOOK.sha, RAISE.sha], [])


def test_a_floor_above_the_token_lets_nothing_be_sent(exchange: Exchange) -> None:
    """A restored mark, the token's own: only this process remembers a higher one."""
    claimed(exchange, 6)
    with pytest.raises(FenceStateLost):
        hold(exchange.command(make_bearer(5), "k", "INCRBY", 1), [marked(5)])


def test_a_bare_token_claims_by_its_first_write(exchange: Exchange) -> None:
    token = make_bearer(6).token
    _, calls = hold(exchange.command(token, "k", "INCRBY", 1), [marked(5), [1], PASSED])
    assert scripts(calls) == [LOOK.sha, RAISE.sha, COMMAND.sha]
    _, calls = hold(exchange.command(token, "k", "INCRBY", 1), [PASSED])
    assert scripts(calls) == [COMMAND.sha]


# --- scripts that the server does not have ---------------------------------------------------


def test_a_script_that_the_server_does_not_have_is_sent_whole(exchange: Exchange) -> None:
    mark, calls = hold(exchange.status(), [NoScriptError(), marked(5)])
    assert mark.token == make_bearer(5).token
    assert [call.words[:2] for call in calls] == [("EVALSHA", LOOK.sha), ("EVAL", LOOK.text)]


# --- the lease -------------------------------------------------------------------------------


def test_an_expired_lease_asks_nothing(exchange: Exchange) -> None:
    leader = claimed(exchange, 5)
    leader.lease = 0.0
    for talk in (exchange.claim(leader), exchange.command(leader, "k", "INCRBY", 1)):
        with pytest.raises(LeadershipLost):
            next(talk)


def test_a_lease_that_expires_before_the_call_is_sent_sends_nothing() -> None:
    leader = make_bearer(5)
    call = Call(("EVALSHA",), "write", leader)
    assert call.patience(5.0) == 5.0
    leader.lease = 2.0
    assert call.patience(5.0) == 2.0
    leader.lease = 0.0
    with pytest.raises(LeadershipLost):
        call.patience(5.0)


# --- slots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["d", "}", "{", "{}", "a}b", "a{b}c", "100%", "größe", "%7D"])
def test_every_domain_is_one_slot(domain: str) -> None:
    exchange = Exchange(store="redis", domain=domain)
    call = next(exchange.status())
    slots = {key_slot(key.encode()) for key in (str(call.words[3]), *map(exchange.key, "a}{b"))}
    assert len(slots) == 1


def test_two_domains_are_two_keys() -> None:
    domains = ["}", "%7D", "{", "%7B", "%", "%25", "%257D"]
    keys = {next(Exchange(store="redis", domain=domain).status()).words[3] for domain in domains}
    assert len(keys) == len(domains)


def test_in_a_cluster_a_key_in_another_slot_is_refused_before_it_is_sent() -> None:
    exchange = Exchange(store="redis", domain="d")
    text, server, replication = marked(5)
    reply = [text, server.replace("standalone", "cluster"), replication]
    with pytest.raises(InvalidArgument, match=r"\{d\}"):
        hold(exchange.command(make_bearer(5), "k", "INCRBY", 1), [reply])
