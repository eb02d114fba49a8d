"""Other libraries in the queue: told once, or refused when asked to be strict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from session.troupe import PATH

import zkelect

if TYPE_CHECKING:
    from session.troupe import Troupe

    from zkelect.testing import FakeEnsemble

WRITE_LOCK = f"{PATH}/x-72057611460345856-0000000000"
LATCH = f"{PATH}/_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000000"


@pytest.fixture
def queue(troupe: Troupe, fake: FakeEnsemble) -> None:
    """A path on which somebody has stood."""
    troupe.lead("Z").election.stop()
    fake.settle()


@pytest.mark.usefixtures("queue")
def test_h35_a_peer_of_another_library_is_waited_for_and_told_once(
    troupe: Troupe, fake: FakeEnsemble, caplog: pytest.LogCaptureFixture
) -> None:
    fake.create(LATCH)
    a = troupe.queue("A")
    for _ in range(3):
        fake.drop(a.session)
        fake.advance(1.0)
    told = [r.getMessage() for r in caplog.records if "curator-latch" in r.getMessage()]
    assert len(told) == 1
    assert "do not see each other" in told[0]
    fake.delete(LATCH)
    troupe.until(lambda: a.terms, "A leads when the peer has gone")


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize(
    ("dialect", "peer", "told"),
    [
        ("zkelect", WRITE_LOCK, "WriteLock of ZooKeeper 3.8 was seen to wait"),
        ("zkelect", LATCH, "do not see each other"),
        ("kazoo", WRITE_LOCK, "do not see each other"),
    ],
)
def test_h35_of_a_write_lock_is_told_what_is_true_in_this_dialect(
    troupe: Troupe,
    fake: FakeEnsemble,
    dialect: str,
    peer: str,
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake.create(peer)
    troupe.queue("A", dialect=dialect)
    assert told in caplog.text


@pytest.mark.usefixtures("queue")
def test_h35_strangers_are_ignored_counted_and_shown(
    troupe: Troupe, fake: FakeEnsemble, caplog: pytest.LogCaptureFixture
) -> None:
    fake.create(f"{PATH}/config")
    fake.create(f"{PATH}/notes")
    assert troupe.lead("A").terms
    assert "2 children are no candidates that we know" in caplog.text
    assert "'config'" in caplog.text


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize(
    ("child", "told"),
    [(LATCH, "candidates of curator-latch"), (f"{PATH}/odd-0000000001", "'odd-0000000001'")],
)
def test_h35_who_is_strict_does_not_stand_in_such_company(
    troupe: Troupe, fake: FakeEnsemble, child: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    fake.create(child)
    a = troupe.cast("A", strict=True).start()
    fake.advance(1.0)
    assert told in caplog.text
    assert not a.terms
    assert [child.rpartition("/")[2]] == fake.children(PATH)
    fake.delete(child)
    fake.advance(60.0)
    assert a.terms


@pytest.mark.usefixtures("queue")
def test_h35_who_is_strict_and_leads_goes_on_leading(troupe: Troupe, fake: FakeEnsemble) -> None:
    a = troupe.lead("A", strict=True)
    fake.create(LATCH.replace("0000000000", "0000000099"))
    fake.drop(a.session)
    fake.advance(30.0)
    assert a.ends == []


@pytest.mark.parametrize("dialect", ["curator-latch", "curator-lock", "zkelect"])
def test_in_each_dialect_there_is_one_leader_after_the_other(
    troupe: Troupe, fake: FakeEnsemble, dialect: str
) -> None:
    a = troupe.lead("A", dialect=dialect)
    b = troupe.queue("B", dialect=dialect)
    a.election.stop()
    troupe.until(lambda: b.terms, "B leads")
    assert b.terms[0].token > a.terms[0].token


def test_a_dialect_that_is_none_is_refused(troupe: Troupe) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="curator-latch"):
        troupe.cast("A", dialect="curator")
