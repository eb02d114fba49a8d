"""H39: a server that has lost the others and goes on for readers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.actor import TICK, Actor
from election.diary import Sentry
from election.waiting import WITHIN, until

import zkelect
from zkelect.testing.namespaces import NamespaceEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ensembles.candidate import Candidate

SHORT = 2.0


@pytest.fixture
def ensemble() -> Iterator[NamespaceEnsemble]:
    """Three servers that read on without a majority (Administrator's Guide, readonlymode)."""
    options = ["-Dreadonlymode.enabled=true"]
    with NamespaceEnsemble(3, tick_time=TICK, java_options=options) as started:
        yield started


def test_h39_on_a_read_only_server_nobody_is_elected_and_nobody_stays(
    ensemble: NamespaceEnsemble, stand: Callable[..., Candidate], path: str
) -> None:
    lonely, *others = ensemble.servers
    hosts = ",".join(server.address for server in others)
    with Actor(lonely.address, path, "A", session_timeout=SHORT) as a:
        term = a.lead()
        b = stand("B", hosts=hosts, session_timeout=SHORT).queue()
        sentry = Sentry(term)
        ensemble.partition({0}, {1, 2})
        granted = b.diary.wait("granted")
        sentry.relieve()
        assert a.diary.wait("deposed").reason in ("lapsed", "expired")
        assert sentry.passed < sentry.deadline < granted.at
        until(lambda: lonely.mode == "read-only", "the server alone is read-only")
        tried = a.forwarder.requests["connect"]
        assert a.forwarder.wait_for(
            lambda: a.forwarder.requests["connect"] > tried + 3, timeout=WITHIN
        )
        with pytest.raises(zkelect.ConnectFailed):
            zkelect.connect(lonely.address, session_timeout=SHORT, tick_time=TICK, timeout=SHORT)
        assert len(a.diary.all("granted")) == 1
        assert b.term == granted.leadership
        ensemble.heal()
        until(lambda: a.election.phase is zkelect.Phase.WAITING, "A waits behind B")
        assert b.term == granted.leadership
