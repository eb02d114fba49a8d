"""ZooKeeper's own transaction logs: which znode existed when, whatever clients were told.

The format is that of ZooKeeper 3.5 to 3.9: ``FileTxnLog`` frames the transactions,
``zookeeper.jute`` (module ``org.apache.zookeeper.txn``) lays them out. Read are creations,
deletions and ends of sessions; the rest is passed over.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["BadLog", "Transaction", "committed", "in_effect", "read", "transactions_in"]

_HEADER: Final = struct.Struct("!4siq")  # FileHeader: magic, version, dbid
_FRAME: Final = struct.Struct("!qi")  # checksum, length of what it was taken of
_TXN: Final = struct.Struct("!qiqqi")  # TxnHeader: session, cxid, zxid, milliseconds, type
_MAGIC: Final = b"ZKLG"
_VERSION: Final = 2
_END_OF_RECORD: Final = b"B"

# ZooDefs.OpCode. A create2 is logged as its own type, with the record of a create.
_CREATIONS: Final = frozenset({1, 15, 19, 21})  # create, create2, container, with TTL
_DELETIONS: Final = frozenset({2, 20})  # delete, of a container
_MULTI: Final = 14
_CLOSE_SESSION: Final = -11


class BadLog(Exception):
    """A file is no transaction log that we can read."""


@attrs.frozen(kw_only=True)
class Transaction:
    """What one transaction changed.

    :ivar wall: wall clock of the ensemble leader when it prepared this, in seconds, rounded
        down to milliseconds; the commit came later.
    :ivar session: who asked for it, signed. :ivar closed: it ended that session.
    :ivar created, deleted: paths of znodes.
    """

    zxid: int
    wall: float
    session: int
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    closed: bool = False


def read(data_directories: Sequence[Path]) -> tuple[Transaction, ...]:
    """Read the logs of all servers of an ensemble, and return what was committed, in order.

    :param data_directories: each server's dataDir. :raises BadLog: a log cannot be read.
    """
    return committed([_logged(directory) for directory in data_directories])


def committed(logs: Sequence[Mapping[int, Transaction]]) -> tuple[Transaction, ...]:
    """Return the transactions that a majority of the servers has logged.

    A committed one was logged by a majority and is never cut off again; one that a deposed
    leader proposed in vain is cut off, or stays in its own log alone.
    """
    counts = Counter(zxid for log in logs for zxid in log)
    everything = {zxid: one for log in logs for zxid, one in log.items()}
    agreed = (zxid for zxid, count in counts.items() if 2 * count > len(logs))
    return in_effect([everything[zxid] for zxid in sorted(agreed)])


def in_effect(transactions: Sequence[Transaction]) -> tuple[Transaction, ...]:
    """Return the transactions without the ends that never came to pass.

    ZooKeeper 3.8.0 can log a proposal of a deposed leader on all servers and apply it on none:
    seen once in two hours of chaos, as sessions whose end was in all three logs, and that went
    on, with their znodes. What shows it is the log itself: a session that is ended does nothing
    later, and a znode with a number of its own, that nobody made again, is deleted once.
    """
    kept: list[Transaction] = []
    active: set[int] = set()
    doomed: set[str] = set()
    for one in reversed(transactions):
        went_on = one.closed and one.session in active
        deleted = tuple(path for path in one.deleted if path not in doomed and not went_on)
        kept.append(attrs.evolve(one, deleted=deleted, closed=one.closed and not went_on))
        if not one.closed:  # two ends of one session are no sign: it may be closed and expire
            active.add(one.session)
        doomed.update(deleted)
        doomed.difference_update(one.created)
    return tuple(reversed(kept))


def transactions_in(data: bytes, name: str = "log") -> Iterator[Transaction]:
    """Read one file, up to its padding or to a transaction that a kill has torn."""
    if len(data) < _HEADER.size:
        return  # created, and killed before the header was written
    magic, version, _ = _HEADER.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise BadLog(f"{name} begins with {magic!r}, version {version}")
    at = _HEADER.size
    while at + _FRAME.size <= len(data):
        checksum, length = _FRAME.unpack_from(data, at)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        at += _FRAME.size + length + 1
        if length <= 0 or data[at - 1 : at] != _END_OF_RECORD or zlib.adler32(body) != checksum:
            return
        yield _transaction(body)


def _logged(directory: Path) -> dict[int, Transaction]:
    files = sorted((directory / "version-2").glob("log.*"), key=_first_zxid)
    found = (one for file in files for one in transactions_in(file.read_bytes(), str(file)))
    return {one.zxid: one for one in found}


def _first_zxid(file: Path) -> int:
    return int(file.suffix[1:], 16)


def _transaction(body: bytes) -> Transaction:
    session, _, zxid, milliseconds, kind = _TXN.unpack_from(body)
    changes = tuple(_changes(kind, body[_TXN.size :]))
    return Transaction(
        zxid=zxid,
        wall=milliseconds / 1000,
        session=session,
        created=tuple(path for what, path in changes if what in _CREATIONS),
        deleted=tuple(path for what, path in changes if what not in _CREATIONS),
        closed=kind == _CLOSE_SESSION,
    )


def _changes(kind: int, record: bytes) -> Iterator[tuple[int, str]]:
    """Return the type and path of each change in a record."""
    if kind in _CREATIONS or kind in _DELETIONS:
        yield kind, _text(record, 0)[0]
    elif kind == _CLOSE_SESSION:
        yield from ((kind, path) for path in _texts(record))
    elif kind == _MULTI:
        for part, data in _parts(record):
            yield from _changes(part, data)


def _texts(record: bytes) -> Iterable[str]:
    """CloseSessionTxn: the ephemeral znodes that went with it; 3.5 has no record at all."""
    at = 4
    for _ in range(_integer(record, 0) if record else 0):
        text, at = _text(record, at)
        yield text


def _parts(record: bytes) -> Iterator[tuple[int, bytes]]:
    """MultiTxn: a vector of Txn, each a type and a buffer."""
    at = 4
    for _ in range(_integer(record, 0)):
        length = _integer(record, at + 4)
        yield _integer(record, at), record[at + 8 : at + 8 + length]
        at += 8 + max(length, 0)


def _text(record: bytes, at: int) -> tuple[str, int]:
    end = at + 4 + _integer(record, at)
    return record[at + 4 : end].decode("utf-8"), end


def _integer(record: bytes, at: int) -> int:
    return int.from_bytes(record[at : at + 4], "big", signed=True)
