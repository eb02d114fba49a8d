"""ZooKeeper itself as the guarded store: znodes that only the present leader writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol, Self

from zkelect.errors import Fenced, InvalidArgument, Misuse
from zkelect.stores.fence import Bearer, patience, present, valid_timeout
from zkelect.token import Token

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Batch", "Committing", "Transaction", "ZnodeFence", "valid_path"]

_ANY: Final = -1
_LAST_VERSION: Final = 2**31 - 1
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


class Batch(Protocol):
    """What a leadership commits; a version of None fits any."""

    def check(self, path: str, version: int | None) -> None: ...
    def set_data(self, path: str, data: bytes, version: int | None) -> None: ...
    def create(self, path: str, data: bytes, *, ephemeral: bool) -> None: ...
    def delete(self, path: str, version: int | None) -> None: ...

    def commit(self, timeout: float) -> bool:
        """Commit all or nothing; False, and nothing, if the candidate is gone.

        It is not sent any more once the leadership is over: that raises what ``check`` does.
        """


class Committing(Bearer, Protocol):
    """A leadership that can commit to its own ensemble."""

    @property
    def node(self) -> str:
        """Its candidate's name."""

    def batch(self) -> Batch:
        """Begin a commit that needs the candidate to be there."""


class ZnodeFence:
    """Znodes that are written only while this leadership's candidate znode is there.

    Promises: each transaction is one multi with a check of our candidate: all of it is
    committed while the candidate is there, or nothing. It is committed exactly once, also
    when the answer is lost with the connection: it is then sent again, and a marker of ours
    tells whether the first one was committed.

    Why the check is a fence: ZooKeeper commits one transaction after the other. A successor is
    granted only after the commit that deletes our candidate, by us, by eviction or with our
    session, and no candidate is ever made again under its name: the number at its end is used
    once, and the uuid before it is drawn once. So whatever passes the check comes before
    whatever any later leader reads or writes. Nothing is claimed: the candidate is the mark.

    Does not promise: to guard who writes the same znodes without it; the outcome of a
    transaction whose answer is lost with the session, or not there in time: the error then
    says that it may have been committed, and who comes next finds out by reading.

    Read by :class:`zkelect.Znodes` in the leadership's own session; another one's server may lag.

    Isolation: a multi is atomic; what it must not overtake it names by version. Any number of
    threads may commit at the same time, and the server takes them in any order.

    Cost: one round trip, one commit; the first transaction makes the marker, an ephemeral
    znode beside the election's record, and as many are made as run at the same time.

    :param leadership: whose; a bare token has no session to commit in.
    :param timeout: seconds to wait for the answer, more than 0, or the lease left if that is
        less.
    :raises InvalidArgument: an argument is not what it should be.
    """

    def __init__(self, leadership: Committing, *, timeout: float = 5.0) -> None:
        if isinstance(leadership, Token) or not hasattr(leadership, "batch"):
            raise InvalidArgument("leadership", leadership, "a Leadership: it has the session")
        self._leadership = leadership
        self._timeout = valid_timeout(timeout)

    def transaction(self) -> Transaction:
        """Return a transaction: committed when its block ends well, forgotten otherwise.

        The block raises, at its beginning or its end:

        :raises Lost: the lease is over or suspended; nothing was written.
        :raises Fenced: our candidate is gone; nothing was written.
        :raises PermissionDenied: an ACL is against it; nothing was written.
        :raises RequestFailed: an operation was refused, a version for example, and nothing was
            written; or no answer came and it may have been: the message says which. kazoo's
            error is the ``__cause__``.
        :raises InvalidArgument: more than a server takes in one transaction, a megabyte.
        """
        return Transaction(self._leadership, self._timeout)


class Transaction:
    """Operations to be committed together, in this order, at the end of a ``with`` block.

    Versions count the changes of a znode's data, as its Stat has them; -1 fits any. An empty
    transaction asks nobody.
    """

    def __init__(self, leadership: Committing, timeout: float) -> None:
        self._leadership, self._timeout = leadership, timeout
        self._batch: Batch | None = None
        self._empty = True

    def __enter__(self) -> Self:
        """Begin; the lease is checked, locally."""
        present(self._leadership)
        self._batch = self._leadership.batch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit, unless the block has raised."""
        batch, self._batch = self._batch, None
        if kind is None and batch is not None and not self._empty:
            self._commit(batch)

    def check(self, path: str, version: int = _ANY) -> None:
        """Ask that a znode is there, at this version.

        :raises InvalidArgument: no path, or no version. :raises Misuse: outside of the block.
        """
        where, at = valid_path(path), _valid_version(version)
        self._open().check(where, at)

    def set_data(
        self, path: str, data: bytes | bytearray | memoryview, version: int = _ANY
    ) -> None:
        """Set the data of a znode that is there, at this version; raises as :meth:`check`."""
        where, content, at = valid_path(path), _valid_data(data), _valid_version(version)
        self._open().set_data(where, content, at)

    def create(
        self, path: str, data: bytes | bytearray | memoryview = b"", *, ephemeral: bool = False
    ) -> None:
        """Make a znode of that very name, with the session's ACL; raises as :meth:`check`.

        :param ephemeral: it goes with the session, not with the leadership.
        """
        where, content = valid_path(path), _valid_data(data)
        self._open().create(where, content, ephemeral=ephemeral)

    def delete(self, path: str, version: int = _ANY) -> None:
        """Delete a znode without children, at this version; raises as :meth:`check`."""
        where, at = valid_path(path), _valid_version(version)
        self._open().delete(where, at)

    def _open(self) -> Batch:
        if self._batch is None:
            raise Misuse("this transaction is not open: use it in its with block, and only there")
        self._empty = False
        return self._batch

    def _commit(self, batch: Batch) -> None:
        leadership = self._leadership
        if batch.commit(patience(leadership, self._timeout)):
            return
        leadership.end("fenced")
        raise Fenced(
            store="zookeeper",
            domain=leadership.path,
            token=leadership.token,
            detail=f"our candidate {leadership.node} is gone",
        )


def valid_path(path: str) -> str:
    """Return the path, if it can be one below the session's chroot.

    :raises InvalidArgument: the rules for names are ZooKeeper's (Programmer's Guide, "The
        ZooKeeper Data Model").
    """
    expected = "an absolute znode path such as '/config', in its only spelling"
    if not isinstance(path, str) or not path.startswith("/") or _UNSAFE.search(path):
        raise InvalidArgument("path", path, expected)
    if path != "/" and {"", ".", ".."} & set(path[1:].split("/")):
        raise InvalidArgument("path", path, expected)
    return path


def _valid_data(data: bytes | bytearray | memoryview) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidArgument("data", data, "bytes; encode text first")
    return bytes(data)


def _valid_version(version: int) -> int | None:
    if not isinstance(version, int) or not _ANY <= version <= _LAST_VERSION:
        raise InvalidArgument("version", version, "an integer from 0, or -1 for any")
    return None if version == _ANY else version
