"""What is written into znodes is read back, also by an older and a newer agent."""

from __future__ import annotations

import json

import pytest

from zkelect.recipes.choice import SyncSet
from zkelect.recipes.member import Answer, Done, Heartbeat, Member, Observed, Outcome, Role
from zkelect.recipes.notes import decode, encode
from zkelect.recipes.page import Page, Phase, Request
from zkelect.recipes.position import Position

HERE = Position.parse("x@0/y@5:9")
MEMBER = Member(name="höst", address="[::1]:5432", priority=-1, candidate=False)
VALUES = [
    MEMBER,
    Request(id="1"),
    SyncSet(reign="t", names=("a", "b")),
    Page(phase=Phase.OPEN, token="t", coordinator="b", members=(MEMBER,), position=HERE),
    Heartbeat(
        member=MEMBER,
        observed=Observed(role=Role.DEMOTED, position=HERE, behind=3),
        done=Done(serial=4, outcome=Outcome.FAILED, answer=Answer.NO, detail="no"),
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_written_is_read(value: object) -> None:
    assert decode(type(value), encode(value)) == value


def test_what_a_newer_agent_adds_is_left_out_and_what_an_older_one_lacks_is_default() -> None:
    assert decode(Member, b'{"name": "a", "colour": "red"}') == Member(name="a")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"name": 1}',
        b'{"name": "a", "priority": true}',
        json.dumps({"name": "a", "candidate": "yes"}).encode(),
    ],
)
def test_what_is_no_value_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(Member, data)


def test_a_position_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="position"):
        decode(Observed, b'{"role": "replica", "position": "x"}')
