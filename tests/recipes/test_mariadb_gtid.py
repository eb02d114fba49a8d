"""GTIDs and what they tell of a server's history."""

from __future__ import annotations

import pytest

from zkelect import InvalidArgument
from zkelect.recipes.mariadb.gtid import Gtid, last, parse_set
from zkelect.recipes.mariadb.history import Promotion, begin, end_of, locate, trespasser
from zkelect.recipes.position import Branch, Relation, compare

FIRST = Promotion(10, 1, "a" * 16)
SECOND = Promotion(20, 2, "b" * 16)
RIVAL = Promotion(20, 3, "c" * 16)


def gtid(text: str) -> Gtid:
    return Gtid.parse(text)


# --- reading --------------------------------------------------------------------------------


def test_a_gtid_is_written_as_it_is_read() -> None:
    assert str(gtid("0-101-5543")) == "0-101-5543"


@pytest.mark.parametrize("text", ["", "0-1", "0-1-2-3", "0-1-x", "0--1", "0-1-²"])
def test_what_is_no_gtid_is_told(text: str) -> None:
    with pytest.raises(InvalidArgument, match="domain-server-sequence"):
        gtid(text)


def test_a_set_has_commas_spaces_or_nothing() -> None:
    assert parse_set("") == ()
    assert parse_set("0-1-5,1-2-7") == parse_set("0-1-5, 1-2-7") == (gtid("0-1-5"), gtid("1-2-7"))


def test_the_last_one_goes_furthest_in_its_domain_whoever_wrote_it() -> None:
    assert last(0, parse_set("0-1-5,1-1-9"), parse_set("0-2-7")) == gtid("0-2-7")
    assert last(2, parse_set("0-1-5")) is None


def test_a_server_made_from_a_copy_has_applied_what_it_never_logged() -> None:
    assert end_of({"domain": 0, "written": "", "applied": "0-1-9"}) == gtid("0-1-9")
    assert end_of({"domain": 0, "written": "0-1-12", "applied": "0-1-9"}) == gtid("0-1-12")
    assert end_of({"domain": 0, "written": "", "applied": ""}) is None


# --- positions --------------------------------------------------------------------------------


def test_a_position_has_the_promotions_that_its_data_have_been_through() -> None:
    position = locate(gtid("0-2-25"), [FIRST, SECOND])
    assert position.history[1:] == (Branch("a" * 16, 10), Branch("b" * 16, 20))
    assert position.offset == 25
    assert locate(None, []).offset == 0


def test_a_promotion_that_is_read_after_the_position_is_not_in_it() -> None:
    """The table is read last: it may have gone on."""
    assert locate(gtid("0-1-20"), [FIRST, SECOND]) == locate(gtid("0-1-20"), [FIRST])


def test_who_lacks_the_promotion_is_behind_and_who_wrote_apart_has_diverged() -> None:
    promoted = locate(gtid("0-2-21"), [FIRST, SECOND])
    assert compare(locate(gtid("0-1-20"), [FIRST]), promoted) is Relation.BEHIND
    assert compare(locate(gtid("0-1-21"), [FIRST]), promoted) is Relation.DIVERGED
    assert compare(locate(gtid("0-3-21"), [FIRST, RIVAL]), promoted) is Relation.DIVERGED


def test_the_same_server_promoted_again_is_on_another_branch() -> None:
    again = Promotion(20, 1, "d" * 16)
    stayed = locate(gtid("0-1-23"), [FIRST])
    assert compare(stayed, locate(gtid("0-1-25"), [FIRST, again])) is Relation.DIVERGED


def test_a_transaction_of_another_server_than_the_primary_is_told() -> None:
    assert not trespasser(None, [])
    assert not trespasser(gtid("0-1-15"), [FIRST])
    assert not trespasser(gtid("0-2-5"), [FIRST]), "it was before anybody was promoted"
    assert trespasser(gtid("0-2-15"), [FIRST])
    assert not trespasser(gtid("0-2-25"), [FIRST, SECOND])


def test_a_branch_of_which_nothing_is_written_yet_goes_before_the_end_of_the_old_one() -> None:
    ended = locate(gtid("0-1-20"), [FIRST])
    begun = begin(SECOND, ended)
    assert compare(ended, begun) is Relation.BEHIND
    assert compare(begun, locate(gtid("0-2-21"), [FIRST, SECOND])) is Relation.BEHIND
    assert compare(locate(gtid("0-1-21"), [FIRST]), begun) is Relation.DIVERGED
