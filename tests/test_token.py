"""The fencing token: its order, its wire form, and what it refuses."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.errors import InvalidArgument, LineageMismatch, TokenConflict
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable

LINEAGE = "1234567890abcdef"
HOLDER = "fedcba0987654321"
WIRE = f"00000001-00000000000000ff-{LINEAGE}-{HOLDER}"

hex16 = st.text("0123456789abcdef", min_size=16, max_size=16)
uint32 = st.integers(0, 2**32 - 1)
uint64 = st.integers(0, 2**64 - 1)
tokens = st.builds(Token, lineage=hex16, generation=uint32, czxid=uint64, holder=hex16)

comparisons = pytest.mark.parametrize(
    "compare", [operator.lt, operator.le, operator.gt, operator.ge]
)


def at(czxid: int, *, generation: int = 1, lineage: str = LINEAGE, holder: str = HOLDER) -> Token:
    return Token(lineage=lineage, generation=generation, czxid=czxid, holder=holder)


# --- wire form -----------------------------------------------------------------------------


def test_the_wire_form_is_fixed_width_hex() -> None:
    assert str(at(255)) == WIRE


@given(tokens)
def test_parse_is_the_inverse_of_str(token: Token) -> None:
    assert Token.parse(str(token)) == token
    assert len(str(token)) == len(WIRE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        WIRE.upper(),
        f" {WIRE}",
        f"{WIRE}\n",
        WIRE[:-1],
        f"{WIRE}0",
        WIRE.replace("-", ""),
        WIRE.replace("1", "x"),
        WIRE.replace("0", "\N{ARABIC-INDIC DIGIT ZERO}"),
    ],
)
def test_nothing_but_the_wire_form_is_read(text: str) -> None:
    with pytest.raises(InvalidArgument, match="the form is gggggggg-"):
        Token.parse(text)


# --- order ---------------------------------------------------------------------------------


@given(uint32, uint64, uint32, uint64)
def test_within_a_lineage_text_order_is_token_order(
    generation: int, czxid: int, other_generation: int, other_czxid: int
) -> None:
    one, other = at(czxid, generation=generation), at(other_czxid, generation=other_generation)
    assert (one < other) == (str(one) < str(other))
    assert (one == other) == (str(one) == str(other))
    assert (one < other) == ((generation, czxid) < (other_generation, other_czxid))


def test_the_generation_comes_before_the_czxid() -> None:
    assert at(900, generation=1) < at(5, generation=2)


@pytest.mark.parametrize("base", [2**53, 2**54, 2**63, 2**64 - 2])
def test_h55_neighbours_above_2_to_the_53_are_told_apart(base: int) -> None:
    """A float, and so a JSON or Lua number, would make them one."""
    low, high = at(base), at(base + 1)
    assert low < high
    assert str(low) < str(high)
    assert Token.parse(str(low)) != Token.parse(str(high))
    assert len({low, high}) == 2


@given(st.lists(st.builds(at, uint64, generation=uint32)))
def test_sorting_is_by_generation_and_czxid(many: list[Token]) -> None:
    by_number = sorted(many, key=lambda token: (token.generation, token.czxid))
    assert sorted(many) == by_number
    assert sorted(many, key=str) == by_number


@comparisons
def test_two_lineages_cannot_be_compared(compare: Callable[[Token, Token], bool]) -> None:
    with pytest.raises(LineageMismatch) as caught:
        compare(at(1), at(2, lineage="f" * 16))
    assert (caught.value.token, caught.value.mark) == (at(1), at(2, lineage="f" * 16))


@comparisons
def test_one_place_and_two_holders_is_a_conflict(compare: Callable[[Token, Token], bool]) -> None:
    with pytest.raises(TokenConflict):
        compare(at(1), at(1, holder="f" * 16))


def test_equality_never_raises() -> None:
    assert at(1) == at(1)
    assert at(1) != at(1, lineage="f" * 16)
    assert at(1) != at(1, holder="f" * 16)
    assert not operator.eq(at(1), str(at(1)))


@comparisons
def test_a_token_is_compared_with_tokens_only(compare: Callable[[Any, Any], bool]) -> None:
    with pytest.raises(TypeError):
        compare(at(1), str(at(2)))


# --- issuing and fields --------------------------------------------------------------------


def issue(session_id: int, *, lineage: str = LINEAGE) -> Token:
    return Token.issue(lineage=lineage, generation=0, czxid=5, session_id=session_id)


def test_the_holder_is_the_session_in_this_lineage() -> None:
    assert issue(7) == issue(7)
    assert issue(7).holder != issue(8).holder
    assert issue(7).holder != issue(7, lineage="f" * 16).holder


@pytest.mark.parametrize("session_id", [7, 0x1000_2D7A_66B0_0003, -1])
def test_the_session_id_is_not_in_the_token(session_id: int) -> None:
    """Who knows it can close the session."""
    assert f"{session_id & (2**64 - 1):016x}" not in str(issue(session_id))


def test_a_session_id_is_one_whether_read_as_signed_or_unsigned() -> None:
    assert issue(-1) == issue(2**64 - 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("generation", -1),
        ("generation", 2**32),
        ("czxid", -1),
        ("czxid", 2**64),
        ("lineage", ""),
        ("lineage", "F" * 16),
        ("lineage", "f" * 15),
        ("lineage", "f" * 16 + "\n"),
        ("holder", "g" * 16),
        ("holder", "f" * 17),
    ],
)
def test_a_field_outside_its_range_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=field) as caught:
        attrs.evolve(at(1), **{field: value})
    assert caught.value.value == value


def test_a_token_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        at(1).czxid = 2  # type: ignore[misc]  # the very thing that is tried
