"""The pure rule: its table row by row, and what holds for every history."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zkelect.errors import (
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    LineageMismatch,
    Refused,
    TokenConflict,
    Unclaimed,
)
from zkelect.stores.fence import Gate, View, guard, raise_mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable

PRESENT_ZXID = 50


def at(czxid: int, *, generation: int = 1, lineage: str = "a", holder: str = "1") -> Token:
    return Token(lineage=lineage * 16, generation=generation, czxid=czxid, holder=holder * 16)


def view(mark: Token | None, floor: Token | None = None) -> View:
    return View(store="test", domain="d", mark=mark, floor=floor)


@attrs.frozen(kw_only=True)
class Row:
    """One row of the table at the top of fence.py, as the claimant at(20) meets it."""

    the_mark_is: str
    mark: Token | None
    floor: Token | None = None
    claim: type[Refused] | None
    write: type[Refused] | None


TABLE = [
    Row(
        the_mark_is="of another lineage",
        mark=at(20, lineage="b"),
        claim=LineageMismatch,
        write=LineageMismatch,
    ),
    Row(
        the_mark_is="of another lineage, and behind the floor",
        mark=at(10, lineage="b"),
        floor=at(15),
        claim=LineageMismatch,
        write=LineageMismatch,
    ),
    Row(
        the_mark_is="in the token's place, of another holder",
        mark=at(20, holder="2"),
        claim=TokenConflict,
        write=TokenConflict,
    ),
    Row(
        the_mark_is="behind the floor, the token above it",
        mark=at(10),
        floor=at(15),
        claim=None,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="gone, the token above the floor",
        mark=None,
        floor=at(15),
        claim=None,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="behind the floor, which is the token",
        mark=at(10),
        floor=at(20),
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="the token, and behind the floor",
        mark=at(20),
        floor=at(25),
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="gone, the floor of another lineage",
        mark=None,
        floor=at(15, lineage="b"),
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="ours, the floor of another lineage",
        mark=at(20),
        floor=at(15, lineage="b"),
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="the floor's twin",
        mark=at(15),
        floor=at(15, holder="2"),
        claim=None,
        write=FenceStateLost,
    ),
    Row(the_mark_is="missing", mark=None, claim=None, write=Unclaimed),
    Row(the_mark_is="lower", mark=at(10), claim=None, write=Unclaimed),
    Row(the_mark_is="lower, and the floor", mark=at(10), floor=at(10), claim=None, write=Unclaimed),
    Row(
        the_mark_is="of a lower generation",
        mark=at(99, generation=0),
        claim=None,
        write=Unclaimed,
    ),
    Row(the_mark_is="the token itself", mark=at(20), claim=None, write=None),
    Row(the_mark_is="the token and the floor", mark=at(20), floor=at(20), claim=None, write=None),
    Row(
        the_mark_is="above the ensemble's zxid",
        mark=at(PRESENT_ZXID + 1),
        claim=EnsembleWentBack,
        write=Fenced,
    ),
    Row(
        the_mark_is="above the ensemble's generation",
        mark=at(5, generation=2),
        claim=EnsembleWentBack,
        write=Fenced,
    ),
    Row(the_mark_is="higher", mark=at(30), claim=Fenced, write=Fenced),
    Row(the_mark_is="at the present zxid", mark=at(PRESENT_ZXID), claim=Fenced, write=Fenced),
]

every_row = pytest.mark.parametrize("row", TABLE, ids=[row.the_mark_is for row in TABLE])


def verdict(judge: Callable[[], object]) -> type[Refused] | None:
    try:
        judge()
    except Refused as refusal:
        return type(refusal)
    return None


@every_row
def test_a_claim_is_judged_as_the_table_says(row: Row) -> None:
    seen = view(row.mark, row.floor)
    assert verdict(lambda: raise_mark(seen, at(20), zxid=PRESENT_ZXID)) is row.claim


@every_row
def test_a_write_is_judged_as_the_table_says(row: Row) -> None:
    assert verdict(lambda: guard(view(row.mark, row.floor), at(20))) is row.write


@pytest.mark.parametrize("mark", [at(PRESENT_ZXID + 1), at(5, generation=2)])
def test_who_cannot_tell_the_zxid_is_fenced(mark: Token) -> None:
    assert verdict(lambda: raise_mark(view(mark), at(20))) is Fenced


def test_a_refusal_carries_what_was_compared() -> None:
    with pytest.raises(FenceStateLost) as caught:
        guard(view(at(10), at(20)), at(20))
    refusal = caught.value
    assert (refusal.store, refusal.domain) == ("test", "d")
    assert (refusal.token, refusal.mark) == (at(20), at(10))
    assert str(at(20)) in str(refusal)


# --- what holds for every mark and token ------------------------------------------------------

tokens = st.builds(
    at,
    st.integers(0, 6),
    generation=st.integers(0, 2),
    lineage=st.sampled_from("ab"),
    holder=st.sampled_from("12"),
)
one_lineage = st.builds(at, st.integers(0, 9), generation=st.integers(0, 2))
views = st.builds(view, st.none() | tokens, st.none() | tokens)
zxids = st.none() | st.integers(0, 7)


@given(views, tokens, zxids)
@example(view(None), at(0), None)
def test_a_claim_that_passes_raises_the_mark_to_its_token(
    seen: View, token: Token, zxid: int | None
) -> None:
    if verdict(lambda: raise_mark(seen, token, zxid=zxid)) is None:
        assert raise_mark(seen, token, zxid=zxid) == token
        assert seen.mark is None or seen.mark <= token


@given(views, tokens)
def test_a_write_passes_only_under_its_own_mark(seen: View, token: Token) -> None:
    if verdict(lambda: guard(seen, token)) is None:
        assert seen.mark == token


@given(views, tokens, zxids)
def test_after_a_claim_the_same_token_claims_and_writes(
    seen: View, token: Token, zxid: int | None
) -> None:
    if verdict(lambda: raise_mark(seen, token, zxid=zxid)) is None:
        claimed = view(token, token)
        assert raise_mark(claimed, token, zxid=zxid) == token
        assert verdict(lambda: guard(claimed, token)) is None


@given(st.lists(one_lineage), st.lists(one_lineage))
def test_the_mark_does_not_depend_on_the_order_of_claims(
    claims: list[Token], others: list[Token]
) -> None:
    def mark_after(order: list[Token]) -> Token | None:
        mark: Token | None = None
        for token in order:
            if verdict(partial(raise_mark, view(mark), token)) is None:
                mark = token
        return mark

    assert mark_after(claims + others) == mark_after(others + claims)
    assert mark_after(claims) == max(claims, default=None)


# --- what holds for every history -------------------------------------------------------------

acts = st.lists(st.tuples(st.sampled_from(["claim", "write", "restore"]), one_lineage), max_size=30)


@given(acts)
def test_in_no_history_does_a_write_of_a_lower_token_follow_a_higher_one(
    history: list[tuple[str, Token]],
) -> None:
    """One store whose mark may be set back at any moment, to any older state."""
    gate, mark, accepted = Gate(store="test", domain="d"), None, list[Token]()

    def claim(token: Token) -> None:
        nonlocal mark
        mark = gate.claim(mark, token)
        gate.confirm(mark)

    def write(token: Token) -> None:
        gate.guard(mark, token)
        accepted.append(token)

    def restore(token: Token) -> None:
        nonlocal mark
        mark = None if mark is None or mark < token else token

    perform = {"claim": claim, "write": write, "restore": restore}
    for act, token in history:
        verdict(partial(perform[act], token))
    assert accepted == sorted(accepted)


def test_the_floor_never_falls() -> None:
    gate = Gate(store="test", domain="d")
    for mark in (at(10), at(20), at(15)):
        gate.confirm(mark)
    assert gate.floor == at(20)
