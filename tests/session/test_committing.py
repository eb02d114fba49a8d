"""What becomes of a guarded transaction, answer by answer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo import exceptions as kz
from session.troupe import PATH, Troupe

from zkelect.errors import InvalidArgument, LeadershipLost, PermissionDenied, RequestFailed
from zkelect.session.committing import Batch, Committer
from zkelect.session.gateway import Check, Create, Failure, Fault, Operation, Put
from zkelect.testing import FakeEnsemble
from zkelect.testing.fake_machine import Move
from zkelect.token import Token

TOKEN = Token(lineage="0" * 16, generation=1, czxid=5, holder="1" * 16)
CANDIDATE = Check(path="/e/c")
CONFIG = Put(path="/config", data=b"new", version=3)


def failed(fault: Fault, cause: Exception | None = None) -> Failure:
    return Failure(fault=fault, cause=cause or kz.NoNodeError())


UNKNOWN = failed(Fault.UNKNOWN, kz.ConnectionLoss())
ROLLED_BACK = failed(Fault.ROLLED_BACK, kz.RolledBackError())
DONE = ("/e.zkelect/commit-1", True, object())


class Scene:
    """A session and a leadership, and the answers that will come.

    An answer is items, a Failure, None for one that never comes, or something to do first.
    """

    def __init__(self, *answers: Any) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.connected, self.connected_at, self.schemes = True, 0.0, ("digest",)
        self.path, self.node, self.session_id = "/e", "c", 7
        self.reason: str | None = None
        self.sent: list[tuple[Operation, ...]] = []
        self.answers = deque(answers)
        self.gateway = SimpleNamespace(commit=self.commit_to)
        alike: Any = self
        self.committer = Committer(alike, "/e")

    def ensure_usable(self) -> None:
        pass

    def now(self) -> float:
        return 0.0

    def check(self) -> Token:
        if self.reason is not None:
            raise LeadershipLost(self.path, TOKEN, self.reason)
        return TOKEN

    def commit_to(self, operations: Sequence[Operation]) -> Any:
        """Answer in the place of the gateway; a connection on which an answer is lost ends."""
        self.sent.append(tuple(operations))
        answer = self.answers.popleft()
        if callable(answer):
            answer = answer(self)
        if answer is UNKNOWN:
            self.connected_at += 1.0
        return SimpleNamespace(wait=lambda timeout: answer)

    def commit(self, write: Callable[[Batch], object] | None = None, timeout: float = 0.0) -> bool:
        alike: Any = self
        batch = self.committer.batch(alike)
        (write or set_config)(batch)
        return batch.commit(timeout)

    @property
    def markers(self) -> list[Operation]:
        return [operations[0] for operations in self.sent]


def set_config(batch: Batch) -> None:
    batch.set_data(CONFIG.path, CONFIG.data, CONFIG.version)


def set_config_and_delete(batch: Batch) -> None:
    set_config(batch)
    batch.delete("/config/x", None)


def delete_many(batch: Batch) -> None:
    for _ in range(10_000):
        batch.delete("/config/x", None)


def marker_path(scene: Scene) -> str:
    made = scene.markers[0]
    assert isinstance(made, Create)
    assert made.path.startswith("/e.zkelect/commit-")
    assert made == Create(path=made.path, data=b"", ephemeral=True)
    return made.path


def test_it_is_one_multi_of_marker_candidate_and_writes() -> None:
    scene = Scene(DONE, DONE, DONE)
    assert [scene.commit() for _ in range(3)] == [True] * 3
    path = marker_path(scene)
    assert [operations[1:] for operations in scene.sent] == [(CANDIDATE, CONFIG)] * 3
    assert scene.markers[1:] == [Put(path=path, data=b"", version=n) for n in (0, 1)]


def test_without_a_candidate_nothing_is_committed() -> None:
    scene = Scene((ROLLED_BACK, failed(Fault.NO_NODE), ROLLED_BACK), DONE)
    assert not scene.commit()
    assert scene.commit()
    assert scene.markers[0] == scene.markers[1]  # it was not made


@pytest.mark.parametrize("fault", [Fault.NODE_EXISTS, Fault.BAD_VERSION])
def test_a_lost_answer_is_found_out_by_sending_the_same_again(fault: Fault) -> None:
    moved_on = (failed(fault), ROLLED_BACK, ROLLED_BACK)
    scene = Scene(UNKNOWN, moved_on, UNKNOWN, DONE, DONE)
    assert [scene.commit() for _ in range(3)] == [True] * 3
    assert scene.sent[0] == scene.sent[1]
    path = marker_path(scene)
    assert scene.markers[2:] == [Put(path=path, data=b"", version=n) for n in (0, 0, 1)]


def test_a_lost_answer_of_what_was_not_committed_and_cannot_be_any_more() -> None:
    scene = Scene(UNKNOWN, (ROLLED_BACK, failed(Fault.NO_NODE), ROLLED_BACK))
    assert not scene.commit()


def test_a_marker_that_somebody_has_touched_is_told_and_left() -> None:
    scene = Scene((failed(Fault.NODE_EXISTS, kz.NodeExistsError()), ROLLED_BACK), DONE)
    with pytest.raises(RequestFailed, match="create failed: NodeExistsError"):
        scene.commit()
    assert scene.commit()
    assert scene.markers[0] != scene.markers[1]


def test_h60_the_failed_item_is_told_and_nothing_else() -> None:
    culprit = failed(Fault.BAD_VERSION, kz.BadVersionError())
    scene = Scene((ROLLED_BACK, ROLLED_BACK, culprit, ROLLED_BACK), DONE)
    with pytest.raises(RequestFailed, match="nothing of the transaction was written") as caught:
        scene.commit(set_config_and_delete)
    assert (caught.value.path, caught.value.request) == ("/config", "set_data")
    assert caught.value.__cause__ is culprit.cause
    assert scene.commit()
    assert scene.markers[0] == scene.markers[1]


def test_h60_where_every_item_was_rolled_back_nothing_was_committed() -> None:
    scene = Scene((ROLLED_BACK, ROLLED_BACK, ROLLED_BACK))
    with pytest.raises(RequestFailed, match="nothing of the transaction was written"):
        scene.commit()


@pytest.mark.parametrize(
    ("write", "path", "permission"),
    [
        (set_config, "/config", "write"),
        (lambda batch: batch.check("/config", None), "/config", "read"),
        (lambda batch: batch.create("/config/a", b"", ephemeral=False), "/config", "create"),
        (lambda batch: batch.delete("/config/a", None), "/config", "delete"),
    ],
)
def test_a_missing_permission_is_told_with_the_znode_that_lacks_it(
    write: Callable[[Batch], object], path: str, permission: str
) -> None:
    scene = Scene((ROLLED_BACK, ROLLED_BACK, failed(Fault.DENIED, kz.NoAuthError())))
    with pytest.raises(PermissionDenied) as caught:
        scene.commit(write)
    error = caught.value
    assert (error.path, error.permission, error.schemes) == (path, permission, ("digest",))


def test_a_leadership_that_is_over_sends_nothing() -> None:
    scene = Scene()
    scene.reason = "expired"
    with pytest.raises(LeadershipLost):
        scene.commit()
    assert scene.sent == []


def test_a_leadership_lost_with_the_answer_says_that_nobody_knows() -> None:
    def expire(scene: Scene) -> Failure:
        scene.reason = "expired"
        return UNKNOWN

    scene = Scene(expire)
    with pytest.raises(
        RequestFailed, match=r"over \(expired\).*it may have been committed"
    ) as told:
        scene.commit()
    assert isinstance(told.value.__cause__, LeadershipLost)


def test_no_answer_in_time_says_that_nobody_knows_and_leaves_the_marker() -> None:
    scene = Scene(None, DONE)
    with pytest.raises(RequestFailed, match="no answer within 0 s; it may have been committed"):
        scene.commit()
    assert scene.commit()
    assert scene.markers[0] != scene.markers[1]


def test_on_a_connection_that_loses_answers_nothing_is_sent_again() -> None:
    """A server that does not have our session goes on answering so; only a new one helps."""
    scene = Scene(failed(Fault.UNKNOWN, kz.SessionMovedError()))
    with pytest.raises(RequestFailed, match="it may have been committed"):
        scene.commit()
    assert len(scene.sent) == 1


def test_without_a_link_nothing_is_sent() -> None:
    scene = Scene()
    scene.connected = False
    with pytest.raises(RequestFailed, match="nothing was sent"):
        scene.commit()
    assert scene.sent == []


def test_a_failure_of_the_whole_request_is_told() -> None:
    cause = ValueError("made up")
    scene = Scene(failed(Fault.OTHER, cause))
    with pytest.raises(RequestFailed, match="made up") as caught:
        scene.commit()
    assert caught.value.__cause__ is cause


def test_two_at_once_have_a_marker_each() -> None:
    def another(scene: Scene) -> Any:
        assert scene.commit()
        return DONE

    scene = Scene(another, DONE, DONE, DONE)
    assert scene.commit()
    assert scene.markers[0] != scene.markers[1]
    assert scene.commit()
    assert len({marker.path for marker in scene.markers}) == 2


def test_in_a_new_session_the_markers_are_made_anew() -> None:
    scene = Scene(DONE, DONE)
    assert scene.commit()
    scene.session_id = 8
    assert scene.commit()
    assert all(isinstance(marker, Create) for marker in scene.markers)
    assert scene.markers[0] != scene.markers[1]


def test_more_than_a_server_takes_is_not_sent() -> None:
    """It would close the connection, again and again, and the lease would suffer."""
    scene = Scene()
    with pytest.raises(InvalidArgument, match="1000000 bytes"):
        scene.commit(lambda batch: batch.set_data("/config", b"x" * 1_000_000, None))
    with pytest.raises(InvalidArgument, match="1000000 bytes"):
        scene.commit(delete_many)
    assert scene.sent == []


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_a_bad_timeout_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        Scene().commit(timeout=timeout)


# --- in memory -----------------------------------------------------------------------------------


def settled(fake: FakeEnsemble, call: Callable[[], bool]) -> bool:
    """Let everything happen while another thread waits for its answer."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(call)
        while not done.done():
            fake.settle()
        return done.result()


def test_a_fake_ensemble_commits_while_the_candidate_is_there(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    leader = troupe.lead("A")
    (term,) = leader.terms
    fake.create("/config")

    def create() -> bool:
        batch = term.batch()
        batch.create(f"/config/{fake.zxid}", b"", ephemeral=True)
        return batch.commit(1.0)

    assert settled(fake, create)
    assert settled(fake, create)
    assert len(fake.children("/config")) == 2
    fake.hold(leader.session, Move.EVENT)  # it does not know yet
    fake.delete(f"{PATH}/{term.node}")
    assert not settled(fake, create)
    assert len(fake.children("/config")) == 2
