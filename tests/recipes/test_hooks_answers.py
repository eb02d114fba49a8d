"""What is said to a hook and what it says, as text; no process is started."""

from __future__ import annotations

import json

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.hooks.answer import Said, check_status, read
from zkelect.recipes.hooks.failures import HookFailed, HookMissing
from zkelect.recipes.hooks.order import REQUIRED, Order, Verb, environment_of
from zkelect.recipes.member import Answer, Member, Observed, Role
from zkelect.recipes.notes import encode
from zkelect.recipes.position import Branch, Position
from zkelect.recipes.resource import NotNow

POSITION = Position((Branch("one"), Branch("b-7", 12)), 14)
A, B = Member(name="a", address="10.0.0.1:7000"), Member(name="b", address="10.0.0.2:7000")


# --- orders --------------------------------------------------------------------------------------


def test_an_order_is_one_json_object() -> None:
    told = json.loads(encode(Order(verb=Verb.FOLLOW, member=A, other=B, position=POSITION)))
    who = {"priority": 0, "candidate": True}
    assert told == {
        "verb": "follow",
        "member": {"name": "a", "address": "10.0.0.1:7000", **who},
        "other": {"name": "b", "address": "10.0.0.2:7000", **who},
        "planned": False,
        "position": "one@0/b-7@12:14",
    }


def test_deadline_and_token_are_in_the_environment() -> None:
    deadline = now() + 30
    found = environment_of(Order(verb=Verb.CLAIM, member=A), deadline, "000005-7")
    assert 0 < float(found["ZKELECT_TIMEOUT"]) <= 30
    assert {name: found[name] for name in found if name != "ZKELECT_TIMEOUT"} == {
        "ZKELECT_VERB": "claim",
        "ZKELECT_MEMBER": "a",
        "ZKELECT_DEADLINE": f"{deadline:.3f}",
        "ZKELECT_TOKEN": "000005-7",
    }


def test_no_time_that_is_left_is_not_negative() -> None:
    found = environment_of(Order(verb=Verb.CLOSE, member=A), now() - 5, "")
    assert found["ZKELECT_TIMEOUT"] == "0.000"


def test_what_may_be_missing() -> None:
    assert {str(verb) for verb in set(Verb) - REQUIRED} == {
        "check",
        "reach",
        "fence",
        "catch-up",
        "claim",
    }


# --- how it ended ------------------------------------------------------------------------


def test_status_0_is_well() -> None:
    check_status(Verb.OPEN, 0, b"a warning", alone=True)


@pytest.mark.parametrize(
    ("status", "alone", "kind", "told"),
    [
        (75, True, NotNow, "the hook open says: not now: the disk is full"),
        (64, False, HookMissing, "the hook open is unknown to the program: exit status 64"),
        (64, True, HookFailed, "the hook open failed with exit status 64: the disk is full"),
        (1, True, HookFailed, "the hook open failed with exit status 1: the disk is full"),
        (-9, True, HookFailed, "the hook open was killed by signal 9: the disk is full"),
    ],
)
def test_any_other_status_tells_what_the_hook_complained_of(
    status: int, alone: bool, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as raised:
        check_status(Verb.OPEN, status, b"the disk\n is full\n", alone=alone)
    assert type(raised.value) is kind
    assert str(raised.value).startswith(told)


def test_of_a_long_complaint_the_end_is_shown() -> None:
    with pytest.raises(HookFailed) as raised:
        check_status(Verb.OPEN, 1, b"x" * 100_000 + b" at last\xff", alone=True)
    assert str(raised.value).endswith(" at last\N{REPLACEMENT CHARACTER}")
    assert len(str(raised.value)) < 600


# --- what it printed -----------------------------------------------------------------------------


def test_an_answer_may_be_empty_and_may_have_more_than_we_know() -> None:
    assert read(Said, Verb.OPEN, b"{}") == Said()
    found = read(Said, Verb.FENCE, b'{"answer": "yes", "colour": "red", "position": null}')
    assert found == Said(answer=Answer.YES)


def test_a_position_is_read() -> None:
    assert read(Said, Verb.FREEZE, b'{"position": "one@0/b-7@12:14"}') == Said(position=POSITION)


def test_what_position_tells() -> None:
    told = b'{"role": "replica", "position": "one@0/b-7@12:14", "behind": 3, "system": "shop"}'
    assert read(Observed, Verb.POSITION, told) == Observed(
        role=Role.REPLICA, position=POSITION, behind=3, system="shop"
    )


@pytest.mark.parametrize(
    "output", [b"", b"opened", b'{"position"', b"{}{}", b"\xff{}", b"[" * 9999]
)
def test_no_json_is_a_failure(output: bytes) -> None:
    with pytest.raises(HookFailed, match=r"the hook open printed no JSON"):
        read(Said, Verb.OPEN, output)


@pytest.mark.parametrize("output", [b"[]", b"null", b"17", b'"done"'])
def test_json_that_is_no_object_is_a_failure(output: bytes) -> None:
    with pytest.raises(HookFailed, match="is no object"):
        read(Said, Verb.OPEN, output)


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        (Said, b'{"position": "14"}'),
        (Said, b'{"position": 14}'),
        (Said, b'{"answer": "perhaps"}'),
        (Said, b'{"answer": true}'),
        (Said, b'{"rebuild": 1}'),
        (Observed, b'{"position": "one@0:14"}'),  # no role
        (Observed, b'{"role": "master"}'),
        (Observed, b'{"role": "replica", "healthy": "no"}'),
        (Observed, b'{"role": "replica", "behind": "3"}'),
    ],
)
def test_values_that_there_are_not_are_a_failure(kind: type[object], output: bytes) -> None:
    with pytest.raises(HookFailed, match="cannot be read"):
        read(kind, Verb.POSITION, output)
