"""H59: ZooKeeper loses the history that a store remembers, and an operator decides."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect import stores
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATH = "/elections/billing"
T = 2.0


@pytest.fixture
def other() -> Iterator[LocalEnsemble]:
    """Another ensemble: for a store it is the same as one that was wiped."""
    with LocalEnsemble(tick_time=0.2) as started:
        yield started


@pytest.fixture
def fence(tmp_path: Path) -> stores.SqliteFence:
    return stores.SqliteFence(tmp_path / "jobs.db", domain="billing")


def serve(hosts: str, act: Callable[[zkelect.Leadership], None], *, terms: int = 1) -> None:
    """Lead so many terms one after the other, and act in each."""
    with zkelect.connect(hosts, session_timeout=T, tick_time=0.2) as session:
        election = zkelect.Election(session, PATH, name="host-a")
        for _ in range(terms):
            with election.campaign(timeout=30.0) as leadership:
                act(leadership)


def adopt(hosts: str, *kept: stores.SqliteFence) -> int:
    with zkelect.connect(hosts, session_timeout=T, tick_time=0.2) as session:
        return stores.adopt(zkelect.Election(session, PATH), *kept)


def append(fence: stores.SqliteFence, leadership: zkelect.Leadership) -> None:
    fence.claim(leadership)
    with fence.transaction(leadership) as db:
        db.execute("create table if not exists log (token text)")
        db.execute("insert into log values (?)", (str(leadership.token),))


def test_h59_a_wiped_ensemble_is_refused_until_adopt_which_works_once(
    zookeeper: LocalEnsemble, other: LocalEnsemble, fence: stores.SqliteFence
) -> None:
    serve(zookeeper.hosts, lambda leadership: append(fence, leadership))
    before = fence.status()
    assert before is not None
    with pytest.raises(zkelect.LineageMismatch, match="adopt"):
        serve(other.hosts, lambda leadership: append(fence, leadership))
    assert fence.status() == before
    assert adopt(other.hosts, fence) == before.token.generation + 1
    assert fence.status() == before  # no store is written
    serve(other.hosts, lambda leadership: append(fence, leadership))
    after = fence.status()
    assert after is not None
    assert after.token > before.token
    with pytest.raises(zkelect.NothingToAdopt, match=r"generation 2"):
        adopt(other.hosts, fence)


def test_h59_a_restored_ensemble_is_told_at_the_first_claim_and_adopted(
    other: LocalEnsemble, fence: stores.SqliteFence
) -> None:
    """The same lineage, but the mark is from its future: standing again would not help."""
    serve(other.hosts, lambda _: None)
    server, data = other.servers[0], other.directory / "server-1" / "data"
    server.kill()
    shutil.copytree(data, other.directory / "backup")
    server.start()
    serve(other.hosts, lambda leadership: append(fence, leadership), terms=20)
    server.kill()
    shutil.rmtree(data)
    shutil.copytree(other.directory / "backup", data)
    server.start()
    ends = []

    def claim(leadership: zkelect.Leadership) -> None:
        try:
            fence.claim(leadership)
        finally:
            ends.append(leadership.reason)

    with pytest.raises(zkelect.EnsembleWentBack, match="adopt"):
        serve(other.hosts, claim)
    assert ends == [None]  # it is not Fenced: nobody stands again into the same wall
    adopt(other.hosts, fence)
    serve(other.hosts, lambda leadership: append(fence, leadership))


def test_adopt_is_refused_while_somebody_leads(
    zookeeper: LocalEnsemble, other: LocalEnsemble, fence: stores.SqliteFence
) -> None:
    serve(zookeeper.hosts, lambda leadership: append(fence, leadership))

    def refused(leadership: zkelect.Leadership) -> None:
        with pytest.raises(zkelect.LeaderPresent, match="host-a") as caught:
            adopt(other.hosts, fence)
        assert caught.value.token == leadership.token
        leadership.check()

    serve(other.hosts, refused)


def test_a_leader_elected_in_the_moment_of_adopt_ends_at_its_next_probe(
    zookeeper: LocalEnsemble, other: LocalEnsemble, fence: stores.SqliteFence
) -> None:
    """Nobody led when the operator looked."""
    serve(zookeeper.hosts, lambda leadership: append(fence, leadership))
    mark = fence.status()
    assert mark is not None
    serve(other.hosts, lambda _: None)  # the record is there
    with zkelect.connect(other.hosts, session_timeout=T, tick_time=0.2) as session:
        operator = zkelect.Election(session, PATH)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("zkelect.session.adoption._refuse_leader", lambda *_: None)

            def hit(leadership: zkelect.Leadership) -> None:
                operator.adopt(mark.token)
                assert leadership.wait_lost(30.0)

            serve(other.hosts, hit)
    serve(other.hosts, lambda leadership: append(fence, leadership))


def test_adopt_needs_marks_and_a_record(
    other: LocalEnsemble, fence: stores.SqliteFence, zookeeper: LocalEnsemble
) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="has a mark"):
        adopt(other.hosts, fence)
    serve(zookeeper.hosts, lambda leadership: append(fence, leadership))
    with pytest.raises(zkelect.InvalidArgument, match="candidate"):
        adopt(other.hosts, fence)
    with suppress(zkelect.LineageMismatch):
        serve(other.hosts, lambda leadership: append(fence, leadership))
    adopt(other.hosts, fence)
