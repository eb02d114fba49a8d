"""What a real server does when a parent's counter comes to its end; FakeEnsemble does the same.

Nobody can wait for two thousand million creates: the counter is set in the server's snapshot.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest
from contract.world import SESSION_TIMEOUT, TICK
from kazoo.client import KazooClient

import zkelect
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from pathlib import Path

LAST: Final = 2**31 - 1
MARK: Final = b"the znode whose counter is set"
PATH: Final = "/worn"

CVERSION_BEHIND_DATA: Final = 8 + 4 * 8 + 4
"""Bytes from a znode's data to its counter: ACL, four long integers, version (DataNode)."""


def set_counter(snapshot: Path, number: int) -> None:
    """Write the counter of the marked znode into a snapshot, and seal it again.

    A seal is the Adler-32 sum of all before it, as a long integer, and the text "/".
    """
    old = snapshot.read_bytes()
    new = bytearray(old)
    at = old.index(MARK) + len(MARK) + CVERSION_BEHIND_DATA
    new[at : at + 4] = struct.pack(">i", number)
    for seal in range(at, len(old) - 12):
        if old[seal : seal + 13] == struct.pack(">qi", zlib.adler32(old[:seal]), 1) + b"/":
            new[seal : seal + 8] = struct.pack(">q", zlib.adler32(bytes(new[:seal])))
    snapshot.write_bytes(new)


@pytest.fixture
def worn() -> Iterator[KazooClient]:
    """A server on which the next child but one of PATH gets the last number."""
    with LocalEnsemble(tick_time=TICK) as ensemble:
        client = KazooClient(ensemble.hosts)
        client.start()
        client.create(PATH, MARK)
        client.stop()
        (server,) = ensemble.servers
        server.kill()
        server.launch()  # it writes a snapshot when it starts
        ensemble.wait_ready()
        server.kill()
        snapshots = [p for p in ensemble.directory.rglob("snapshot.*") if MARK in p.read_bytes()]
        set_counter(snapshots[-1], LAST - 1)
        server.launch()
        ensemble.wait_ready()
        client.start()
        yield client
        client.stop()
        client.close()


@pytest.fixture
def made(worn: KazooClient) -> Callable[[], Any]:
    """Create a child; each has a name of its own, as candidates do."""
    names = count()
    return lambda: worn.create_async(f"{PATH}/{next(names)}-", ephemeral=True, sequence=True)


def number(created: Any) -> int:
    return int(created.get(10.0).partition("-")[2])


def test_one_by_one_the_last_number_is_given_again_and_again(made: Callable[[], Any]) -> None:
    assert [number(made()) for _ in range(4)] == [LAST - 1, LAST, LAST, LAST]


def test_back_to_back_some_numbers_are_negative(made: Callable[[], Any]) -> None:
    numbers = [number(created) for created in [made() for _ in range(50)]]
    assert numbers[0] == LAST - 1
    assert set(numbers[1:]) <= {LAST, *range(-LAST - 1, -LAST + 60)}


def test_h34_nobody_is_elected_on_the_last_number_and_nothing_is_left(
    worn: KazooClient,
    made: Callable[[], Any],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    number(made())
    assert worn.hosts is not None
    with zkelect.connect(
        "{}:{}".format(*worn.hosts[0]), session_timeout=SESSION_TIMEOUT
    ) as session:
        election = zkelect.Election(session, PATH, name="a")
        with pytest.raises(zkelect.SequenceExhausted), election.campaign(timeout=10.0):
            pytest.fail("elected on the last number")
        eventually(lambda: "__lock__" not in str(worn.get_children(PATH)), "its znode has gone")
