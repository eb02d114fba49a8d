"""ZooKeeper transactions that are committed only while a candidate of ours is there.

Each of them moves a *marker* of ours, an ephemeral znode beside the election's record, on
from a version that only we give it. So a transaction whose answer was lost is sent again, as
it was: if it was committed, the marker has moved on and refuses it, and that is the answer;
if not, it is committed now. The first one cannot follow later: a server takes nothing more
of a session that has moved to another one, and the same server works in order.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from posixpath import dirname
from typing import Any, Final

import attrs

from zkelect.core.record import record_path
from zkelect.errors import InvalidArgument, Lost, PermissionDenied, RequestFailed, ZkelectError
from zkelect.session.gateway import Check, Create, Delete, Failure, Fault, Operation, Put
from zkelect.session.leadership import Leadership
from zkelect.session.limits import check_timeout
from zkelect.session.session import Session

__all__ = ["Batch", "Committer"]

_LARGEST: Final = 1_000_000
"""Bytes. At 0xfffff a server closes the connection instead of answering (jute.maxbuffer)."""
_OVERHEAD: Final = 100
_MARKER, _CANDIDATE = 0, 1
_MOVED_ON: Final = (Fault.NODE_EXISTS, Fault.BAD_VERSION)
_NAMES: Final = {Check: "check", Put: "set_data", Create: "create", Delete: "delete"}
_PERMISSIONS: Final = {Check: "read", Put: "write", Create: "create", Delete: "delete"}


class Batch:
    """Operations to be committed together while our candidate is there; used once.

    A version of None fits any.
    """

    def __init__(self, committer: Committer, leadership: Leadership) -> None:
        self.operations: list[Operation] = []
        self.size: int = 0
        self._committer = committer
        self._leadership = leadership

    def check(self, path: str, version: int | None) -> None:
        """Find the znode at that version."""
        self._add(path, 0, Check(path=path, version=version))

    def set_data(self, path: str, data: bytes, version: int | None) -> None:
        """Set the data of the znode at that version."""
        self._add(path, len(data), Put(path=path, data=data, version=version))

    def create(self, path: str, data: bytes, *, ephemeral: bool) -> None:
        """Make a znode of that very name."""
        self._add(path, len(data), Create(path=path, data=data, ephemeral=ephemeral))

    def delete(self, path: str, version: int | None) -> None:
        """Delete the znode at that version."""
        self._add(path, 0, Delete(path=path, version=version))

    def commit(self, timeout: float) -> bool:
        """Commit all of it or nothing, exactly once.

        :param timeout: seconds to wait for the answer, also over reconnects; at least 0.
        :returns: False: our candidate is gone, and nothing was committed.
        :raises Lost: the leadership is over, or paused; nothing was committed.
        :raises InvalidArgument: more than a server takes; nothing was sent.
        :raises PermissionDenied, RequestFailed: the server refused an operation, and nothing was
            committed; or no answer came, and it may have been: the error says which.
        """
        check_timeout(timeout)
        if self.size > _LARGEST:
            expected = f"a transaction of at most {_LARGEST} bytes; a server takes no more in one"
            raise InvalidArgument("size", self.size, expected)
        return self._committer.commit(self._leadership, self.operations, timeout)

    def _add(self, path: str, size: int, operation: Operation) -> None:
        self.size += _OVERHEAD + len(path.encode()) + size
        self.operations.append(operation)


@attrs.define(eq=False)
class _Marker:
    """What tells whether a transaction was committed; goes with the session.

    :ivar version: None before it is made.
    """

    path: str
    version: int | None = None

    @property
    def step(self) -> Operation:
        if self.version is None:
            return Create(path=self.path, data=b"", ephemeral=True)
        return Put(path=self.path, data=b"", version=self.version)

    def move(self) -> None:
        self.version = 0 if self.version is None else self.version + 1


class Committer:
    """Commits for the leaderships of one candidate, from any thread.

    A marker serves one transaction at a time, so there are as many as have run side by side.

    :param path: the election.
    """

    def __init__(self, session: Session, path: str) -> None:
        self._session = session
        self._path = path
        self._owner: int | None = None
        self._markers: list[_Marker] = []

    def batch(self, leadership: Leadership) -> Batch:
        """Return an empty batch of this leadership."""
        return Batch(self, leadership)

    def commit(
        self, leadership: Leadership, operations: Sequence[Operation], timeout: float
    ) -> bool:
        """Commit all of it or nothing; see :meth:`Batch.commit`."""
        self._session.ensure_usable()  # before any lock: a forked child must not wait
        attempt = _Attempt(self._session, leadership, self._take(leadership), operations)
        try:
            return attempt.run(timeout)
        finally:
            if attempt.settled:
                self._give_back(leadership, attempt.marker)

    def _take(self, leadership: Leadership) -> _Marker:
        with self._session.lock:
            if self._owner != leadership.session_id:  # the others went with their session
                self._owner, self._markers = leadership.session_id, []
            if self._markers:
                return self._markers.pop()
        return _Marker(f"{record_path(self._path)}/commit-{uuid.uuid4().hex}")

    def _give_back(self, leadership: Leadership, marker: _Marker) -> None:
        with self._session.lock:
            if self._owner == leadership.session_id:
                self._markers.append(marker)


class _Attempt:
    """One transaction, sent until its outcome is known.

    The marker stands before the candidate: so what was committed is known to be, even if the
    candidate has gone since.

    :ivar settled: nothing is under way, and the marker stands where we know it to.
    """

    def __init__(
        self,
        session: Session,
        leadership: Leadership,
        marker: _Marker,
        operations: Sequence[Operation],
    ) -> None:
        self.marker: Final = marker
        self.settled = True
        self._session = session
        self._leadership = leadership
        self._lost_link: float | None = None
        candidate = f"{leadership.path}/{leadership.node}"
        self._operations = (marker.step, Check(path=candidate), *operations)

    def run(self, timeout: float) -> bool:
        """Return whether it was committed, False without a candidate; raise what else it was."""
        deadline = self._session.now() + timeout
        again = False
        while True:
            answer = self._ask(deadline)
            if answer is None:
                raise self._untold(f"no answer within {timeout:g} s")
            if not (isinstance(answer, Failure) and answer.fault is Fault.UNKNOWN):
                return self._judge(answer, again=again)
            again = True

    def _ask(self, deadline: float) -> Any:
        """Send it and wait; nothing is queued while the link is down. None: no answer by then."""
        session = self._session
        if not self._linked():
            with session.changed:
                left = max(deadline - session.now(), 0.0)
                session.changed.wait_for(lambda: self._linked() or self._leadership.reason, left)
        self._check()
        if not self._linked():
            return None
        self._lost_link = session.connected_at
        awaited = session.gateway.commit(self._operations)
        self.settled = False
        return awaited.wait(max(deadline - session.now(), 0.0))

    def _linked(self) -> bool:
        """Whether there is a connection, and not the one on which an answer was lost."""
        return self._session.connected and self._session.connected_at != self._lost_link

    def _check(self) -> None:
        """It is not sent, or not again, once the leadership is over."""
        try:
            self._leadership.check()
        except Lost as lost:
            if self.settled:
                raise
            raise self._untold(str(lost)) from lost

    def _judge(self, answer: Any, *, again: bool) -> bool:
        """Take the answer: the culprit is the item that failed for a reason of its own."""
        self.settled = True
        index, failure = _culprit(answer)
        if failure is None or (again and index == _MARKER and failure.fault in _MOVED_ON):
            self.marker.move()
            return True
        if index == _CANDIDATE and failure.fault is Fault.NO_NODE:
            return False
        self.settled = index != _MARKER  # somebody has touched it: use it no more
        raise self._refusal(self._operations[index], failure)

    def _refusal(self, operation: Operation, failure: Failure) -> ZkelectError:
        kind, path = type(operation), operation.path
        error: ZkelectError
        if failure.fault is Fault.DENIED:
            parent = kind in (Create, Delete)
            permission, schemes = _PERMISSIONS[kind], self._session.schemes
            error = PermissionDenied(dirname(path) if parent else path, permission, schemes)
        else:
            told = f"{failure}; nothing of the transaction was written"
            error = RequestFailed(path, _NAMES[kind], told)
        error.__cause__ = failure.cause
        return error

    def _untold(self, why: str) -> RequestFailed:
        told = "nothing was sent" if self.settled else "it may have been committed"
        return RequestFailed(self._leadership.path, "commit", f"{why}; {told}")


def _culprit(answer: Any) -> tuple[int, Failure | None]:
    """Return which item failed for its own reason, and why; of a whole request, the first write."""
    if isinstance(answer, Failure):
        return _CANDIDATE + 1, answer
    found: tuple[int, Failure | None] = _MARKER, None
    for index, item in enumerate(answer):
        if isinstance(item, Failure):
            if item.fault is not Fault.ROLLED_BACK:
                return index, item
            found = index, item
    return found
