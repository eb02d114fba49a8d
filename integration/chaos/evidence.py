"""Puts what stores and servers have kept beside the history, in the same form and order."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from chaos import history, transaction_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from chaos.history import Event
    from chaos.stores import Store
    from chaos.transaction_log import Transaction

__all__ = ["collect"]


def collect(
    directory: Path, path: str, stores: Mapping[str, Store], data_directories: Sequence[Path]
) -> None:
    """Write ``row``, ``created``, ``deleted`` and ``closed`` events into the run's folder.

    :param path: of the election; other znodes are left out.
    :param data_directories: of the servers.
    """
    for name, store in stores.items():
        _write_rows(directory, name, store)
    beats = [event for event in history.read(directory).events if event.kind == "beaten"]
    transactions = transaction_log.read(data_directories)
    _write_transactions(directory, path, transactions, beats)


def _write_rows(directory: Path, name: str, store: Store) -> None:
    """Rows keep the order of their commits, also where their instants would change it."""
    writer = history.Writer(directory, name)
    rows, at = store.log(), 0.0
    for row in rows:
        at = max(at, row.at)
        writer.write("row", at=at, op=row.op, after=row.after, token=row.token)
    writer.write("logged", rows=len(rows))


def _write_transactions(
    directory: Path, path: str, transactions: Sequence[Transaction], beats: Sequence[Event]
) -> None:
    writer = history.Writer(directory, "zookeeper")
    inside = f"{path}/"
    for one in transactions:
        at = _boot_instant(one.wall, beats)
        session = f"{one.session:#x}"
        for kind, paths in (("created", one.created), ("deleted", one.deleted)):
            for znode in paths:
                if znode.startswith(inside):
                    writer.write(kind, at=at, node=znode.removeprefix(inside), session=session)
        if one.closed:
            writer.write("closed", at=at, session=session)
    writer.write("replayed", transactions=len(transactions))


def _boot_instant(wall: float, beats: Sequence[Event]) -> float:
    """Translate by the last time that both clocks were read together."""
    place = bisect_right(beats, wall, key=lambda beat: float(beat["wall"]))
    beat = beats[max(place - 1, 0)]
    return float(wall - beat["wall"] + beat.at)
