"""Who comes before whom on PostgreSQL: H50, H53 and H62, each with a control that must fail."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event, text
from stores.postgresql_bench import *  # noqa: F403  # fixtures
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import Fenced
from zkelect.stores.sql import SqlFence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers.postgresql import PostgreSql
    from stores.bearers import FakeBearer
    from stores.postgresql_bench import Started

    from zkelect.token import Token

    MakeBearer = Callable[..., FakeBearer]

# What a control takes out of the fence's SQL. abs() of the lock's number changes nothing.
_QUEUE = {"pg_advisory_xact_lock_shared(": "abs(", "pg_advisory_xact_lock(": "abs("}
_LOCKS = {**_QUEUE, "FOR SHARE": ""}


def without(engine: sa.Engine, parts: dict[str, str]) -> sa.Engine:
    """Return an engine of the same pool that sends SQL with these parts replaced."""
    control = engine.execution_options()

    def replace(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
        for part, other in parts.items():
            statement = statement.replace(part, other)
        return statement, parameters

    event.listen(control, "before_cursor_execute", replace, retval=True)
    return control


def falls(tokens: list[Token]) -> list[int]:
    """Where a token is lower than one before it: writes of a stale leader."""
    return [i for i, token in enumerate(tokens) if token < max(tokens[: i + 1])]


# --- a stale writer between its check and its write --------------------------------------------


def tokens_after_a_claim_between_check_and_write(
    bench: SqlBench, control: sa.Engine, started: Started, bearer: MakeBearer
) -> list[Token]:
    old, new = bearer(5), bearer(6)
    theirs, ours = SqlFence(control, domain="d", timeout=60.0), bench.fence()
    theirs.claim(old)

    def take_over() -> None:
        ours.claim(new)
        bench.write(ours, new, "new")

    with theirs.transaction(old) as transaction:  # its check has passed
        claim = started.call(take_over)
        bench.append(transaction, old.token, "old")
    claim.result()
    return [token for token, _ in bench.log()]


def test_h53_between_check_and_write_nobody_claims(
    bench: SqlBench, started: Started, bearer: MakeBearer
) -> None:
    tokens = tokens_after_a_claim_between_check_and_write(bench, bench.engine, started, bearer)
    assert [token.czxid for token in tokens] == [5, 6]


def test_control_without_the_locks_the_stale_write_comes_last(
    bench: SqlBench, started: Started, bearer: MakeBearer
) -> None:
    control = without(bench.engine, _LOCKS)
    tokens = tokens_after_a_claim_between_check_and_write(bench, control, started, bearer)
    assert falls(tokens) == [1]


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_h53_a_guard_that_waited_for_a_claim_sees_it(
    bench: SqlBench, started: Started, bearer: MakeBearer, isolation: str
) -> None:
    """Its snapshot is older than the claim's commit."""
    old, new = bearer(5), bearer(6)
    fence = bench.fence()
    late = SqlFence(bench.engine.execution_options(isolation_level=isolation), domain="d")
    fence.claim(old)
    with fence.transaction(old):
        claim = started.call(bench.fence().claim, new)
        write = started.call(bench.write, late, old, "stale")
        assert not claim.done()
        assert not write.done()
    claim.result()
    assert isinstance(write.exception(), Fenced)
    assert bench.log() == []


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_h53_a_guard_that_waited_for_its_own_claim_passes(
    bench: SqlBench, started: Started, bearer: MakeBearer, isolation: str
) -> None:
    """A claim of unknown outcome is made again, while another thread of the leader writes."""
    leader, fence = bearer(5), bench.fence()
    late = SqlFence(bench.engine.execution_options(isolation_level=isolation), domain="d")
    fence.claim(leader)
    with fence.transaction(leader):
        claim = started.call(fence.claim, leader)
        write = started.call(bench.write, late, leader, "mine")
    claim.result()
    write.result()
    assert bench.log() == [(leader.token, "mine")]


def test_h53_a_savepoint_rolled_back_does_not_take_the_guard_with_it(
    bench: SqlBench, started: Started, bearer: MakeBearer
) -> None:
    fence, old = bench.fence(), bearer(5)
    fence.claim(old)
    with fence.transaction(old) as transaction:
        savepoint = transaction.begin_nested()
        bench.append(transaction, old.token, "undone")
        savepoint.rollback()
        claim = started.call(bench.fence().claim, bearer(6))
        assert not claim.done()
        bench.append(transaction, old.token, "kept")
    claim.result()
    assert bench.log() == [(old.token, "kept")]


# --- many writers, one claim -------------------------------------------------------------------


class Crowd:
    """One leader's threads, each in guarded transactions of 50 ms without pause."""

    def __init__(self, bench: SqlBench, fence: SqlFence, leader: FakeBearer) -> None:
        self._bench, self._fence, self._leader = bench, fence, leader
        self.claiming, self.stop = threading.Event(), threading.Event()

    def write(self) -> None:
        with suppress(Fenced):
            while not self.stop.is_set():
                began = "late" if self.claiming.is_set() else "early"
                with self._fence.transaction(self._leader) as transaction:
                    transaction.execute(text("select pg_sleep(0.05)"))
                    self._bench.append(transaction, self._leader.token, began)

    def written(self, began: str) -> int:
        return [entry for _, entry in self._bench.log()].count(began)


@pytest.fixture
def crowd(bench: SqlBench, bearer: MakeBearer) -> Iterator[Callable[[sa.Engine], Crowd]]:
    with ThreadPoolExecutor(16) as pool:
        crowds: list[Crowd] = []

        def gather(engine: sa.Engine) -> Crowd:
            leader, fence = bearer(5), SqlFence(engine, domain="d", timeout=60.0)
            fence.claim(leader)
            crowds.append(Crowd(bench, fence, leader))
            for _ in range(16):
                pool.submit(crowds[-1].write)
            while crowds[-1].written("early") < 32:
                pass
            return crowds[-1]

        yield gather
        for one in crowds:
            one.stop.set()


def test_h62_a_claim_waits_only_for_the_transactions_already_open(
    bench: SqlBench, started: Started, bearer: MakeBearer, crowd: Callable[[sa.Engine], Crowd]
) -> None:
    writers = crowd(bench.engine)
    claim = started.call(bench.fence().claim, bearer(6))
    writers.claiming.set()
    claim.result()
    assert writers.written("late") == 0


def test_control_with_for_share_alone_a_claim_is_overtaken(
    bench: SqlBench, started: Started, bearer: MakeBearer, crowd: Callable[[sa.Engine], Crowd]
) -> None:
    control = without(bench.engine, _QUEUE)
    writers = crowd(control)
    claim = started.call(SqlFence(control, domain="d", timeout=60.0).claim, bearer(6))
    writers.claiming.set()
    while writers.written("late") < 64:  # four times as many as can be open at once
        assert not claim.done()
    writers.stop.set()
    claim.result()


# --- two processes' worth of leaders -----------------------------------------------------------


def test_of_two_leaders_that_hammer_the_older_never_writes_after_the_newer(
    postgresql: PostgreSql, postgresql_database: str, bench: SqlBench, bearer: MakeBearer
) -> None:
    """Term after term on both sides, as of two leaders that both believe in themselves."""
    with engine_of(postgresql.url(database=postgresql_database)) as theirs:
        fences = [bench.fence(), SqlFence(theirs, domain="d", timeout=60.0)]
        fences[0].claim(bearer(0))
        bench.write(fences[0], bearer(0), "first")

        def lead(side: int) -> None:
            for czxid in range(side, 60, 2):
                leader = bearer(czxid)
                with suppress(Fenced):
                    fences[side].claim(leader)
                    for _ in range(5):
                        bench.write(fences[side], leader, "hammer")

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(lead, side) for side in (0, 1)]:
                done.result()
    tokens = [token for token, _ in bench.log()]
    assert falls(tokens) == []
    assert {tokens[0].czxid, tokens[-1].czxid} == {0, 59}
