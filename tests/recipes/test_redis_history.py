"""Where a Redis server stands, by what INFO says and by what was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest
from recipes.redis_info import REPLICA, A, B, C, state

from zkelect import InvalidArgument
from zkelect.recipes.position import Branch, Position, Relation, compare
from zkelect.recipes.redis.checks import starts_as_replica
from zkelect.recipes.redis.history import Kept, Record, locate
from zkelect.recipes.redis.place import Place

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_branch_has_no_other_before() -> None:
    assert locate(state(), None) == Position((Branch(A),), 100)


def test_h82_a_promoted_server_forks_at_the_last_offset_that_both_have() -> None:
    promoted = state(master_replid=B, master_replid2=A, second_repl_offset=101)
    found = locate(promoted, None)
    assert found == Position((Branch(A), Branch(B, 100)), 100)
    assert compare(locate(state(), None), found) is Relation.BEHIND
    assert compare(locate(state(master_repl_offset=101), None), found) is Relation.DIVERGED


@pytest.mark.parametrize("told", [{}, {"master_replid2": A, "second_repl_offset": 31}])
def test_a_follower_stands_on_the_branch_of_which_it_was_told(told: dict[str, Any]) -> None:
    known = Position((Branch(A), Branch(B, 100)), 100)
    assert locate(state(REPLICA, master_replid=B, **told), known).history == known.history


def test_a_server_on_an_earlier_branch_does_not_stand_on_a_later_one() -> None:
    known = Position((Branch(A), Branch(B, 100)), 200)
    assert locate(state(master_repl_offset=90), known) == Position((Branch(A),), 90)


def test_h82_ids_are_compared_and_not_offsets() -> None:
    ours, theirs = locate(state(), None), locate(state(master_replid=C), None)
    assert compare(ours, theirs) is Relation.UNRELATED


def test_a_long_history_is_shortened_and_stays_one() -> None:
    names = [f"{number:040}" for number in range(1, 18)]
    known = Position(
        (Branch(names[0]), *(Branch(name, 10 * n) for n, name in enumerate(names[1:-1]))), 500
    )
    new = state(master_replid=names[-1], master_replid2=names[-2], second_repl_offset=501)
    assert locate(new, known).history == (Branch(names[-2]), Branch(names[-1], 500))


def test_an_id_of_digits_stays_as_it_is() -> None:
    assert state(master_replid=int("7" * 38)).replid == "00" + "7" * 38


@pytest.mark.parametrize(
    ("changed", "whole"),
    [
        ({}, True),
        ({"slave_repl_offset": 0}, False),  # a full copy has begun
        ({"master_sync_in_progress": 1}, False),
    ],
)
def test_h83_data_are_whole_unless_a_copy_has_begun(changed: dict[str, Any], whole: bool) -> None:
    assert state(REPLICA, **changed).whole is whole


def test_who_follows_nowhere_is_demoted() -> None:
    assert not state(REPLICA).demoted
    assert state(REPLICA, master_host="127.0.0.1", master_port=0).demoted


def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    known = Position((Branch(A), Branch(B, 100)), 200)
    record = Record(tmp_path / "record")
    record.keep(Kept(known=known, reigned="run"))
    record.learn(None)
    assert Record(tmp_path / "record").kept == Kept(known=known, reigned="run")
    record.forget_reign()
    assert Record(tmp_path / "record").kept == Kept(known=known)


# --- the place ------------------------------------------------------------------------------------

PLACE = Place(url="redis://user:secret@127.0.0.1:6379/0", record="record")


def test_others_are_reached_as_the_same_user() -> None:
    assert PLACE.remote("10.0.0.2:6380") == "redis://user:secret@10.0.0.2:6380/0"


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(PLACE)
    with pytest.raises(InvalidArgument) as caught:
        attrs.evolve(PLACE, url="http://user:secret@host")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(InvalidArgument):
        PLACE.remote(address)


@pytest.mark.parametrize("options", [{"max_lag": 0}, {"min_replicas": -1}, {"min_replicas": True}])
def test_numbers_that_redis_would_take_for_something_else(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        attrs.evolve(PLACE, **options)


# --- a start is that of a replica ------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "fit"),
    [
        ("include {folder}/start.conf\n", True),
        ("port 1\nINCLUDE {folder}/*.inc\n", True),
        ("include start.conf\n", True),
        ("replicaof 127.0.0.1 0\n", False),  # CONFIG REWRITE takes it away
        ("# include {folder}/start.conf\n", False),
        ("include {folder}/other.conf\n", False),
        ("include {folder}/missing.conf\n", False),
    ],
)
def test_h83_a_configuration_makes_it_start_as_a_replica(
    tmp_path: Path, config: str, fit: bool
) -> None:
    for name in ("start.conf", "start.inc"):
        (tmp_path / name).write_text("# ours\nreplicaof 127.0.0.1 0\n")
    (tmp_path / "other.conf").write_text("#replicaof 127.0.0.1 0\n")
    (tmp_path / "redis.conf").write_text(config.format(folder=tmp_path))
    assert starts_as_replica(tmp_path / "redis.conf") is fit
