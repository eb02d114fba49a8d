"""What the checker is given: histories from files, transactions from ZooKeeper's logs."""

from __future__ import annotations

import struct
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from chaos import history
from chaos.faults import FAULTS
from chaos.plan import Step, steps
from chaos.transaction_log import (
    BadLog,
    Transaction,
    committed,
    in_effect,
    transactions_in,
)

if TYPE_CHECKING:
    from pathlib import Path

# --- histories -----------------------------------------------------------------------------


def test_lines_of_all_processes_are_read_in_the_order_of_their_instants(tmp_path: Path) -> None:
    one, other = history.Writer(tmp_path, "one"), history.Writer(tmp_path, "other")
    one.write("second", at=2.0, word="x", nothing=None)
    other.write("first", at=1.0)
    found = history.read(tmp_path)
    assert [(event.at, event.by, event.kind) for event in found.events] == [
        (1.0, "other", "first"),
        (2.0, "one", "second"),
    ]
    assert found.events[1].fields == {"word": "x"}
    assert found.defects == ()


def test_only_the_last_line_of_a_file_may_be_torn(tmp_path: Path) -> None:
    whole = '{"at": 1, "by": "a", "event": "told"}'
    (tmp_path / "killed.jsonl").write_text(f'{whole}\n{{"at": 2, "by', "utf-8")
    assert history.read(tmp_path).defects == ()
    (tmp_path / "torn.jsonl").write_text(f'{{"at": 2, "by\n{whole}\n', "utf-8")
    assert history.read(tmp_path).defects == ("torn.jsonl:1 cannot be read",)
    assert len(history.read(tmp_path).events) == 2


# --- ZooKeeper's transaction log -----------------------------------------------------------

HEADER = b"ZKLG" + struct.pack("!iq", 2, 0)
CREATE2, DELETE, MULTI, CLOSE = 15, 2, 14, -11


def text(value: str) -> bytes:
    return struct.pack("!i", len(value)) + value.encode()


def transaction(zxid: int, kind: int, record: bytes, session: int = 7) -> bytes:
    body = struct.pack("!qiqqi", session, 1, zxid, 1_700_000_000_123, kind) + record
    return struct.pack("!qi", zlib.adler32(body), len(body)) + body + b"B"


def part(kind: int, record: bytes) -> bytes:
    return struct.pack("!ii", kind, len(record)) + record


def test_creations_deletions_and_ends_of_sessions_are_read() -> None:
    closed = struct.pack("!i", 2) + text("/e/b") + text("/e/c")
    parts = struct.pack("!i", 2) + part(DELETE, text("/e/a")) + part(13, text("/e") + b"\0" * 4)
    data = (
        HEADER
        + transaction(1, CREATE2, text("/e/a") + b"the rest of the record", session=-3)
        + transaction(2, MULTI, parts)
        + transaction(3, CLOSE, closed + b"a digest")
        + b"\0" * 64
    )
    created, deleted, ended = transactions_in(data)
    assert (created.zxid, created.session, created.created) == (1, -3, ("/e/a",))
    assert created.wall == 1_700_000_000.123
    assert (deleted.deleted, deleted.closed) == (("/e/a",), False)
    assert (ended.deleted, ended.closed) == (("/e/b", "/e/c"), True)


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_transaction_that_a_kill_has_torn_ends_the_log(cut: int) -> None:
    data = HEADER + transaction(1, DELETE, text("/a")) + transaction(2, DELETE, text("/b"))
    assert [one.zxid for one in transactions_in(data[:-cut])] == [1]


def test_a_checksum_that_does_not_fit_ends_the_log() -> None:
    data = bytearray(HEADER + transaction(1, DELETE, text("/a")))
    data[-3] ^= 1
    assert not list(transactions_in(bytes(data)))


def test_another_file_is_no_log() -> None:
    with pytest.raises(BadLog, match="begins with"):
        list(transactions_in(b"ZKSN" + HEADER[4:]))
    assert not list(transactions_in(b""))


def test_what_a_majority_has_logged_was_committed() -> None:
    everywhere, common, vain = (Transaction(zxid=n, wall=0.0, session=1) for n in (1, 2, 3))
    logs = [{1: everywhere, 2: common, 3: vain}, {1: everywhere, 2: common}, {1: everywhere}]
    assert [one.zxid for one in committed(logs)] == [1, 2]


def done(zxid: int, session: int = 1, **changes: Any) -> Transaction:
    return Transaction(zxid=zxid, wall=0.0, session=session, **changes)


def test_the_end_of_a_session_that_goes_on_never_came_to_pass() -> None:
    """ZooKeeper 3.8.0: logged by all three servers, applied by none (seed 21)."""
    end = done(2, deleted=("/e/a-1",), closed=True)
    log = [done(1, created=("/e/a-1",)), end, done(3, deleted=("/e/a-1",))]
    assert in_effect(log) == (log[0], done(2), log[2])


def test_a_znode_that_is_deleted_again_was_there_until_then() -> None:
    log = [done(1, created=("/e/a-1",)), done(2, closed=True, deleted=("/e/a-1",))]
    again = done(3, closed=True, deleted=("/e/a-1",))
    assert in_effect([*log, again]) == (log[0], done(2, closed=True), again)


def test_ends_that_came_to_pass_stay() -> None:
    log = (
        done(1, created=("/e/a-1",)),
        done(2, deleted=("/e/a-1",), closed=True),
        done(3, closed=True),  # closed, and expired
        done(4, session=2, created=("/e/a-1",)),
        done(5, session=2, deleted=("/e/a-1",)),
    )
    assert in_effect(log) == log


# --- the schedule --------------------------------------------------------------------------


def schedule(seed: int, length: int = 200) -> list[Step]:
    return list(islice(steps(seed, list(FAULTS), shortest=0.2, longest=6.0), length))


def test_the_seed_alone_makes_the_schedule() -> None:
    assert schedule(1) == schedule(1)
    assert schedule(1) != schedule(2)


def test_every_kind_comes_before_any_comes_twice() -> None:
    drawn = [kind for step in schedule(3) for kind in step.kinds]
    assert set(drawn[: len(FAULTS)]) == set(FAULTS)


def test_a_fifth_are_two_at_once_and_all_last_as_long_as_they_may() -> None:
    plan = schedule(4, 1000)
    assert 150 < sum(len(step.kinds) == 2 for step in plan) < 250
    assert all(0.2 <= step.seconds <= 6.0 and 16 <= step.operations <= 60 for step in plan)
