"""What is written beside an election: it reads back as it was, and garbage is nobody's term."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from zkelect.core.eviction import Eviction
from zkelect.core.pause import Pause
from zkelect.core.record import (
    Record,
    Term,
    TermPhase,
    adopted,
    decode_record,
    decode_term,
    encode_record,
    encode_term,
    record_path,
)
from zkelect.token import Token

UUID = "0123456789abcdef0123456789abcdef"
PAUSE = Pause(by="ada@host-a", why="the disk is being changed", since=1764500000.0)


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
    longest_lease=st.none() | st.floats(0, 1e5),
)
evictions = st.builds(
    Eviction, id=st.text(), node=st.text(), by=st.text(), why=st.text(), since=st.floats(0, 1e11)
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
    evicted=st.lists(evictions, max_size=3).map(tuple),
    version=st.integers(0, 2**31 - 1),
)
def test_a_record_reads_back_as_it_was(
    uuid: str,
    generation: int,
    paused: Pause | None,
    evicted: tuple[Eviction, ...],
    version: int,
) -> None:
    record = Record(
        uuid=uuid, generation=generation, paused=paused, evictions=evicted, version=version
    )
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


# --- who is asked to go ----------------------------------------------------------------------


def test_an_eviction_does_not_begin_another_history_and_is_kept_by_adopt() -> None:
    record = Record(uuid=UUID, evictions=(Eviction(id="1", node="n", by="ada"),))
    assert record.is_same_history(Record(uuid=UUID))
    adopting = adopted(record, [token(9)], zxid=5)
    assert adopting is not None
    assert adopting.evictions == record.evictions


def test_it_concerns_its_own_znode_alone() -> None:
    record = Record(uuid=UUID, evictions=(Eviction(id="1", node="n"), Eviction(id="2", node="m")))
    assert record.evicts("n")
    assert record.evicts("m")
    assert not record.evicts("n2")
    assert not Record(uuid=UUID).evicts("n")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("null", ()),
        ("true", ()),
        ('"n"', ()),
        ('{"id":"1","node":"n"}', ()),
        ("[]", ()),
        ('[null,7,[],"n",{},{"id":"1"},{"node":"n"},{"id":1,"node":"n"},{"id":"1","node":[]}]', ()),
        ('[{"id":"1","node":"n"}]', (Eviction(id="1", node="n"),)),
        ('[7,{"id":"1","node":"n","by":5,"why":{},"since":"x"}]', (Eviction(id="1", node="n"),)),
        ('[{"id":"1","node":"n","since":NaN}]', (Eviction(id="1", node="n"),)),
        ('[{"id":"1","node":"n","since":1e300,"more":[]}]', (Eviction(id="1", node="n"),)),
        ('[{"id":"1","node":"n","since":-5}]', (Eviction(id="1", node="n"),)),
        (
            '[{"id":"1","node":"n","by":"ada","why":"w","since":5}]',
            (Eviction(id="1", node="n", by="ada", why="w", since=5),),
        ),
    ],
)
def test_whatever_somebody_writes_there_by_hand(written: str, found: tuple[Eviction, ...]) -> None:
    data = f'{{"uuid":"{UUID}","generation":1,"paused":null,"evictions":{written}}}'.encode()
    assert decode_record(data, 0) == Record(uuid=UUID, evictions=found)


def test_an_eviction_says_by_whom_and_why_and_is_short_enough_for_all_to_read() -> None:
    assert str(Eviction(id="1", node="n", by="ada")) == "asked to go by 'ada'"
    eviction = Eviction(id="1", node="n", by="ada", why="x" * 5000)
    assert str(eviction) == f"asked to go by 'ada': {'x' * 1000}"


def test_the_record_stands_beside_the_parent_not_in_it() -> None:
    assert record_path("/elections/billing") == "/elections/billing.zkelect"


# --- terms -----------------------------------------------------------------------------------


@given(terms)
def test_a_term_reads_back_as_it_was(written: Term) -> None:
    assert decode_term(encode_term(written)) == written


def test_what_a_later_version_adds_to_a_term_is_passed_over() -> None:
    fields = {**json.loads(encode_term(term(5))), "colour": "blue"}
    assert decode_term(json.dumps(fields).encode()) == term(5)


@pytest.mark.parametrize("data", garbage, ids=lambda data: repr(data[:12]))
def test_garbage_is_no_term(data: bytes) -> None:
    assert decode_term(data) is None


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


def test_numbers_beyond_a_float_survive() -> None:
    big = term(2**63 + 1, count=2**53 + 1)
    read = decode_term(encode_term(big))
    assert read is not None
    assert (read.token.czxid, read.count) == (2**63 + 1, 2**53 + 1)
