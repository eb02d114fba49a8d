"""Znodes in memory, and what a transaction does to them.

The rules are those of ZooKeeper 3.8; the contract stories hold a real server to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from posixpath import dirname
from typing import Any, Final

import attrs
from attrs import evolve

__all__ = [
    "LARGEST_NUMBER",
    "Check",
    "Code",
    "Create",
    "Delete",
    "Draft",
    "Happened",
    "Operation",
    "Put",
    "Refusal",
    "Stat",
    "Transaction",
    "Znode",
    "perform",
]

LARGEST_NUMBER: Final = 2**31 - 1
"""At this number a parent's counter sticks: the next create finds its znode there already."""

_ANY: Final = -1


class Code(IntEnum):
    """Error codes of replies (``org.apache.zookeeper.KeeperException.Code``)."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112


class Refusal(Exception):  # not an error: an answer of the server's
    """The server does not do it. ``code`` says why."""

    def __init__(self, code: Code) -> None:
        self.code = code
        super().__init__(code.name)


class Happened(StrEnum):
    """What a watch is told; the spelling is kazoo's."""

    CREATED = "CREATED"
    DELETED = "DELETED"
    CHANGED = "CHANGED"
    NONE = "NONE"


@attrs.frozen(kw_only=True)
class Stat:
    """What is known of a znode beside its data; the spelling is kazoo's."""

    czxid: int
    version: int
    ephemeralOwner: int  # noqa: N815  # kazoo's spelling
    cversion: int = 0
    numChildren: int = 0  # noqa: N815
    ctime: int = 0


@attrs.frozen(kw_only=True)
class Znode:
    """One znode at one instant.

    :param owner: session id of an ephemeral one, otherwise 0.
    :param creations: the parent's counter, which numbers sequential children: it counts every
        child ever made, sequential or not, and lives and dies with the parent.
    """

    czxid: int
    data: bytes = b""
    version: int = 0
    owner: int = 0
    creations: int = 0
    children: frozenset[str] = frozenset()

    @property
    def stat(self) -> Stat:
        """What a reply tells of it."""
        return Stat(
            czxid=self.czxid,
            version=self.version,
            ephemeralOwner=self.owner,
            cversion=2 * self.creations - len(self.children),
            numChildren=len(self.children),
        )


# --- what can be asked ----------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Create:
    """Make a znode; the answer is its path and Stat. ``owner``: the session it goes with, or 0."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    owner: int = 0
    sequential: bool = False


@attrs.frozen(kw_only=True)
class Put:
    """Set the data, at that version; the answer is the Stat."""

    path: str
    data: bytes
    version: int = _ANY


@attrs.frozen(kw_only=True)
class Delete:
    """Delete a znode without children, at that version."""

    path: str
    version: int = _ANY


@attrs.frozen(kw_only=True)
class Check:
    """Find a znode, at that version."""

    path: str
    version: int = _ANY


Operation = Create | Put | Delete | Check


@attrs.frozen(kw_only=True)
class Transaction:
    """What one zxid stands for: the znodes it changed (None: gone), and what watches hear."""

    zxid: int
    changes: Mapping[str, Znode | None] = attrs.field(factory=dict)
    events: tuple[tuple[str, Happened], ...] = ()


# --- doing it ---------------------------------------------------------------------------------


def perform(
    tree: Mapping[str, Znode], zxid: int, operations: Sequence[Operation]
) -> tuple[Transaction, list[Any]]:
    """Do all or none of it; a refused transaction takes its zxid all the same.

    :returns: the transaction, and an answer to each operation. Of a refused one the items
        before the culprit say OK, which stands for "rolled back", and those behind it
        RUNTIME_INCONSISTENCY: they were not even tried.
    """
    draft = Draft(tree, zxid)
    answers: list[Any] = []
    for operation in operations:
        try:
            answers.append(draft.do(operation))
        except Refusal as refusal:
            before, behind = len(answers), len(operations) - len(answers) - 1
            never = [Refusal(Code.RUNTIME_INCONSISTENCY) for _ in range(behind)]
            undone = [Refusal(Code.OK) for _ in range(before)]
            return Transaction(zxid=zxid), [*undone, refusal, *never]
    return draft.finish(), answers


class Draft:
    """A transaction in the making: each operation sees what those before it have done."""

    def __init__(self, tree: Mapping[str, Znode], zxid: int) -> None:
        self._tree = tree
        self._zxid = zxid
        self._changes: dict[str, Znode | None] = {}
        self._events: list[tuple[str, Happened]] = []

    def do(self, operation: Operation) -> Any:
        """Do one operation, or raise its Refusal."""
        match operation:
            case Create():
                return self._create(operation)
            case Put(path=path, data=data, version=version):
                return self._put(path, data, version)
            case Delete(path=path, version=version):
                self._delete(path, version)
            case Check(path=path, version=version):
                self._find(path, version)
        return True

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete znodes, as the end of their session does."""
        for path in paths:
            self._delete(path, _ANY)

    def finish(self) -> Transaction:
        """Return what has come of it."""
        return Transaction(zxid=self._zxid, changes=self._changes, events=tuple(self._events))

    def _find(self, path: str, version: int = _ANY) -> Znode:
        znode = self._changes[path] if path in self._changes else self._tree.get(path)
        if znode is None:
            raise Refusal(Code.NO_NODE)
        if version not in (_ANY, znode.version):
            raise Refusal(Code.BAD_VERSION)
        return znode

    def _create(self, operation: Create) -> tuple[str, Stat]:
        above, parent = self._parent(operation.path)
        path = operation.path
        if operation.sequential:
            path += f"{parent.creations:010d}"
        name = path.rpartition("/")[2]
        if name in parent.children:
            raise Refusal(Code.NODE_EXISTS)
        if parent.owner:
            raise Refusal(Code.NO_CHILDREN_FOR_EPHEMERALS)
        made = Znode(czxid=self._zxid, data=operation.data, owner=operation.owner)
        count = min(parent.creations + 1, LARGEST_NUMBER)
        self._changes[above] = evolve(parent, creations=count, children=parent.children | {name})
        self._set(path, made, Happened.CREATED)
        return path, made.stat

    def _put(self, path: str, data: bytes, version: int) -> Stat:
        found = self._find(path, version)
        changed = evolve(found, data=data, version=found.version + 1)
        self._set(path, changed, Happened.CHANGED)
        return changed.stat

    def _delete(self, path: str, version: int) -> None:
        if self._find(path, version).children:
            raise Refusal(Code.NOT_EMPTY)
        above, parent = self._parent(path)
        self._changes[above] = evolve(parent, children=parent.children - {path.rpartition("/")[2]})
        self._set(path, None, Happened.DELETED)

    def _parent(self, path: str) -> tuple[str, Znode]:
        above = dirname(path)
        return above, self._find(above)

    def _set(self, path: str, znode: Znode | None, happened: Happened) -> None:
        self._changes[path] = znode
        self._events.append((path, happened))
