"""Candidate names: which are ours, which are peers, and who stands before whom."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.znodes import (
    CURATOR_LATCH,
    CURATOR_LOCK,
    DIALECTS,
    KAZOO,
    LAST_SEQUENCE,
    WORN_SEQUENCE,
    Dialect,
    Entry,
    is_ours,
)

OURS = "0123456789ab8def8123456789abcdef"
KAZOOS = "0123456789ab4def8123456789abcdef"


def java_name(prefix: str, number: int) -> str:
    """Return the name a server gives: Java's %010d counts the sign among the ten."""
    return f"{prefix}{number:010d}"


# --- parsing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "tail"),
    [
        (0, "0000000000"),
        (7, "0000000007"),
        (LAST_SEQUENCE, "2147483646"),
        (2**31 - 1, "2147483647"),
        (-1, "-000000001"),
        (-999_999_999, "-999999999"),
        (-(2**31), "-2147483648"),
    ],
)
def test_a_number_is_read_as_the_server_wrote_it(number: int, tail: str) -> None:
    name = java_name("u__lock__", number)
    assert name == f"u__lock__{tail}"
    assert KAZOO.parse(name) == Entry(node=name, sequence=number, uuid="u")


@given(st.text("0123456789abcdef-_", max_size=40), st.integers(-(2**31), 2**31 - 1))
def test_what_the_dialect_names_it_reads(prefix: str, number: int) -> None:
    name = java_name(KAZOO.prefix(prefix), number)
    assert KAZOO.parse(name) == Entry(node=name, sequence=number, uuid=prefix)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "config",
        "u__lock__",
        "u__lock__000000001",
        "u__lock__00000000001",
        "u__lock__+000000001",
        "u__lock__-00000001",
        "u__lock__-00000000001",
        "u__lock__0000000001x",
        "u__lock__0000000001\n",
        "u__rlock__0000000001",
        "_c_u-lock-0000000001",
        "u__LOCK__0000000001",
        "u__lock__" + "\N{ARABIC-INDIC DIGIT ONE}" * 10,
    ],
)
def test_what_is_no_candidate_of_the_dialect_is_none(name: str) -> None:
    assert KAZOO.parse(name) is None


def test_the_last_mark_counts() -> None:
    entry = KAZOO.parse("a__lock__0000000001__lock__0000000002")
    assert entry is not None
    assert (entry.uuid, entry.sequence) == ("a__lock__0000000001", 2)


def test_an_infix_is_taken_literally() -> None:
    assert Dialect(name="dots", infix=".x.").parse("u-x-0000000001") is None


@pytest.mark.parametrize(
    ("number", "exhausted"),
    [(-1, True), (0, False), (LAST_SEQUENCE, False), (LAST_SEQUENCE + 1, True), (-(2**31), True)],
)
def test_h34_the_range_in_which_order_can_be_told(number: int, exhausted: bool) -> None:
    assert Entry(node="n", sequence=number, uuid="u").exhausted is exhausted
    assert LAST_SEQUENCE == 2**31 - 2
    assert WORN_SEQUENCE < LAST_SEQUENCE


# --- the roll --------------------------------------------------------------------------------


def names(*numbers: int) -> list[str]:
    return [java_name(f"u{number}__lock__", number) for number in numbers]


def test_order_is_by_number_whatever_stands_before_it() -> None:
    roll = KAZOO.read(["b__lock__0000000002", "z__lock__0000000001", "a__lock__0000000010"])
    assert [entry.uuid for entry in roll.entries] == ["z", "b", "a"]


def test_negative_numbers_come_first_and_exhaust_the_roll() -> None:
    roll = KAZOO.read(names(0, -1, -(2**31), 5))
    assert [entry.sequence for entry in roll.entries] == [-(2**31), -1, 0, 5]
    assert roll.exhausted is not None
    assert roll.exhausted.sequence == -(2**31)
    assert KAZOO.read(names(0, 5)).exhausted is None


def test_h35_strangers_are_kept_aside_and_shown() -> None:
    roll = KAZOO.read(["config", *names(3), "u__rlock__0000000001"])
    assert [entry.sequence for entry in roll.entries] == [3]
    assert roll.strangers == ("config", "u__rlock__0000000001")


DASHED = "01234567-89ab-4def-8123-456789abcdef"

PEERS = {
    f"{KAZOOS}__lock__0000000001": ("kazoo", KAZOOS),
    f"_c_{DASHED}-latch-0000000002": ("curator-latch", KAZOOS),
    f"_c_{DASHED}-lock-0000000003": ("curator-lock", KAZOOS),
    f"_c_{KAZOOS}-lock-0000000004": ("curator-lock", KAZOOS),  # Go's
    "x-72057611460345856-0000000005": ("java", "72057611460345856"),
    f"zkelect-{OURS}-0000000006": ("zkelect", OURS),
    "n_0000000007": ("java-election", ""),
}


def test_h35_candidates_of_all_known_libraries_are_peers_in_one_order() -> None:
    for dialect in DIALECTS.values():
        roll = dialect.read([*reversed(PEERS), "config"])
        assert [entry.node for entry in roll.entries] == list(PEERS)
        assert [(entry.dialect, entry.uuid) for entry in roll.entries] == list(PEERS.values())
        assert roll.dialects == {name for name, _ in PEERS.values()}
        assert roll.strangers == ("config",)


@pytest.mark.parametrize("number", [0, LAST_SEQUENCE, 2**31 - 1, -5, -(2**31)])
def test_h34_a_name_that_is_only_a_number_keeps_its_sign(number: int) -> None:
    (entry,) = KAZOO.read([java_name("n_", number)]).entries
    assert (entry.sequence, entry.exhausted) == (number, not 0 <= number <= LAST_SEQUENCE)


@pytest.mark.parametrize("child", ["n_", "n_config", "n_x0000000001", "node_0000000001"])
def test_h35_what_is_named_nearly_so_is_a_stranger(child: str) -> None:
    assert KAZOO.read([child]).strangers == (child,)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_a_candidate_of_ours_is_ours_in_each_dialect(dialect: Dialect) -> None:
    entry = dialect.parse(java_name(dialect.prefix(OURS), 7))
    assert entry is not None
    assert (entry.uuid, entry.sequence, entry.dialect) == (OURS, 7, dialect.name)
    assert is_ours(entry.uuid)
    roll = KAZOO.read([entry.node])
    assert roll.of(OURS) == (entry,)


def test_curators_names_have_curators_form() -> None:
    assert CURATOR_LATCH.prefix(KAZOOS) == f"_c_{DASHED}-latch-"
    assert CURATOR_LOCK.prefix(KAZOOS) == f"_c_{DASHED}-lock-"


@given(st.lists(st.integers(0, LAST_SEQUENCE), unique=True, min_size=1), st.data())
def test_ahead_are_all_with_a_lower_number_in_order(
    numbers: list[int], data: st.DataObject
) -> None:
    own = data.draw(st.sampled_from(numbers))
    roll = KAZOO.read(names(*numbers))
    entry = roll.find(java_name(f"u{own}__lock__", own))
    assert entry is not None
    ahead = [before.sequence for before in roll.ahead_of(entry)]
    assert ahead == sorted(number for number in numbers if number < own)


def test_nobody_is_ahead_of_the_first_and_nobody_is_found_who_is_not_there() -> None:
    roll = KAZOO.read(names(4, 7))
    assert roll.ahead_of(roll.entries[0]) == ()
    assert roll.ahead_of(roll.entries[1]) == roll.entries[:1]
    assert roll.find("u9__lock__0000000009") is None


def test_of_one_campaign_are_those_with_its_uuid_lowest_first() -> None:
    roll = KAZOO.read(["a__lock__0000000009", "b__lock__0000000003", "a__lock__0000000002"])
    assert [entry.sequence for entry in roll.of("a")] == [2, 9]
    assert roll.of("c") == ()


# --- whose it is -----------------------------------------------------------------------------


def test_ours_is_told_from_kazoos_by_the_version_of_the_uuid() -> None:
    assert is_ours(OURS)
    assert not is_ours(KAZOOS)


def test_kazoos_own_are_never_taken_for_ours() -> None:
    assert not any(is_ours(uuid.uuid4().hex) for _ in range(1000))


@pytest.mark.parametrize(
    "name",
    ["", "u", OURS[:-1], OURS + "0", OURS.upper(), OURS.replace("8def8", "8def7"), OURS + "\n"],
)
def test_what_is_no_uuid_of_ours_is_not(name: str) -> None:
    assert not is_ours(name)
