"""The last slot of each job, in ZooKeeper: what no later leader begins again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

import attrs

import zkelect
from zkelect.stores import ZnodeFence

__all__ = ["Mark", "Marks"]

_FOLDER: Final = ".cron"


@attrs.frozen(kw_only=True)
class Mark:
    """How far a job is.

    :ivar slot: the last one that was begun, in UTC. :ivar ended: whether that run has ended.
    """

    slot: datetime
    ended: bool = False


class Marks:
    """The marks of a leader's jobs: znodes beside the election, one for each job.

    A slot is written in one commit with a check of the leader's candidate: whoever leads later
    reads it, in the session that it leads in, so behind all that was committed before.
    """

    def __init__(self, session: zkelect.Session, leadership: zkelect.Leadership) -> None:
        self._znodes = zkelect.Znodes(session)
        self._fence = ZnodeFence(leadership)
        self._folder = leadership.path + _FOLDER

    def read(self, job: str) -> Mark | None:
        """Return the mark of a job; None: no slot of it was ever begun."""
        path = self._path(job)
        self._znodes.ensure(path)
        znode = self._znodes.get(path)
        return None if znode is None or not znode.data else _decode(path, znode.data)

    def begin(self, job: str, mark: Mark) -> None:
        """Write down what is about to be begun.

        :raises zkelect.Lost, zkelect.Fenced: we do not lead any more; nothing was written.
        :raises zkelect.RequestFailed: it is not known whether it was written.
        """
        with self._fence.transaction() as transaction:
            transaction.set_data(self._path(job), _encode(mark))

    def end(self, job: str, slot: datetime) -> None:
        """Write down that this run has ended, also when we lead no more: it has.

        What a later leader has written meanwhile stays.
        """
        path, begun = self._path(job), _encode(Mark(slot=slot))
        znode = self._znodes.get(path)
        if znode is not None and znode.data == begun:
            ended = _encode(Mark(slot=slot, ended=True))
            self._znodes.replace(path, ended, version=znode.version)

    def _path(self, job: str) -> str:
        return f"{self._folder}/{job}"


def _encode(mark: Mark) -> bytes:
    return json.dumps({"slot": mark.slot.isoformat(), "ended": mark.ended}).encode("ascii")


def _decode(path: str, data: bytes) -> Mark:
    """Read a mark; one that cannot be read must not become one that is missing."""
    try:
        found = json.loads(data)
        return Mark(
            slot=datetime.fromisoformat(found["slot"]).astimezone(UTC), ended=found["ended"]
        )
    except (ValueError, KeyError, TypeError) as error:
        expected = f"the mark of a job, such as {_encode(Mark(slot=datetime.now(UTC))).decode()}"
        raise zkelect.InvalidArgument(path, data, f"{expected}; mend it, or empty it") from error
