"""The page of a switchover, and what the leader makes of the roll."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.handover import (
    Handover,
    HandoverState,
    decode_handover,
    encode_handover,
    handover_path,
    next_in_line,
)
from zkelect.core.znodes import KAZOO, Entry, Roll
from zkelect.token import Token

TOKEN = Token(lineage="0123456789abcdef", generation=1, czxid=7, holder="fedcba9876543210")


def node(name: str, number: int, *, version: int = 8) -> str:
    return KAZOO.prefix(f"{ord(name):012x}{version}00081{'0' * 14}") + f"{number:010d}"


PAGE = Handover(
    id="1",
    target=node("C", 3),
    name="host-c",
    leader=node("A", 1),
    token=TOKEN,
    timeout=30.0,
    by="root@here",
    why="a new kernel",
)


def roll(*nodes: str) -> Roll:
    return KAZOO.read(nodes)


# --- the page --------------------------------------------------------------------------------


@given(
    st.text(), st.text(), st.text(), st.floats(0, 1e6), st.sampled_from(HandoverState), st.text()
)
def test_what_is_written_is_read(
    name: str, by: str, why: str, timeout: float, state: HandoverState, reason: str
) -> None:
    page = evolve(PAGE, name=name, by=by, why=why, timeout=timeout, state=state, reason=reason)
    found = decode_handover(encode_handover(page), 5)
    assert found == page
    assert found is not None
    assert found.version == 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        encode_handover(PAGE).replace(b"asked", b"dreamt"),
        encode_handover(PAGE).replace(str(TOKEN).encode(), b"7"),
        encode_handover(PAGE).replace(b'"id":"1"', b'"id":1'),
        encode_handover(PAGE).replace(b"30.0", b'"30"'),
        encode_handover(PAGE).replace(b'"id":"1"', b'"ID":"1"'),
    ],
)
def test_what_is_no_switchover_is_none(data: bytes) -> None:
    assert decode_handover(data, 0) is None


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert decode_handover(data, 0) is None


def test_what_a_later_version_adds_is_passed_over() -> None:
    later = encode_handover(PAGE).replace(b"{", b'{"urgent":true,')
    assert decode_handover(later, 0) == PAGE


def test_it_lies_beside_the_election() -> None:
    assert handover_path("/elections/billing") == "/elections/billing.zkelect/switchover"


@pytest.mark.parametrize(
    ("state", "pending"),
    [("asked", True), ("driven", True), ("done", False), ("withdrawn", False)],
)
def test_what_is_pending_may_still_come_true(state: str, pending: Any) -> None:
    assert evolve(PAGE, state=HandoverState(state)).pending is pending


def test_it_is_spelt_for_people() -> None:
    assert str(PAGE) == "switchover to 'host-c' that 'root@here' asks for (a new kernel)"
    assert str(evolve(PAGE, why="")) == "switchover to 'host-c' that 'root@here' asks for"


# --- what the leader makes of the roll ---------------------------------------------------------


def test_the_one_behind_the_leader_must_make_way() -> None:
    behind = next_in_line(roll(node("A", 1), node("B", 2), node("C", 3)), PAGE)
    assert isinstance(behind, Entry)
    assert behind.node == node("B", 2)


def test_when_that_is_the_target_the_way_is_free() -> None:
    behind = next_in_line(roll(node("A", 1), node("C", 3), node("B", 4)), PAGE)
    assert isinstance(behind, Entry)
    assert behind.node == PAGE.target


def test_a_server_that_lags_shows_who_is_gone_already_and_is_asked_again() -> None:
    behind = next_in_line(roll(node("Z", 0), node("A", 1), node("C", 3)), PAGE)
    assert isinstance(behind, Entry)
    assert behind.node == node("Z", 0)


def test_a_target_that_has_left_or_stands_anew_is_given_up() -> None:
    assert next_in_line(roll(node("A", 1), node("B", 2), node("C", 4)), PAGE) == (
        "'host-c' has left the queue"
    )


@pytest.mark.parametrize("number", [2, 4])
def test_h49_a_peer_of_another_library_anywhere_ends_it(number: int) -> None:
    peer = node("K", number, version=4)
    reason = next_in_line(roll(node("A", 1), node("C", 3), peer), PAGE)
    assert isinstance(reason, str)
    assert peer in reason
    assert "does not step back" in reason
