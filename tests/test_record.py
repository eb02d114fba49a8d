"""What is written beside an election: it reads back as it was, and garbage is nobody's term."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.paths import NAME_LIMIT
from zkelect.core.pause import Pause
from zkelect.core.record import (
    HISTORY_LENGTH,
    HISTORY_SIZE,
    Record,
    Term,
    TermPhase,
    adopted,
    decode_history,
    decode_record,
    decode_term,
    encode_record,
    encode_term,
    extend_history,
    record_path,
)
from zkelect.token import Token

UUID = "0123456789abcdef0123456789abcdef"
PAUSE = Pause(by="ada@host-a", why="the disk is being changed", since=1764500000.0)
JUTE_MAXBUFFER = 0xFFFFF
"""The most bytes a server takes in one request, unless configured (jute.maxbuffer)."""


def token(czxid: int) -> Token:
    return Token.issue(lineage=UUID[:16], generation=1, czxid=czxid, session_id=7)


def term(czxid: int, **changes: Any) -> Term:
    return evolve(Term(token=token(czxid), node="n__lock__0000000001", name="host-a"), **changes)


terms = st.builds(
    Term,
    token=st.integers(0, 2**64 - 1).map(token),
    node=st.text(),
    name=st.text(),
    address=st.text(),
    phase=st.sampled_from(TermPhase),
    since=st.floats(0, 1e11),
    count=st.integers(1, 2**63),
    ended=st.none() | st.floats(0, 1e11),
    reason=st.none() | st.text(),
)
pauses = st.builds(
    Pause, by=st.text(), why=st.text(), since=st.integers(0, 2**32) | st.floats(0, 2.0**32)
)
garbage = [
    b"",
    b"null",
    b"7",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b"not json",
    b'{"uuid":',
    b"[" * 100_000,
    b"9" * 5_000,
]


# --- the record ------------------------------------------------------------------------------


@given(
    uuid=st.text("0123456789abcdef", min_size=32, max_size=32),
    generation=st.integers(0, 2**32 - 1),
    paused=st.none() | pauses,
    version=st.integers(0, 2**31 - 1),
)
def test_a_record_reads_back_as_it_was(
    uuid: str, generation: int, paused: Pause | None, version: int
) -> None:
    record = Record(uuid=uuid, generation=generation, paused=paused, version=version)
    read = decode_record(encode_record(record), version)
    assert read == record
    assert read is not None
    assert read.version == version


def test_a_record_is_json_that_a_person_can_read() -> None:
    assert encode_record(Record(uuid=UUID, generation=3, version=9)) == (
        b'{"uuid":"' + UUID.encode() + b'","generation":3,"paused":null}'
    )


def test_the_lineage_is_the_first_half_of_the_uuid() -> None:
    assert Record(uuid=UUID).lineage == UUID[:16]


def test_the_version_is_no_part_of_the_record() -> None:
    record = Record(uuid=UUID)
    assert record == evolve(record, version=9)
    assert record != evolve(record, generation=2)
    assert record != evolve(record, paused=PAUSE)


def test_a_pause_does_not_begin_another_history() -> None:
    record = Record(uuid=UUID)
    assert record.is_same_history(evolve(record, version=9, paused=PAUSE))
    assert not record.is_same_history(evolve(record, generation=2))
    assert not record.is_same_history(evolve(record, uuid=UUID[::-1]))
    assert not record.is_same_history(None)


def test_an_adopted_election_stays_paused() -> None:
    record = adopted(Record(uuid=UUID, paused=PAUSE), [token(9)], zxid=5)
    assert record is not None
    assert (record.generation, record.paused) == (2, PAUSE)


@pytest.mark.parametrize("data", garbage, ids=lambda data: repr(data[:12]))
def test_garbage_is_no_record(data: bytes) -> None:
    assert decode_record(data, 0) is None


@pytest.mark.parametrize(
    ("uuid", "generation"),
    [
        (UUID[:-1], 1),
        (UUID + "0", 1),
        (UUID.upper(), 1),
        ("z" * 32, 1),
        ("\N{ARABIC-INDIC DIGIT ONE}" * 32, 1),
        (7, 1),
        (None, 1),
        (UUID, "1"),
        (UUID, 1.0),
        (UUID, True),
        (UUID, None),
        (UUID, -1),
        (UUID, 2**32),
    ],
)
def test_a_record_that_no_token_can_be_made_of_is_none(uuid: object, generation: object) -> None:
    data = json.dumps({"uuid": uuid, "generation": generation}).encode()
    assert decode_record(data, 0) is None


# --- the pause in it -------------------------------------------------------------------------


@pytest.mark.parametrize("absent", [{}, {"paused": None}, {"paused": False}])
def test_a_record_without_a_pause_is_not_paused(absent: dict[str, object]) -> None:
    record = decode_record(json.dumps({"uuid": UUID, "generation": 1, **absent}).encode(), 0)
    assert record == Record(uuid=UUID)


@pytest.mark.parametrize(
    ("written", "pause"),
    [
        ("true", Pause(by="")),
        ('"by me"', Pause(by="")),
        ("{}", Pause(by="")),
        ('{"by":"ada","why":7,"since":"now"}', Pause(by="ada")),
        ('{"by":null,"why":"w","since":-1}', Pause(by="", why="w")),
        ('{"by":"ada","since":NaN}', Pause(by="ada")),
        ('{"by":"ada","since":1e300,"until":5}', Pause(by="ada")),
        ('{"by":"ada","since":5}', Pause(by="ada", since=5)),
    ],
)
def test_a_pause_written_by_hand_is_one_in_whatever_form(written: str, pause: Pause) -> None:
    record = decode_record(f'{{"uuid":"{UUID}","generation":1,"paused":{written}}}'.encode(), 0)
    assert record == Record(uuid=UUID, paused=pause)
    assert str(pause).startswith("paused by ")


def test_a_pause_says_by_whom_since_when_and_why() -> None:
    told = "paused by 'ada@host-a' since 2025-11-30 10:53:20 UTC"
    assert str(PAUSE) == f"{told}: the disk is being changed"
    assert str(evolve(PAUSE, why="")) == told


def test_the_record_stands_beside_the_parent_not_in_it() -> None:
    assert record_path("/elections/billing") == "/elections/billing.zkelect"


def written(*history: Term) -> bytes:
    return reduce(extend_history, history, b"")


# --- terms -----------------------------------------------------------------------------------


@given(terms)
def test_a_term_reads_back_as_it_was(written: Term) -> None:
    assert decode_term(encode_term(written)) == written


@given(st.lists(terms, max_size=8, unique_by=lambda term: term.token))
def test_a_history_reads_back_as_it_was(history: list[Term]) -> None:
    assert decode_history(written(*history)) == tuple(history)


def test_what_a_later_version_adds_to_a_term_is_passed_over() -> None:
    fields = {**json.loads(encode_term(term(5))), "colour": "blue"}
    assert decode_term(json.dumps(fields).encode()) == term(5)


@pytest.mark.parametrize("data", garbage, ids=lambda data: repr(data[:12]))
def test_garbage_is_no_term_and_no_history(data: bytes) -> None:
    assert decode_term(data) is None
    assert decode_history(data) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("token", "0-0-0-0"),
        ("token", 7),
        ("token", None),
        ("phase", "sleeping"),
        ("phase", []),
        ("node", 7),
        ("name", None),
        ("name", ["host-a"]),
        ("address", 7),
        ("since", "yesterday"),
        ("count", "many"),
        ("count", 1.5),
        ("ended", "never"),
        ("reason", 7),
    ],
)
def test_a_term_with_a_field_of_another_kind_is_none(field: str, value: object) -> None:
    fields = {**json.loads(encode_term(term(5))), field: value}
    assert decode_term(json.dumps(fields).encode()) is None


@pytest.mark.parametrize("field", ["token", "node", "name"])
def test_a_term_that_lacks_what_it_must_have_is_none(field: str) -> None:
    fields = json.loads(encode_term(term(5)))
    del fields[field]
    assert decode_term(json.dumps(fields).encode()) is None


def test_what_is_no_term_is_left_out_of_the_history() -> None:
    rows = [json.loads(encode_term(term(1))), {"token": 7}, "x", json.loads(encode_term(term(2)))]
    assert decode_history(json.dumps(rows).encode()) == (term(1), term(2))


def test_numbers_beyond_a_float_survive() -> None:
    big = term(2**63 + 1, count=2**53 + 1)
    read = decode_term(encode_term(big))
    assert read is not None
    assert (read.token.czxid, read.count) == (2**63 + 1, 2**53 + 1)


# --- the history -----------------------------------------------------------------------------


def test_the_history_keeps_the_last_hundred_terms() -> None:
    history = decode_history(written(*map(term, range(HISTORY_LENGTH + 5))))
    assert [old.token.czxid for old in history] == list(range(5, HISTORY_LENGTH + 5))
    assert HISTORY_LENGTH == 100


def test_a_term_of_the_same_token_is_replaced() -> None:
    ended = term(1, ended=5.0, reason="died")
    assert decode_history(written(term(1), term(2), ended)) == (term(2), ended)


def test_what_is_no_row_is_not_carried_over() -> None:
    rows = ["x", 5, {"token": ["deep"]}, {"token": "of a later version", "colour": "blue"}]
    data = extend_history(json.dumps(rows).encode(), term(1))
    assert json.loads(data)[:-1] == rows[-1:]
    assert decode_history(data) == (term(1),)


@pytest.mark.parametrize("data", garbage, ids=lambda data: repr(data[:12]))
def test_a_history_that_is_garbage_begins_anew(data: bytes) -> None:
    assert decode_history(extend_history(data, term(1))) == (term(1),)


def test_a_history_is_extended_without_reading_its_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred tokens to parse, while the heir waits: 8 ms of it."""
    data = written(*map(term, range(HISTORY_LENGTH)))
    monkeypatch.setattr("zkelect.core.record._term_of", pytest.fail)
    monkeypatch.setattr(Token, "parse", pytest.fail)
    extend_history(data, term(HISTORY_LENGTH))


@pytest.mark.parametrize("letter", ["x", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{PILE OF POO}"])
def test_a_history_of_the_longest_names_fits_into_a_request(letter: str) -> None:
    name = letter * (NAME_LIMIT // len(letter.encode()))
    history = tuple(term(czxid, name=name) for czxid in range(HISTORY_LENGTH))
    data = written(*history)
    assert len(data) <= HISTORY_SIZE < JUTE_MAXBUFFER // 2
    kept = decode_history(data)
    assert kept == history[-len(kept) :]
    assert len(kept) >= 10


def test_a_history_of_usual_names_is_not_cut() -> None:
    history = tuple(term(czxid, name="host-a.example.com") for czxid in range(HISTORY_LENGTH))
    assert decode_history(written(*history)) == history
