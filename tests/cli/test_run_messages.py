"""What elector and keeper tell each other arrives whole, in order, or not at all."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from zkelect.cli.run.keeper.messages import (
    Cause,
    Channel,
    Dead,
    End,
    Ending,
    Hold,
    Message,
    Pass,
    Ready,
    Refused,
    Start,
    Started,
)

MESSAGES: list[Message] = [
    Start({"ZKELECT_NAME": "é \U0001f9ed \udcff" * 1000}, 12.345678901234567, 0.1),
    Hold(42298.264036444),
    Pass(15, typed=True),
    End(at_once=True),
    Ready("/sys/fs/cgroup/x", ""),
    Started(4711),
    Refused(2),
    Ending(Cause.EXITED, 143),
    Dead(),
]

Ends = tuple[Channel, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = map(Channel, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    yield one, other
    one.close()
    other.close()


def test_all_of_them_arrive_as_they_were_sent(ends: Ends) -> None:
    one, other = ends
    assert all(map(one.send, MESSAGES))
    assert [other.receive() for _ in MESSAGES] == MESSAGES
    assert other.receive() is None
    assert not other.closed


def test_the_end_of_the_other_side_is_seen_after_what_it_had_sent(ends: Ends) -> None:
    one, other = ends
    one.send(Dead())
    one.close()
    assert (other.receive(), other.closed) == (Dead(), False)
    assert (other.receive(), other.closed) == (None, True)


def test_nothing_can_be_sent_to_one_that_has_ended(ends: Ends) -> None:
    one, other = ends
    other.close()
    assert not one.send(Dead())
    assert one.closed


def test_who_left_without_reading_has_ended_all_the_same(ends: Ends) -> None:
    one, other = ends
    one.send(Dead())
    other.close()
    assert (one.receive(), one.closed) == (None, True)


def test_one_that_does_not_read_stops_nobody(ends: Ends) -> None:
    one, _ = ends
    sent = sum(one.send(Hold(float(number))) for number in range(10_000))
    assert 100 < sent < 10_000
    assert not one.closed
