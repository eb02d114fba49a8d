"""Requests to ZooKeeper: sent without waiting, answered in the order they were sent.

This is the edge where kazoo's exceptions are translated, once: an answer is a value
or a :class:`Failure`. kazoo hands some answers over in two steps, so that a later one
may overtake; here they are put back in the order in which the server gave them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Final

import attrs
from kazoo import exceptions as kz
from kazoo.client import KazooClient
from kazoo.protocol.states import EventType

from zkelect.session.clock import Clock

__all__ = [
    "Awaited",
    "Check",
    "Create",
    "Delete",
    "Failure",
    "Fault",
    "Gateway",
    "Operation",
    "Put",
    "Stat",
    "Watch",
]


class Fault(StrEnum):
    """Why a request failed, as far as it makes a difference here."""

    NO_NODE = "no node"
    NODE_EXISTS = "node exists"
    BAD_VERSION = "bad version"
    DENIED = "denied"
    INVALID_ACL = "invalid ACL"
    UNIMPLEMENTED = "unimplemented"
    UNKNOWN = "outcome unknown"
    ROLLED_BACK = "rolled back"
    OTHER = "other"


_FAULTS: Final = (
    (kz.NoNodeError, Fault.NO_NODE),
    (kz.NodeExistsError, Fault.NODE_EXISTS),
    (kz.BadVersionError, Fault.BAD_VERSION),
    (kz.NoAuthError, Fault.DENIED),
    (kz.InvalidACLError, Fault.INVALID_ACL),
    (kz.UnimplementedError, Fault.UNIMPLEMENTED),
    ((kz.RolledBackError, kz.RuntimeInconsistency), Fault.ROLLED_BACK),
    (
        (
            kz.ConnectionLoss,
            kz.ConnectionClosedError,
            kz.SessionExpiredError,
            kz.SessionMovedError,
            kz.AuthFailedError,
            kz.OperationTimeoutError,
            RuntimeError,  # kazoo's, "xids do not match": a reply is lost, the link ends with it
        ),
        Fault.UNKNOWN,
    ),
)


@attrs.frozen(kw_only=True)
class Failure:
    """A request that failed. ``cause`` is kazoo's exception."""

    fault: Fault
    cause: Exception

    def __str__(self) -> str:
        """Say it as ZooKeeper does."""
        told = str(self.cause)
        return f"{type(self.cause).__name__}: {told}" if told else type(self.cause).__name__


@attrs.frozen(kw_only=True)
class Stat:
    """What we need of a znode's stat."""

    czxid: int
    version: int
    owner: int


@attrs.frozen(kw_only=True)
class Check:
    """In a multi: the znode exists, at that version unless None."""

    path: str
    version: int | None = None


@attrs.frozen(kw_only=True)
class Put:
    """In a multi: set the data, at that version unless None."""

    path: str
    data: bytes
    version: int | None = None


@attrs.frozen(kw_only=True)
class Create:
    """In a multi: create a znode of that very name."""

    path: str
    data: bytes
    ephemeral: bool = False


@attrs.frozen(kw_only=True)
class Delete:
    """In a multi: delete the znode, at that version unless None."""

    path: str
    version: int | None = None


Operation = Check | Put | Create | Delete
Done = Callable[[Any], None]
Watch = tuple[object, Callable[[bool], None]]
"""Who watches, and what to call with whether the znode was deleted."""

_ANY_VERSION: Final = -1


@attrs.frozen
class _Ear:
    """One watch of ours on one path; equal ones are one to kazoo, so they never pile up."""

    path: str
    hear: Callable[[str, Any], None]

    def __call__(self, event: Any) -> None:
        self.hear(self.path, event)


@attrs.define
class _Request:
    asked: float
    done: Done
    answer: Any = None
    answered: bool = False


class Awaited:
    """An answer for which a thread waits by itself, which takes one change of threads less."""

    def __init__(self, result: Any, read: Callable[[Any], Any]) -> None:
        self._result, self._read = result, read

    def wait(self, timeout: float) -> Any:
        """Return the value or a :class:`Failure`; None: not within so many seconds."""
        if not self._result.wait(timeout):
            return None
        error = self._result.exception
        return self._read(self._result.value) if error is None else _failure(error)


class Gateway:
    """Sends requests over one kazoo client and never waits.

    ``done`` is called with the value or a :class:`Failure`, on a thread of kazoo's.

    Needs the session's lock, and calls back under it.

    :param deliver: makes those calls, with the lock.
    """

    def __init__(
        self, client: KazooClient, clock: Clock, acl: Sequence[Any], deliver: Callable[..., None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._acl = list(acl)
        self._deliver = deliver
        self._requests: deque[_Request] = deque()
        self._arrived = -math.inf
        self._watches: dict[str, dict[object, Callable[[bool], None]]] = {}

    def silent_since(self) -> float | None:
        """Return since when the server owes us an answer, None if it owes none.

        Answers come in the order of the requests, so while any comes the link is alive,
        however long the queue; pings do not count, for a server without a quorum answers
        them too.
        """
        if not self._requests:
            return None
        return max(self._requests[0].asked, self._arrived)

    def create_candidate(self, path: str, data: bytes, done: Done) -> None:
        """Create an ephemeral sequential znode; the answer is its path and Stat (Create2)."""
        self._send(
            lambda: self._client.create_async(
                path, data, acl=self._acl, ephemeral=True, sequence=True, include_data=True
            ),
            lambda value: (value[0], _stat(value[1])),
            done,
        )

    def create(self, path: str, data: bytes, done: Done) -> None:
        """Create a persistent znode; the answer is its path."""
        self._send(lambda: self._client.create_async(path, data, acl=self._acl), _same, done)

    def ensure(self, path: str, done: Done) -> None:
        """Make a persistent znode and all above it, where missing."""
        self._send(lambda: self._client.ensure_path_async(path, acl=self._acl), _same, done)

    def children(self, path: str, done: Done) -> None:
        """Read the names of the children, as a tuple."""
        self._send(lambda: self._client.get_children_async(path), tuple, done)

    def get(self, path: str, done: Done, watch: Watch | None = None) -> None:
        """Read data and Stat; ``watch`` hears once whether the znode was deleted."""
        heard = self._ear(path, watch)
        self._send(
            lambda: self._client.get_async(path, watch=heard),
            lambda value: (value[0], _stat(value[1])),
            done,
        )

    def exists(self, path: str, done: Done, watch: Watch | None = None) -> None:
        """Read the Stat, None without a znode; for paths that we may not read."""
        heard = self._ear(path, watch)
        self._send(
            lambda: self._client.exists_async(path, watch=heard),
            lambda value: None if value is None else _stat(value),
            done,
        )

    def delete(self, path: str, done: Done) -> None:
        """Delete a znode, whatever its version."""
        self._send(lambda: self._client.delete_async(path), _same, done)

    def multi(self, operations: Sequence[Operation], done: Done) -> None:
        """Commit all or none; the answer has an item for each: a value or a Failure.

        kazoo returns errors as list items, so every item must be looked at.
        """
        self._send(lambda: self._transaction(operations).commit_async(), _items, done)

    def commit(self, operations: Sequence[Operation]) -> Awaited:
        """Commit all or none, as :meth:`multi` does, for a thread that waits for the answer.

        Needs no lock. Its silence is not counted: the probes tell when the link is dead.
        """
        return Awaited(self._transaction(operations).commit_async(), _items)

    def _transaction(self, operations: Sequence[Operation]) -> Any:
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Check(path=path, version=version):
                    transaction.check(path, _asked(version))
                case Put(path=path, data=data, version=version):
                    transaction.set_data(path, data, _asked(version))
                case Create(path=path, data=data, ephemeral=ephemeral):
                    transaction.create(path, data, acl=self._acl, ephemeral=ephemeral)
                case Delete(path=path, version=version):
                    transaction.delete(path, _asked(version))
        return transaction

    def _send(self, send: Callable[[], Any], read: Callable[[Any], Any], done: Done) -> None:
        request = _Request(self._clock.boottime(), done)
        self._requests.append(request)
        try:
            result = send()
        except BaseException:
            self._requests.pop()  # it was never sent, so no answer is owed
            raise
        result.rawlink(partial(self._receive, request, read))

    def _receive(self, request: _Request, read: Callable[[Any], Any], result: Any) -> None:
        error = result.exception
        answer = read(result.value) if error is None else _failure(error)
        self._deliver(self._arrive, request, answer)

    def _arrive(self, request: _Request, answer: Any) -> None:
        request.answer, request.answered = answer, True
        self._arrived = self._clock.boottime()
        while self._requests and self._requests[0].answered:
            first = self._requests.popleft()
            first.done(first.answer)

    def unwatch(self, path: str, watcher: object) -> None:
        """Call this watcher of that path no more; the server is not asked to forget it."""
        watchers = self._watches.get(path, {})
        watchers.pop(watcher, None)
        if not watchers:
            self._watches.pop(path, None)

    def _ear(self, path: str, watch: Watch | None) -> _Ear | None:
        if watch is None:
            return None
        watcher, call = watch
        self._watches.setdefault(path, {})[watcher] = call
        return _Ear(path, self._hear)

    def _hear(self, path: str, event: Any) -> None:
        """Pass on what happened to the znode; NONE only says that the watch is gone."""
        if event.type != EventType.NONE:
            self._deliver(self._tell, path, event.type == EventType.DELETED)

    def _tell(self, path: str, deleted: bool) -> None:
        for call in self._watches.pop(path, {}).values():
            call(deleted)


def _asked(version: int | None) -> int:
    return _ANY_VERSION if version is None else version


def _failure(error: Exception) -> Failure:
    for classes, fault in _FAULTS:
        if isinstance(error, classes):
            return Failure(fault=fault, cause=error)
    return Failure(fault=Fault.OTHER, cause=error)


def _items(results: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_failure(item) if isinstance(item, Exception) else item for item in results)


def _stat(stat: Any) -> Stat:
    return Stat(czxid=stat.czxid, version=stat.version, owner=stat.ephemeralOwner)


def _same(value: Any) -> Any:
    return value
