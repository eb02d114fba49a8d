"""Tokens that come with messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores.bearers import make_token
from stores.benches import SqliteBench, entries, marked

from zkelect.errors import Fenced, InvalidArgument
from zkelect.stores.http_header import HEADER, read_token
from zkelect.stores.receiver import Receiver

if TYPE_CHECKING:
    from zkelect.stores.http_header import Headers

TOKEN = make_token(5)
TEXT = str(TOKEN)


@pytest.mark.parametrize(
    "headers",
    [
        TEXT,
        TEXT.encode(),
        {"Fencing-Token": TEXT},
        {"fencing-token": TEXT.encode(), "other": None},
        [("x", b"1"), ("Fencing-Token", TEXT.encode())],
        [(b"FENCING-TOKEN", TEXT.encode())],
        (pair for pair in [("Fencing-Token", TEXT)]),
    ],
)
def test_headers_of_every_client_are_read(headers: Headers) -> None:
    assert read_token(headers) == TOKEN


@pytest.mark.parametrize(
    "headers", [None, {}, [], {"Fencing": TEXT}, [("x", TEXT)], {HEADER: None}]
)
def test_a_message_without_a_token_is_told_as_such(headers: Headers) -> None:
    with pytest.raises(InvalidArgument, match="one Fencing-Token header") as caught:
        read_token(headers)
    assert (caught.value.argument, caught.value.value) == (HEADER, None)


@pytest.mark.parametrize(
    "headers",
    [
        "",
        b"\xff" * 59,
        {HEADER: 5},
        {HEADER: TEXT + ","},
        {HEADER: TEXT, HEADER.lower(): TEXT},
        [(HEADER, TEXT), (HEADER, str(make_token(6)))],
    ],
)
def test_a_malformed_token_is_not_guessed(headers: Any) -> None:
    with pytest.raises(InvalidArgument, match="one Fencing-Token header") as caught:
        read_token(headers)
    assert caught.value.value is not None


def put(receiver: Receiver[Any], headers: Headers, entry: str) -> None:
    with receiver.accept(headers) as db:
        SqliteBench.append(None, db, read_token(headers), entry)  # type: ignore[arg-type]


def test_the_first_message_with_a_higher_token_is_the_claim(sqlite_bench: SqliteBench) -> None:
    fence = sqlite_bench.fence()
    receiver = Receiver(fence)
    put(receiver, {HEADER: str(make_token(5))}, "old")
    put(receiver, [(HEADER, str(make_token(6)).encode())], "new")
    with pytest.raises(Fenced):
        put(receiver, str(make_token(5)), "late")
    assert (entries(sqlite_bench), marked(fence)) == (["old", "new"], make_token(6))


def test_h61_a_message_of_an_old_term_stays_one_though_its_session_leads_again(
    sqlite_bench: SqliteBench,
) -> None:
    old, again = make_token(5, session_id=1), make_token(6, session_id=1)
    receiver = Receiver(sqlite_bench.fence())
    put(receiver, {HEADER: str(again)}, "present term")
    with pytest.raises(Fenced):
        put(receiver, {HEADER: str(old)}, "zombie thread's")
    assert entries(sqlite_bench) == ["present term"]


def test_a_message_without_a_token_opens_no_transaction(sqlite_bench: SqliteBench) -> None:
    with pytest.raises(InvalidArgument):
        Receiver(sqlite_bench.fence()).accept({})
    assert not sqlite_bench.path.exists()


def test_a_store_without_transactions_is_told_what_to_do() -> None:
    with pytest.raises(InvalidArgument, match=r"read_token\(headers\)"):
        Receiver(object())  # type: ignore[arg-type]  # that is the point
