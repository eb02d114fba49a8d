"""How kazoo's thread is woken."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import pytest

from zkelect.session.doorbell import Doorbell

if TYPE_CHECKING:
    from collections.abc import Iterator

MORE_THAN_A_PAIR_TAKES = 100_000


@pytest.fixture
def bell() -> Iterator[Doorbell]:
    made = Doorbell()
    yield made
    made.close()


def rings(bell: Doorbell) -> bool:
    return bool(select.select([bell], [], [], 0)[0])


def test_it_rings_as_often_as_it_was_rung_and_nobody_waits(bell: Doorbell) -> None:
    for _ in range(MORE_THAN_A_PAIR_TAKES):
        assert bell.send(b"\0") == 1
    for _ in range(MORE_THAN_A_PAIR_TAKES):
        assert rings(bell)
        assert bell.recv(1) == b"\0"
    assert not rings(bell)


def test_it_rings_again_after_a_silence(bell: Doorbell) -> None:
    for _ in range(2):
        assert not rings(bell)
        bell.send(b"\0\0")
        assert rings(bell)
        assert bell.recv(9) == b"\0\0"


def test_nothing_can_be_taken_in_a_silence(bell: Doorbell) -> None:
    with pytest.raises(BlockingIOError):
        bell.recv(1)


def test_a_closed_one_cannot_be_rung(bell: Doorbell) -> None:
    bell.send(b"\0")
    bell.close()
    bell.close()
    with pytest.raises(OSError, match="closed"):
        bell.send(b"\0")
