"""H22 and H23: a candidate that comes back, to a server that lags, or with another session."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import attrs
import pytest
from election.waiting import WITHIN, until
from ensembles.stories import LONG, owner, return_before_the_sweep
from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from zkelect.testing import FaultProxy, Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator
    from ensembles.candidate import Candidate

    from zkelect.testing import Rule
    from zkelect.testing.namespaces import NamespaceEnsemble


# --- H22: the reply to create is lost, and the next server lags --------------------------------


class Move:
    """A candidate's way from the leader of the ensemble to a follower that lags.

    :ivar before: stands before the ensemble's leader. :ivar after: before the follower.
    """

    def __init__(self, ensemble: NamespaceEnsemble, stack: ExitStack) -> None:
        leader = ensemble.leader()
        follower = (leader + 1) % len(ensemble.servers)
        self.before = stack.enter_context(FaultProxy(ensemble.servers[leader].address))
        self.after = stack.enter_context(FaultProxy(ensemble.servers[follower].address))
        self.hosts = f"{self.before.hosts},{self.after.hosts}"
        ensemble.slow(leader, latency=0.2)
        self.after.refuse()

    def show_nobody(self, operate: Callable[..., Operator], path: str) -> None:
        """Let the follower answer once, by an empty roll."""
        self.after.accept()
        assert operate(self.after.hosts).nodes(path) == []
        self.after.refuse()

    def lag(self, path: str) -> Lag:
        """Let the follower answer by the roll it has told before, until :meth:`Lag.end`.

        A server that resumes a session has heard of all that was committed before, but need
        not have applied it. How long that takes cannot be chosen, so the proxy takes longer.
        """
        return Lag(
            stale=self.after.answer_stale("getChildren", path=path, times=None),
            barrier=self.after.delay_reply("multi", path=path),
        )


@attrs.frozen
class Lag:
    """How a follower lags: its rolls are old until it has heard of a commit.

    :ivar barrier: the first commit; its reply is held.
    """

    stale: Rule
    barrier: Rule

    def end(self) -> None:
        """Wait for a commit: it has caught up."""
        assert self.barrier.wait(WITHIN), "no quorum commit came first"
        self.stale.cancel()
        self.barrier.release()


@pytest.fixture(autouse=True)
def election(stand: Callable[..., Candidate]) -> None:
    """Make the election as it is when somebody has led."""
    stand("earlier", session_timeout=LONG).election.run(lambda _: None)


@pytest.fixture
def move(ensemble: NamespaceEnsemble) -> Iterator[Move]:
    with ExitStack() as stack:
        yield Move(ensemble, stack)


def test_h22_a_quorum_commit_comes_before_the_roll_of_a_server_that_lags(
    move: Move,
    operate: Callable[..., Operator],
    operator: Operator,
    stand: Callable[..., Candidate],
    path: str,
) -> None:
    """CURATOR-264. Without it the roll shows nobody, and a second znode is made."""
    move.show_nobody(operate, path)
    a = stand("A", hosts=move.hosts, session_timeout=LONG)
    move.before.refuse()  # a connection that is lost is made anew to the follower, not here
    lost = move.before.drop_reply("create2", path=f"{path}/*")
    a.start()
    assert lost.wait(WITHIN)
    lag = move.lag(path)
    move.after.accept()
    lag.end()
    assert not lag.stale.fired
    term = a.diary.wait("elected").leadership
    assert operator.nodes(path) == [term.node]
    assert owner(operator, path, term.node) == a.session.session_id
    assert not any(frame.name == "create2" for frame in move.after.log)


@contextmanager
def session_taken_over(hosts: str, credentials: tuple[int, bytes]) -> Iterator[KazooClient]:
    """Use somebody's session for a moment, and drop the connection: the session lives on."""
    with Forwarder(hosts) as forwarder:
        kazoo = KazooClient(forwarder.hosts, client_id=credentials, timeout=LONG)
        kazoo.start(timeout=WITHIN)
        assert kazoo.client_id[0] == credentials[0]
        try:
            yield kazoo
        finally:
            forwarder.refuse()
            forwarder.cut()
            forwarder.drop()
            kazoo.stop()
            kazoo.close()


def test_h22_several_of_ours_are_told_apart_and_cleaned(
    move: Move,
    ensemble: NamespaceEnsemble,
    operator: Operator,
    stand: Callable[..., Candidate],
    path: str,
) -> None:
    """The create was done twice, and somebody else has a znode with our uuid, which is first."""
    a = stand("A", hosts=move.hosts, session_timeout=LONG)
    held = move.before.delay_request("create2", path=f"{path}/*")
    lost = move.before.drop_reply("create2", path=f"{path}/*")
    a.start()
    assert held.wait(WITHIN)
    (name,) = {p for f in move.before.log for p in f.paths if p.startswith(f"{path}/")}
    foreign = operator.stand(path, uuid=name.rpartition("/")[2].partition("__")[0])
    credentials = a.session.credentials()
    held.release()
    assert lost.wait(WITHIN)
    with session_taken_over(ensemble.servers[0].address, credentials) as kazoo:
        KazooRetry(max_tries=5)(kazoo.create, name, b"", ephemeral=True, sequence=True)
    first, second, *more = operator.nodes(path)
    assert first == foreign
    assert more
    move.after.accept()
    term = a.diary.wait("elected").leadership
    assert term.node == second
    assert owner(operator, path, second) == a.session.session_id
    until(lambda: operator.nodes(path) == [second], f"{first} and {more} are deleted")


# --- H23: the own old znode is still first -----------------------------------------------------


def test_h23_the_own_old_znode_makes_nobody_a_leader(
    ensemble: NamespaceEnsemble, operator: Operator, path: str
) -> None:
    """CURATOR-696, druid #16411: ephemeralOwner decides."""
    return_before_the_sweep(ensemble, operator, path)
