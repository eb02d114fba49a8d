"""Elections that cannot be, and calls that cannot be made of one: nothing is created."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import pytest
from access.refusals import assert_misuse

import zkelect
from zkelect.core.paths import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Campaign, Operator

    from zkelect.testing import LocalEnsemble

    Connect = Callable[..., zkelect.Session]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "relative",
        "elections/billing",
        "/elections//billing",
        "//billing",
        "/elections/./billing",
        "/elections/../billing",
        "/..",
        "/zookeeper",
        "/zookeeper/x",
        "/elections/x.zkelect",
        "/elections.zkelect/x",
        "/elections/x.zkelect/term",
        "/nul\0",
        "/line\nbreak",
        "/private\ue000",
        "/surrogate\ud800",
    ],
)
def test_a_path_that_can_hold_no_election(
    path: str, connect: Connect, zookeeper: LocalEnsemble, operator: Operator
) -> None:
    session = connect(zookeeper.hosts)
    before = operator.kazoo.get_children("/")
    with pytest.raises(zkelect.InvalidArgument) as caught:
        zkelect.Election(session, path)
    assert_misuse(caught.value, "path", path)
    assert "'/elections/billing'" in str(caught.value)
    assert operator.kazoo.get_children("/") == before


def test_a_trailing_slash_is_the_same_election(connect: Connect, zookeeper: LocalEnsemble) -> None:
    assert zkelect.Election(connect(zookeeper.hosts), "/elections/x/").path == "/elections/x"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", "x" * (NAME_LIMIT + 1)),
        ("name", "ä" * (NAME_LIMIT // 2 + 1)),
        ("name", "half a pair \ud800"),
        ("address", "x" * (NAME_LIMIT + 1)),
        ("prepare_timeout", 0.0),
        ("prepare_timeout", -1.0),
        ("prepare_timeout", math.nan),
        ("stall_timeout", 0.0),
        ("stall_timeout", -1.0),
        ("unhealthy_after", 0),
        ("unhealthy_after", -3),
        ("on_suspended", "go-on"),
        ("dialect", "curator"),
    ],
)
def test_elections_that_cannot_be(
    argument: str,
    value: Any,
    connect: Connect,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    session = connect(zookeeper.hosts)
    with pytest.raises(zkelect.InvalidArgument) as caught:
        zkelect.Election(session, path, **{argument: value})
    assert_misuse(caught.value, argument, value)
    assert len(str(caught.value)) < 500
    assert operator.kazoo.exists(path) is operator.kazoo.exists(f"{path}.zkelect") is None


def test_the_longest_name_that_is_allowed(
    connect: Connect, zookeeper: LocalEnsemble, path: str
) -> None:
    name = "ä" * (NAME_LIMIT // 2)
    election = zkelect.Election(connect(zookeeper.hosts), path, name=name)
    with election.campaign(timeout=30.0):
        assert [candidate.name for candidate in election.candidates()] == [name]


def test_long_names_in_the_history_never_outgrow_a_request(
    connect: Connect, zookeeper: LocalEnsemble, operator: Operator, path: str
) -> None:
    """A server drops the connection of who sends more than 1 MiB (jute.maxbuffer)."""
    name = "\x01" * NAME_LIMIT  # in JSON it takes six times its length
    session = connect(zookeeper.hosts)
    election = zkelect.Election(session, path, name=name)
    began = session.session_id
    tokens = [str(election.run(lambda held: held.token, timeout=30.0)) for _ in range(25)]
    assert (election.phase, session.session_id) == ("idle", began)
    assert operator.nodes(path) == []
    written = [term["token"] for term in operator.terms(path)]
    assert written == tokens[-len(written) :]
    assert len(written) > 1


@pytest.mark.parametrize("timeout", [-1.0, -0.001, math.nan, math.inf])
@pytest.mark.parametrize("call", ["campaign", "run", "leader", "candidates", "stop"])
def test_timeouts_that_cannot_be(
    call: str,
    timeout: float,
    connect: Connect,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), path)
    calls: dict[str, Callable[[], object]] = {
        "campaign": lambda: election.campaign(timeout).__enter__(),
        "run": lambda: election.run(lambda _: None, timeout),
        "leader": lambda: election.leader(timeout),
        "candidates": lambda: election.candidates(timeout),
        "stop": lambda: election.stop(timeout),
    }
    with pytest.raises(zkelect.InvalidArgument) as caught:
        calls[call]()
    assert caught.value.argument == "timeout"
    assert operator.nodes(path) == []


def test_two_campaigns_at_a_time(
    connect: Connect,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
    campaign: Callable[..., Campaign],
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), path)
    first = campaign(election)
    leadership = first.elected.result(30.0)
    calls: list[Callable[[], object]] = [
        lambda: election.campaign().__enter__(),
        lambda: election.run(lambda _: None),
        lambda: election.run_forever(lambda _: None),
    ]
    for call in calls:
        with pytest.raises(zkelect.CampaignInProgress) as caught:
            call()
        assert isinstance(caught.value, zkelect.Misuse)
        assert caught.value.path == path
    leadership.check()  # and the first one is none the worse for it
    assert len(operator.nodes(path)) == 1


def test_a_campaign_beside_start(connect: Connect, zookeeper: LocalEnsemble, path: str) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), path)
    elected = threading.Event()

    class Listener:
        def elected(self, leadership: zkelect.Leadership) -> None:
            elected.set()

        def suspended(self, leadership: zkelect.Leadership) -> None: ...

        def deposed(self, leadership: zkelect.Leadership) -> None: ...

    with election.listen(Listener()):
        election.start()
        assert elected.wait(30.0)
        with pytest.raises(zkelect.CampaignInProgress):
            election.start()
        with pytest.raises(zkelect.CampaignInProgress):
            election.campaign().__enter__()
        assert election.stop(timeout=30.0)


def test_use_after_close(connect: Connect, zookeeper: LocalEnsemble, path: str) -> None:
    session = connect(zookeeper.hosts)
    election = zkelect.Election(session, path)
    session.close()
    calls: list[Callable[[], object]] = [
        lambda: zkelect.Election(session, path),
        lambda: election.campaign().__enter__(),
        lambda: election.run(lambda _: None),
        lambda: election.run_forever(lambda _: None),
        election.start,
        election.leader,
        election.candidates,
        session.__enter__,
    ]
    for call in calls:
        with pytest.raises(zkelect.SessionClosed) as caught:
            call()
        assert isinstance(caught.value, zkelect.Misuse)
        assert caught.value.hosts == zookeeper.hosts
    session.close()
    election.resign()
    assert election.stop()
