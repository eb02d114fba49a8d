"""The history: terms that have ended and acts of operators, neither at the cost of the other."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from test_record import garbage, term, terms, token

from zkelect.core.acts import Act, ActKind
from zkelect.core.history import (
    ACTS_SIZE,
    HISTORY_LENGTH,
    HISTORY_SIZE,
    decode_events,
    decode_history,
    extend_history,
    is_closed,
)
from zkelect.core.paths import NAME_LIMIT
from zkelect.core.record import Term, encode_term
from zkelect.token import Token

JUTE_MAXBUFFER = 0xFFFFF
"""The most bytes a server takes in one request, unless configured (jute.maxbuffer)."""

LETTERS = ["x", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{PILE OF POO}"]

acts = st.builds(
    Act,
    kind=st.sampled_from(ActKind),
    by=st.text(),
    why=st.text(),
    target=st.text(),
    at=st.integers(0, 2**32) | st.floats(0, 2.0**32),
)


def act(at: float, **changes: Any) -> Act:
    return evolve(Act(kind=ActKind.PAUSE, by="ada@host-a", why="a disk", at=at), **changes)


def written(*history: Term | Act) -> bytes:
    return reduce(extend_history, history, b"")


def longest(letter: str) -> str:
    return letter * (NAME_LIMIT // len(letter.encode()))


@given(st.lists(terms, max_size=8, unique_by=lambda term: term.token))
def test_a_history_reads_back_as_it_was(history: list[Term]) -> None:
    assert decode_history(written(*history)) == tuple(history)


@given(st.lists(terms, max_size=6, unique_by=lambda term: term.token), st.lists(acts, max_size=6))
def test_terms_and_acts_read_back_in_the_order_in_which_they_were_written(
    history: list[Term], done: list[Act]
) -> None:
    mixed: list[Term | Act] = [event for pair in zip(history, done, strict=False) for event in pair]
    data = written(*mixed)
    assert decode_events(data) == tuple(mixed)
    assert decode_history(data) == tuple(history[: len(done)])


# --- what is kept ----------------------------------------------------------------------------


def test_the_history_keeps_the_last_hundred_terms() -> None:
    history = decode_history(written(*map(term, range(HISTORY_LENGTH + 5))))
    assert [old.token.czxid for old in history] == list(range(5, HISTORY_LENGTH + 5))
    assert HISTORY_LENGTH == 100


def test_the_history_keeps_the_last_hundred_acts_as_well() -> None:
    history: list[Term | Act] = [
        *map(term, range(HISTORY_LENGTH)),
        *map(act, range(HISTORY_LENGTH + 5)),
    ]
    kept = decode_events(written(*history))
    assert kept == (*history[:HISTORY_LENGTH], *history[-HISTORY_LENGTH:])


def test_terms_do_not_push_acts_out() -> None:
    kept = decode_events(written(act(1), *map(term, range(HISTORY_LENGTH + 5)), act(2)))
    assert [event for event in kept if isinstance(event, Act)] == [act(1), act(2)]
    assert kept[0] == act(1)
    assert kept[-1] == act(2)


def test_a_term_of_the_same_token_is_replaced() -> None:
    ended = term(1, ended=5.0, reason="died")
    assert decode_events(written(term(1), act(1), term(2), ended)) == (act(1), term(2), ended)


def test_an_act_that_is_done_twice_is_written_twice() -> None:
    assert decode_events(written(act(1), act(1))) == (act(1), act(1))


def test_only_the_end_of_a_term_closes_it() -> None:
    data = written(act(1, target=str(token(7))), term(6))
    assert is_closed(data, token(6))
    assert not is_closed(data, token(7))


@pytest.mark.parametrize("letter", LETTERS)
def test_a_history_of_the_longest_names_fits_into_a_request(letter: str) -> None:
    history = tuple(term(czxid, name=longest(letter)) for czxid in range(HISTORY_LENGTH))
    data = written(*history)
    assert len(data) <= HISTORY_SIZE < JUTE_MAXBUFFER // 2
    kept = decode_history(data)
    assert kept == history[-len(kept) :]
    assert len(kept) >= 10


@pytest.mark.parametrize("letter", LETTERS)
def test_the_longest_acts_leave_room_for_terms(letter: str) -> None:
    text = longest(letter)
    terms_of = [term(czxid, name="host-a.example.com") for czxid in range(HISTORY_LENGTH)]
    done = [act(at, by=text, why=text, target=text) for at in range(HISTORY_LENGTH)]
    data = written(*terms_of, *done)
    assert len(data) <= HISTORY_SIZE
    assert decode_history(data) == tuple(terms_of)
    kept = decode_events(data)[HISTORY_LENGTH:]
    assert kept == tuple(done[-len(kept) :])
    assert kept, "the last one is kept, whatever it says"


def test_long_terms_leave_acts_their_room() -> None:
    done = [act(at) for at in range(HISTORY_LENGTH)]
    data = written(*done, *(term(czxid, name=longest("x")) for czxid in range(HISTORY_LENGTH)))
    assert len(data) <= HISTORY_SIZE
    assert decode_events(data)[:HISTORY_LENGTH] == tuple(done)
    assert len(decode_history(data)) * NAME_LIMIT > HISTORY_SIZE - 2 * ACTS_SIZE


def test_a_history_of_usual_names_is_not_cut() -> None:
    history = tuple(term(czxid, name="host-a.example.com") for czxid in range(HISTORY_LENGTH))
    assert decode_history(written(*history)) == history


def test_a_history_is_extended_without_reading_its_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred tokens to parse, while the heir waits: 8 ms of it."""
    data = written(*map(term, range(HISTORY_LENGTH)))
    monkeypatch.setattr("zkelect.core.history.read_term", pytest.fail)
    monkeypatch.setattr("zkelect.core.history.read_act", pytest.fail)
    monkeypatch.setattr(Token, "parse", pytest.fail)
    extend_history(data, term(HISTORY_LENGTH))


# --- what others have written ----------------------------------------------------------------


@pytest.mark.parametrize("data", garbage, ids=lambda data: repr(data[:12]))
def test_a_history_that_is_garbage_begins_anew(data: bytes) -> None:
    assert decode_events(data) == decode_history(data) == ()
    assert decode_history(extend_history(data, term(1))) == (term(1),)


def test_a_history_from_before_there_were_acts_is_read_and_extended() -> None:
    rows = [json.loads(encode_term(term(czxid))) for czxid in (1, 2)]
    data = json.dumps(rows).encode()
    assert decode_events(data) == (term(1), term(2))
    assert decode_events(extend_history(data, act(3))) == (term(1), term(2), act(3))


def test_what_is_neither_a_term_nor_an_act_is_left_out() -> None:
    rows = [json.loads(encode_term(term(1))), {"token": 7}, "x", json.loads(encode_term(term(2)))]
    assert decode_history(json.dumps(rows).encode()) == (term(1), term(2))
    assert decode_events(json.dumps(rows).encode()) == (term(1), term(2))


def test_what_is_no_row_is_not_carried_over() -> None:
    rows = ["x", 5, {"token": ["deep"]}, {"token": "of a later version", "colour": "blue"}]
    data = extend_history(json.dumps(rows).encode(), term(1))
    assert json.loads(data)[:-1] == rows[-1:]
    assert decode_history(data) == (term(1),)


def test_an_act_is_a_row_that_a_person_can_read() -> None:
    (row,) = json.loads(written(act(5.5, target="host-b")))
    assert row == {
        "act": "pause",
        "by": "ada@host-a",
        "why": "a disk",
        "target": "host-b",
        "at": 5.5,
    }


@pytest.mark.parametrize(
    ("row", "read"),
    [
        ({"act": "pause"}, Act(kind=ActKind.PAUSE)),
        ({"act": "evict", "by": 7, "why": None, "at": "now"}, Act(kind=ActKind.EVICT)),
        ({"act": "resume", "at": -1}, Act(kind=ActKind.RESUME)),
        ({"act": "resume", "at": 1e300}, Act(kind=ActKind.RESUME)),
        ({"act": "adopt", "at": 5, "colour": "blue"}, Act(kind=ActKind.ADOPT, at=5)),
        ({"act": "promote", "by": "ada"}, None),
        ({"act": ["pause"]}, None),
        ({"act": "pause", "token": "x"}, None),
        ({"by": "ada"}, None),
        ("pause", None),
    ],
)
def test_of_a_row_that_somebody_else_wrote_what_can_be_read_is(
    row: object, read: Act | None
) -> None:
    assert decode_events(json.dumps([row]).encode()) == (() if read is None else (read,))


def test_an_act_says_what_who_and_why() -> None:
    assert str(act(5)) == "pause by 'ada@host-a': a disk"
    evicted = act(5, kind=ActKind.EVICT, why="", target="host-b")
    assert str(evicted) == "evict 'host-b' by 'ada@host-a'"
