"""Refusals cross the wire whole."""

from __future__ import annotations

import inspect

import pytest
from stores.bearers import make_token

from zkelect import errors
from zkelect.errors import InvalidArgument, Refused, RequestFailed, UnfitStore, ZkelectError
from zkelect.stores.http_header import HEADER
from zkelect.stores.http_problem import STATUSES, Problem

OURS, MARK = make_token(5), make_token(6)
KINDS = [
    kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, Refused)
]


def crossed(error: ZkelectError) -> ZkelectError | None:
    """Return what arrives on the other side."""
    problem = Problem.of(error)
    assert problem.status in STATUSES
    read = Problem.parse(problem.encode())
    assert read == problem
    return read.error(service="http://billing", request="POST /", token=OURS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_arrives_as_what_it_was(kind: type[Refused]) -> None:
    sent = kind(
        store="redis", domain="größe", token=OURS, mark=MARK, holder='host "b"', detail="why\n"
    )
    told = crossed(sent)
    assert type(told) is kind
    assert told.store == "http://billing (redis)"
    same = ("domain", "token", "mark", "holder", "detail")
    assert [getattr(told, name) for name in same] == [getattr(sent, name) for name in same]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_known_arrives_as_not_known(kind: type[Refused]) -> None:
    told = crossed(kind(store="redis", domain="d"))
    assert isinstance(told, kind)
    assert (told.token, told.mark, told.holder, told.detail) == (OURS, None, "", "")


def test_a_kind_of_its_own_arrives_as_the_nearest_that_is_known() -> None:
    class Picky(UnfitStore):
        """A store somebody else wrote."""

    assert type(crossed(Picky(store="s", domain="d"))) is UnfitStore


def test_the_words_of_a_store_that_failed_do_not_cross() -> None:
    told = crossed(RequestFailed("/srv/marks.db", "begin", "password=secret"))
    assert isinstance(told, RequestFailed)
    assert "secret" not in str(told)
    assert "marks.db" not in str(told)


@pytest.mark.parametrize("value", [None, "garbage", [1, 2]])
def test_a_token_that_did_not_arrive_is_a_fault_of_the_way(value: object) -> None:
    told = crossed(InvalidArgument(HEADER, value, "a token"))
    assert isinstance(told, UnfitStore)
    assert told.token == OURS
