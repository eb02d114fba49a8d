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

from zkelect.session.access import format_entry
from zkelect.session.clock import Clock
from zkelect.session.details import details_of

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
    """What we need of a znode's stat.

    :ivar owner: session id of an ephemeral one, otherwise 0.
    :ivar created: wall clock of the ensemble's leader, seconds since 1970: for people.
    """

    czxid: int
    version: int
    owner: int
    created: float = 0.0


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

WINDOW: Final = 128
"""Requests under way at a time; more wait here until one of them is answered.

So a probe never waits for more than these, however many candidates join at once. An adopted
client wakes its thread by a byte in a pair of sockets for each request, and the pair takes 278
(measured on Linux; see :class:`Doorbell` for our own clients).
"""

LATE: Final = 0.1
"""Seconds: while the oldest request is unanswered for so long no more are sent. On a busy server
each of the window may take some milliseconds, and the probes behind them come too late to renew a
lease of two seconds: a crowd that lost it stands again, all at once, and loses it again."""


@attrs.frozen
class _Ear:
    """One watch of ours on one path; equal ones are one to kazoo, so they never pile up."""

    path: str
    hear: Callable[[str, Any], None]

    def __call__(self, event: Any) -> None:
        self.hear(self.path, event)


@attrs.define(eq=False)
class _Request:
    send: Callable[[], Any]
    read: Callable[[Any], Any]
    done: Done
    asked: float = 0.0
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
        self._waiting: deque[_Request] = deque()
        self._arrived = -math.inf
        self._watches: dict[str, tuple[Watch, ...]] = {}
        self._hear: Final = self._pass_on  # one object for all ears

    @property
    def under_way(self) -> int:
        """How many requests are; those that wait for their turn here are not."""
        return len(self._requests)

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn here."""
        return len(self._waiting)

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

    def details(self, path: str, done: Done) -> None:
        """Read all that the stat tells, None without a znode."""
        self._send(
            lambda: self._client.exists_async(path),
            lambda value: None if value is None else details_of(value),
            done,
        )

    def acl(self, path: str, done: Done) -> None:
        """Read the ACL, its entries as text."""
        self._send(
            lambda: self._client.get_acls_async(path),
            lambda value: tuple(map(format_entry, value[0])),
            done,
        )

    def delete(self, path: str, done: Done) -> None:
        """Delete a znode, whatever its version."""
        self._send(lambda: self._client.delete_async(path), _same, done)

    def multi(self, operations: Sequence[Operation], done: Done, *, urgent: bool = False) -> None:
        """Commit all or none; the answer has an item for each: a value or a Failure.

        kazoo returns errors as list items, so every item must be looked at.

        :param urgent: pass those who wait for others to be answered.
        """
        self._send(lambda: self._transaction(operations).commit_async(), _items, done, urgent)

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

    def _send(
        self,
        send: Callable[[], Any],
        read: Callable[[Any], Any],
        done: Done,
        urgent: bool = False,
    ) -> None:
        request = _Request(send, read, done)
        if urgent or (self._has_room() and not self._waiting):
            self._begin(request)
        else:
            self._waiting.append(request)

    def _has_room(self) -> bool:
        """Whether a probe sent behind one more would still come to its turn soon."""
        if not self._requests:
            return True
        waits = self._clock.boottime() - self._requests[0].asked
        return len(self._requests) < WINDOW and waits < LATE

    def _begin(self, request: _Request) -> None:
        request.asked = self._clock.boottime()
        self._requests.append(request)
        try:
            result = request.send()
        except BaseException:
            self._requests.pop()  # it was never sent, so no answer is owed
            raise
        result.rawlink(partial(self._receive, request))

    def _receive(self, request: _Request, result: Any) -> None:
        error = result.exception
        answer = request.read(result.value) if error is None else _failure(error)
        self._deliver(self._arrive, request, answer)

    def _arrive(self, request: _Request, answer: Any) -> None:
        request.answer, request.answered = answer, True
        self._arrived = self._clock.boottime()
        self._settle()

    def _settle(self) -> None:
        """Hand over what is answered, in order, and let as many that wait begin."""
        while self._requests and self._requests[0].answered:
            first = self._requests.popleft()
            first.done(first.answer)
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._has_room() and self._client.connected:
            request = self._waiting.popleft()
            try:
                self._begin(request)
            except Exception as error:  # noqa: BLE001  # its caller is gone, so it is told
                request.done(_failure(error))

    def drop(self) -> None:
        """Fail what waits, behind what was sent: nothing is kept for the next connection."""
        lost = Failure(fault=Fault.UNKNOWN, cause=kz.ConnectionLoss())
        for request in self._waiting:
            request.answer, request.answered = lost, True
        self._requests.extend(self._waiting)
        self._waiting.clear()
        self._settle()

    def unwatch(self, path: str, watcher: object) -> None:
        """Call this watcher of that path no more; the server is not asked to forget it."""
        others = self._others(path, watcher)
        if others:
            self._watches[path] = others
        else:
            self._watches.pop(path, None)

    def _others(self, path: str, watcher: object) -> tuple[Watch, ...]:
        return tuple(watch for watch in self._watches.get(path, ()) if watch[0] is not watcher)

    def _ear(self, path: str, watch: Watch | None) -> _Ear | None:
        if watch is None:
            return None
        self._watches[path] = (*self._others(path, watch[0]), watch)
        return _Ear(path, self._hear)

    def _pass_on(self, path: str, event: Any) -> None:
        """Pass on what happened to the znode; NONE only says that the watch is gone."""
        if event.type != EventType.NONE:
            self._deliver(self._tell, path, event.type == EventType.DELETED)

    def _tell(self, path: str, deleted: bool) -> None:
        for _, call in self._watches.pop(path, ()):
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
    return Stat(
        czxid=stat.czxid,
        version=stat.version,
        owner=stat.ephemeralOwner,
        created=stat.ctime / 1000,
    )


def _same(value: Any) -> Any:
    return value
