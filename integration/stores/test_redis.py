"""The guarded Redis: what it writes, what it waits for, and what stops a stale leader."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from election.waiting import until
from redis.exceptions import ResponseError
from stores.redis_bench import AsyncRedisBench, RedisBench

from zkelect.errors import Fenced, InvalidArgument, RequestFailed, Unclaimed
from zkelect.stores import async_redis as asyncio_module
from zkelect.stores import redis as blocking_module
from zkelect.stores.async_redis import AsyncRedisFence
from zkelect.stores.redis import RedisFence
from zkelect.stores.redis_script import RAISE, Script, guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers.redis import RedisServer
    from stores.bearers import FakeBearer

    from zkelect.token import Token

    MakeBearer = Callable[..., FakeBearer]


@pytest.fixture(params=[RedisBench, AsyncRedisBench], ids=["sync", "asyncio"])
def bench(request: pytest.FixtureRequest, redis: RedisServer) -> Iterator[RedisBench]:
    with request.param(redis) as made:
        yield made


@pytest.fixture
def leader(bearer: MakeBearer) -> FakeBearer:
    return bearer(5)


@pytest.fixture
def fence(bench: RedisBench, leader: FakeBearer) -> Any:
    """A fence of either kind, called as the blocking one; the leader has claimed its domain."""
    begun = bench.fence()
    begun.claim(leader)
    return begun.fence


# --- what it writes --------------------------------------------------------------------------


def test_each_command_does_what_redis_does(
    fence: Any, leader: FakeBearer, redis: RedisServer
) -> None:
    fence.set(leader, "text", "größe")
    fence.set(leader, b"bytes", b"\xff")
    assert redis.ask("GET", "text") == "größe"
    assert (fence.incr(leader, "number"), fence.incr(leader, "number", -3)) == (1, -2)
    assert (fence.hset(leader, "h", {"a": 1, "b": 2.5}), fence.hset(leader, "h", {"a": 3})) == (
        2,
        0,
    )
    assert redis.ask("HGETALL", "h") == {"a": "3", "b": "2.5"}
    assert fence.delete(leader, "text", "bytes", "missing") == 2
    assert sorted(redis.ask("KEYS", "*")) == ["h", "number", "zkelect:{d}"]


def test_a_key_may_expire(fence: Any, leader: FakeBearer, redis: RedisServer) -> None:
    fence.set(leader, "k", "v", expire=100.5)
    assert 90_000 < redis.ask("PTTL", "k") <= 100_500
    fence.set(leader, "k", "v")
    assert redis.ask("PTTL", "k") == -1


def test_a_script_has_keys_and_arguments_of_its_own(fence: Any, leader: FakeBearer) -> None:
    lua = "return {#KEYS, #ARGV, KEYS[1], ARGV[2], 'x'} -- the end"
    assert fence.script(leader, lua, ["k"], ["a", 7]) == [1, 2, b"k", b"7", b"x"]
    assert fence.script(leader, "return nil") is None
    assert fence.script(leader, "local nothing = 1") is None


def test_an_error_of_the_command_is_the_users(fence: Any, leader: FakeBearer) -> None:
    fence.set(leader, "k", "text")
    with pytest.raises(ResponseError, match="not an integer"):
        fence.incr(leader, "k")
    with pytest.raises(ResponseError, match="not an integer"):
        fence.script(leader, "return redis.pcall('INCR', KEYS[1])", ["k"])
    fence.set(leader, "k", 1)
    assert (fence.incr(leader, "k"), leader.ends) == (2, [])


@pytest.mark.parametrize("value", [None, True, [1], {"a": 1}])
def test_what_redis_cannot_take_is_refused(fence: Any, leader: FakeBearer, value: Any) -> None:
    with pytest.raises(InvalidArgument, match="value"):
        fence.set(leader, "k", value)


@pytest.mark.parametrize("expire", [0, -1, 0.0001, float("nan"), float("inf"), "1"])
def test_a_bad_expiry_is_refused(fence: Any, leader: FakeBearer, expire: Any) -> None:
    with pytest.raises(InvalidArgument, match="expire"):
        fence.set(leader, "k", "v", expire=expire)


def test_more_than_lua_can_unpack_is_refused(fence: Any, leader: FakeBearer) -> None:
    many = {f"field {number}": number for number in range(1999)}
    assert fence.hset(leader, "h", many) == 1999
    with pytest.raises(InvalidArgument, match="4000"):
        fence.hset(leader, "h", {**many, "a": 1, "b": 2})


def test_a_write_is_one_request_and_a_claim_two(
    fence: Any, leader: FakeBearer, bearer: MakeBearer, redis: RedisServer
) -> None:
    next_leader = bearer(6)
    fence.set(leader, "k", "v")
    assert requests(redis, lambda: fence.set(leader, "k", "v")) == {"evalsha": 1}
    fence.claim(bearer(6))
    assert requests(redis, lambda: fence.claim(bearer(7))) == {"evalsha": 2}
    with pytest.raises(Unclaimed):
        fence.set(bearer(8), "k", "v")
    assert next_leader.ends == []


def test_scripts_that_the_server_forgot_are_sent_again(
    fence: Any, leader: FakeBearer, bearer: MakeBearer, redis: RedisServer
) -> None:
    fence.incr(leader, "n")
    redis.ask("SCRIPT", "FLUSH")
    assert requests(redis, lambda: fence.incr(leader, "n")) == {"evalsha": 1, "eval": 1}
    assert requests(redis, lambda: fence.incr(leader, "n")) == {"evalsha": 1}
    redis.ask("SCRIPT", "FLUSH")
    fence.claim(bearer(6))
    assert redis.ask("GET", "n") == "3"


def requests(redis: RedisServer, work: Callable[[], object]) -> dict[str, int]:
    """Count what clients send meanwhile; what scripts call is told apart."""
    redis.ask("CONFIG", "RESETSTAT")
    work()
    with redis.client() as client:
        told = client.info("commandstats")
    sent = {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in told.items()}
    return {name: calls for name, calls in sent.items() if name.startswith("eval")}


@pytest.mark.parametrize(
    "options", [{"decode_responses": True}, {"protocol": 2}, {"protocol": 3}, {"db": 3}], ids=str
)
def test_the_users_client_lends_its_connections(
    redis: RedisServer, leader: FakeBearer, options: dict[str, Any]
) -> None:
    with redis.client(**options) as client:
        fence = RedisFence(client, domain="d")
        fence.claim(leader, initialize=True)
        fence.set(leader, "k", "v")
        lent = client.client_id()
        fence.close()
        assert client.get("k") == ("v" if "decode_responses" in options else b"v")
        assert client.client_id() == lent
        assert redis.told("clients", "connected_clients") == "2"  # the asking one, too


def test_a_unix_socket(redis: RedisServer, bearer: MakeBearer) -> None:
    with closing(RedisFence(f"unix://{redis.socket}?db=2", domain="d")) as fence:
        fence.claim(bearer(6), initialize=True)
        with pytest.raises(Fenced, match=f"redis:unix:{redis.socket}/2"):
            fence.claim(bearer(5))


# --- what it waits for -----------------------------------------------------------------------


@pytest.fixture
def paused(redis: RedisServer) -> Iterator[RedisServer]:
    redis.process.pause()
    yield redis
    redis.process.resume()
    redis.ask("PING")


def test_nobody_waits_longer_than_the_lease(
    fence: Any, leader: FakeBearer, request: pytest.FixtureRequest
) -> None:
    fence.set(leader, "k", "before")
    redis = request.getfixturevalue("paused")
    leader.lease = 0.05
    with pytest.raises(RequestFailed, match=r"may or may not have been done: waited 0\.05 s"):
        fence.incr(leader, "n")
    redis.process.resume()
    leader.lease = 60.0
    until(lambda: redis.ask("GET", "n") == "1", "what was sent to be done, once")
    assert fence.script(leader, "return 'its own reply'") == b"its own reply"
    assert fence.incr(leader, "n") == 2


def test_a_server_that_is_silent_costs_the_timeout(
    bench: RedisBench, leader: FakeBearer, paused: RedisServer
) -> None:
    fence = bench.fence(timeout=0.05)
    with pytest.raises(RequestFailed, match="nothing was sent") as caught:
        fence.claim(leader)
    paused.process.resume()
    assert caught.value.__cause__ is not None
    fence.claim(leader)


def test_a_claim_without_reply_is_made_again(
    fence: Any, bearer: MakeBearer, request: pytest.FixtureRequest
) -> None:
    new = bearer(6, lease=0.05)
    redis = request.getfixturevalue("paused")
    with pytest.raises(RequestFailed, match="claim again with the same token"):
        fence.claim(new)
    redis.process.resume()
    new.lease = 60.0
    fence.claim(new)
    fence.set(new, "k", "v")


def test_a_connection_that_was_closed_meanwhile_is_replaced(
    redis: RedisServer, leader: FakeBearer
) -> None:
    with closing(RedisFence(redis.url, domain="d")) as fence:
        fence.claim(leader, initialize=True)
        redis.ask("CLIENT", "KILL", "TYPE", "normal")
        until(lambda: redis.told("clients", "connected_clients") == "1", "its connection to go")
        assert fence.incr(leader, "n") == 1


def test_no_server_is_told(leader: FakeBearer) -> None:
    nobody = RedisFence("redis://127.0.0.1:1/0", domain="d")
    with pytest.raises(RequestFailed, match=r"redis:127\.0\.0\.1:1/0.*nothing was sent"):
        nobody.claim(leader)


def test_a_cancelled_call_leaves_no_reply_to_others(redis: RedisServer, leader: FakeBearer) -> None:
    async def scenario() -> None:
        fence = AsyncRedisFence(redis.url, domain="d")
        await fence.claim(leader, initialize=True)
        await fence.incr(leader, "n")
        redis.process.pause()
        try:
            call = asyncio.create_task(fence.incr(leader, "n"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call, 0.05)
        finally:
            redis.process.resume()
        assert await fence.script(leader, "return 'its own reply'") == b"its own reply"
        await fence.aclose()

    asyncio.run(scenario())


# --- H55 -------------------------------------------------------------------------------------


def test_h55_tokens_that_are_one_float_are_two_tokens(
    bench: RedisBench, bearer: MakeBearer
) -> None:
    low, high = 1 << 60, (1 << 60) + 1
    assert float(low) == float(high)
    mine, theirs = bench.fence(), bench.fence()
    old, new = (bearer(czxid, zxid=1 << 61) for czxid in (low, high))
    mine.claim(old)
    bench.write(mine, old, "old")
    with pytest.raises(Unclaimed):
        bench.write(theirs, new, "not yet")
    theirs.claim(new)
    bench.write(theirs, new, "new")
    with pytest.raises(Fenced):
        bench.write(mine, old, "too late")
    assert bench.log() == [(old.token, "old"), (new.token, "new")]


# --- a stale leader --------------------------------------------------------------------------


def no_token_after_a_higher_one(log: list[tuple[Token, str]]) -> None:
    tokens = [token for token, _ in log]
    assert tokens == sorted(tokens)


def hammer(bench: RedisBench, old: FakeBearer, new: FakeBearer) -> None:
    """The old leader writes as fast as it can; the new one claims meanwhile, and writes."""
    mine, theirs = bench.fence(), bench.fence()
    mine.claim(old)
    written, over = threading.Event(), threading.Event()

    def write() -> None:
        with suppress(Fenced):
            while not over.is_set():
                bench.write(mine, old, "old")
                written.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        written.wait()
        theirs.claim(new)
        for _ in range(50):
            bench.write(theirs, new, "new")
        over.set()
        writing.result()


def hold(bench: RedisBench, old: FakeBearer, new: FakeBearer) -> None:
    """The old leader's write waits after its check, until the new leader has written."""
    mine, theirs = bench.fence(), bench.fence()
    mine.claim(old)
    bench.write(mine, old, "in time")
    checked, released = threading.Event(), threading.Event()
    bench.hold(mine, checked, released)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(bench.write, mine, old, "held")
        checked.wait()
        theirs.claim(new)
        bench.write(theirs, new, "new")
        released.set()
        with suppress(Fenced):
            writing.result()


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the script writes without the comparison; Python still checks."""
    guard = RAISE.text.partition("redis.call('SET'")[0]

    def bare(lua: str) -> Script:
        return Script(guarded(lua).text.removeprefix(guard))

    for module in (blocking_module, asyncio_module):
        monkeypatch.setattr(module, "guarded", bare)


@pytest.mark.parametrize("race", [hammer, hold])
def test_no_token_is_written_after_a_higher_one(
    bench: RedisBench, bearer: MakeBearer, race: Callable[..., None]
) -> None:
    old, new = bearer(5), bearer(6)
    race(bench, old, new)
    no_token_after_a_higher_one(bench.log())
    assert {token for token, _ in bench.log()} == {old.token, new.token}
    assert (old.ends, new.ends) == (["fenced"], [])


@pytest.mark.usefixtures("unguarded")
def test_the_control_without_the_comparison_is_overtaken(
    bench: RedisBench, bearer: MakeBearer
) -> None:
    hold(bench, bearer(5), bearer(6))
    with pytest.raises(AssertionError):
        no_token_after_a_higher_one(bench.log())
