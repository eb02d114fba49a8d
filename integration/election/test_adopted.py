"""A session of the application's own client: weaker, and never counted longer than it holds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Campaign, Operator
    from kazoo.client import KazooClient

    from zkelect.testing import LocalEnsemble


def test_an_adopted_client_has_a_lease_only_after_a_chain_of_probes(
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    campaign: Callable[..., Campaign],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    """Nobody saw its handshake: until four probes span a tick, nothing is proven."""
    with Forwarder(zookeeper.hosts) as link:
        client, session = adopted(link.hosts, tick_time=0.2)
        assert session.lease.deadline == -math.inf
        leadership = campaign(zkelect.Election(session, path)).leadership()
        assert link.replies["multi"] >= 4
        assert 0 < leadership.remaining() < 0.98 * 2.0
        assert leadership.check() == leadership.token
        assert leadership.session_id == client.client_id[0]


def test_closing_leaves_the_client_to_the_application(
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    client, session = adopted(zookeeper.hosts, tick_time=0.2)
    with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
        assert client.get_children(path) == [leadership.node]
    session.close()
    assert client.connected
    assert client.get_children(path) == []


def test_a_flapping_link_does_not_end_the_term_of_an_adopted_client(
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    campaign: Callable[..., Campaign],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    with Forwarder(zookeeper.hosts) as link:
        _, session = adopted(link.hosts, tick_time=0.2)
        leadership = campaign(zkelect.Election(session, path)).leadership()
        before = link.replies["multi"]
        link.drop()
        assert link.wait_for(lambda: link.replies["multi"] > before + 4)
        assert leadership.check() == leadership.token


@pytest.mark.parametrize("moment", ["while its create is under way", "while it waits"])
def test_h38_a_session_closed_on_a_dead_link_leaves_nothing_behind_once_it_heals(
    moment: str,
    adopted: Callable[..., tuple[KazooClient, zkelect.Session]],
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    zookeeper: LocalEnsemble,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    """The client's session lives on, and an orphan with it: it would lead the queue for ever."""
    leadership = cast("A").lead()
    with Forwarder(zookeeper.hosts) as link:
        client, session = adopted(link.hosts, tick_time=0.2)
        election = zkelect.Election(session, path)
        if moment == "while it waits":
            campaign(election)
            eventually(lambda: election.phase is zkelect.Phase.WAITING, "it waits")
            link.cut()
        else:
            link.cut("replies")
            campaign(election)
        eventually(lambda: len(operator.nodes(path)) == 2, "its candidate is there")
        session.close()
        link.heal()
        eventually(lambda: client.connected, "the client is back")
        eventually(lambda: operator.nodes(path) == [leadership.node], "nothing of ours is left")
