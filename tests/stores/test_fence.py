"""The pure rule: its table row by row, and what holds for every history."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zkelect.errors import (
    DomainTaken,
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LineageMismatch,
    Refused,
    TokenConflict,
    Unclaimed,
)
from zkelect.stores.fence import Claim, Gate, View, guard, raise_mark
from zkelect.stores.mark import Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable

PRESENT_ZXID = 50


def at(czxid: int, *, generation: int = 1, lineage: str = "a", holder: str = "1") -> Token:
    return Token(lineage=lineage * 16, generation=generation, czxid=czxid, holder=holder * 16)


ELECTION = "/elections/d"
HERE, ELSEWHERE = "server 1", "server 2"


def made(token: Token | None, *, election: str = ELECTION, origin: str = HERE) -> Mark | None:
    return None if token is None else Mark(token=token, election=election, origin=origin)


def view(token: Token | None, floor: Token | None = None) -> View:
    return View(store="test", domain="d", mark=made(token), floor=floor, origin=HERE)


def raised(seen: View, token: Token, *, zxid: int | None = None, initialize: bool = False) -> Mark:
    claim = Claim(token=token, election=ELECTION, holder="host-a", zxid=zxid, initialize=initialize)
    return raise_mark(seen, claim)


@attrs.frozen(kw_only=True)
class Row:
    """One row of the table at the top of fence.py, as the claimant at(20) meets it."""

    the_mark_is: str
    mark: Token | None
    floor: Token | None = None
    election: str = ELECTION
    origin: str = HERE
    volatile: bool = False
    initialize: bool = False
    claim: type[Refused] | None
    write: type[Refused] | None

    @property
    def view(self) -> View:
        mark = made(self.mark, election=self.election, origin=self.origin)
        return attrs.evolve(view(None, self.floor), mark=mark, volatile=self.volatile)


TABLE = [
    Row(
        the_mark_is="of another election",
        mark=at(10, lineage="b"),
        election="/elections/other",
        claim=DomainTaken,
        write=DomainTaken,
    ),
    Row(
        the_mark_is="of an election unknown",
        mark=at(10),
        election="",
        claim=None,
        write=Unclaimed,
    ),
    Row(
        the_mark_is="lower, of another server",
        mark=at(10),
        origin=ELSEWHERE,
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="lower, of another server, and the claim initializes",
        mark=at(10),
        origin=ELSEWHERE,
        initialize=True,
        claim=None,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="the token, of another server, and the claim initializes",
        mark=at(20),
        origin=ELSEWHERE,
        initialize=True,
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="higher, of another server, and the claim initializes",
        mark=at(30),
        origin=ELSEWHERE,
        initialize=True,
        claim=Fenced,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="missing in a volatile store",
        mark=None,
        volatile=True,
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="missing in a volatile store, and the claim initializes",
        mark=None,
        volatile=True,
        initialize=True,
        claim=None,
        write=FenceStateLost,
    ),
    Row(
        the_mark_is="missing in a volatile store that had the token, and the claim initializes",
        mark=None,
        floor=at(20),
        volatile=True,
        initialize=True,
        claim=FenceStateLost,
        write=FenceStateLost,
    ),
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
    claim = partial(raised, row.view, at(20), zxid=PRESENT_ZXID, initialize=row.initialize)
    assert verdict(claim) is row.claim


@every_row
def test_a_write_is_judged_as_the_table_says(row: Row) -> None:
    assert verdict(lambda: guard(row.view, at(20), election=ELECTION)) is row.write


@pytest.mark.parametrize("mark", [at(PRESENT_ZXID + 1), at(5, generation=2)])
def test_who_cannot_tell_the_zxid_is_fenced(mark: Token) -> None:
    assert verdict(lambda: raised(view(mark), at(20))) is Fenced


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
    if verdict(lambda: raised(seen, token, zxid=zxid)) is None:
        assert raised(seen, token, zxid=zxid).token == token
        assert seen.token is None or seen.token <= token


@given(views, tokens)
def test_a_write_passes_only_under_its_own_mark(seen: View, token: Token) -> None:
    if verdict(lambda: guard(seen, token)) is None:
        assert seen.token == token


@given(views, tokens, zxids)
def test_after_a_claim_the_same_token_claims_and_writes(
    seen: View, token: Token, zxid: int | None
) -> None:
    if verdict(lambda: raised(seen, token, zxid=zxid)) is None:
        claimed = view(token, token)
        assert raised(claimed, token, zxid=zxid).token == token
        assert verdict(lambda: guard(claimed, token)) is None


@given(st.lists(one_lineage), st.lists(one_lineage))
def test_the_mark_does_not_depend_on_the_order_of_claims(
    claims: list[Token], others: list[Token]
) -> None:
    def mark_after(order: list[Token]) -> Token | None:
        mark: Token | None = None
        for token in order:
            if verdict(partial(raised, view(mark), token)) is None:
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
    gate, accepted = Gate(store="test", domain="d"), list[Token]()
    mark: Mark | None = None

    def claim(token: Token) -> None:
        nonlocal mark
        mark = gate.claim(mark, token)
        gate.confirm(mark)

    def write(token: Token) -> None:
        gate.guard(mark, token)
        accepted.append(token)

    def restore(token: Token) -> None:
        nonlocal mark
        mark = None if mark is None or mark.token < token else Mark(token=token)

    perform = {"claim": claim, "write": write, "restore": restore}
    for act, token in history:
        verdict(partial(perform[act], token))
    assert accepted == sorted(accepted)


def test_the_floor_never_falls() -> None:
    gate = Gate(store="test", domain="d")
    for mark in (at(10), at(20), at(15)):
        gate.confirm(Mark(token=mark))
    assert gate.floor == at(20)


# --- the mark ----------------------------------------------------------------------------------

marks = st.builds(
    Mark, token=tokens, election=st.text(), holder=st.text(), origin=st.text(max_size=9)
)


@given(marks)
def test_a_mark_is_read_as_it_was_written(mark: Mark) -> None:
    assert Mark.parse(str(mark)) == mark == Mark.parse(str(mark).encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"token":5,"election":"","holder":"","origin":""}',
        str(made(at(5))).replace(str(at(5)), "x" * 59),
        str(made(at(5))).replace('"server 1"', "1"),
        str(made(at(5))).replace("origin", "origen"),
        "[" * 100_000,
    ],
)
def test_what_is_no_mark_is_told(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"mark|token"):
        Mark.parse(text)


def test_h55_a_mark_keeps_all_bits() -> None:
    """JSON numbers lose what is above 2^53."""
    one, other = at(2**63 + 1), at(2**63 + 2)
    assert Mark.parse(str(Mark(token=one))).token < Mark.parse(str(Mark(token=other))).token


def test_a_long_name_is_cut_and_compared_as_cut() -> None:
    path = "/" + "x" * 300
    claim = Claim(token=at(20), election=path, holder="y" * 300)
    mark = raise_mark(view(None), claim)
    assert (len(mark.election), len(mark.holder)) == (255, 255)
    seen = attrs.evolve(view(None), mark=mark)
    guard(seen, at(20), election=path)


def test_a_bare_token_leaves_the_domain_to_its_election() -> None:
    claimed = raise_mark(view(at(10)), Claim(token=at(20)))
    assert claimed.election == ELECTION


def test_a_gate_learns_no_floor_from_another_server() -> None:
    gate = Gate(store="test", domain="d")
    for _ in range(2):
        with pytest.raises(FenceStateLost, match=r"server 2.*server 1"):
            gate.claim(made(at(30), origin=ELSEWHERE), at(40), origin=HERE)
    assert gate.floor is None
    assert gate.claim(made(at(30), origin=ELSEWHERE), at(40), origin=HERE, initialize=True) == (
        Mark(token=at(40), election=ELECTION, origin=HERE)
    )
