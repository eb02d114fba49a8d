"""What one candidate asks of ZooKeeper: each effect becomes requests, each answer an event."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from posixpath import dirname
from typing import Any, Final, Protocol

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Stamp
from zkelect.core.handover import decode_handover, handover_path
from zkelect.core.record import Record, decode_record, encode_record, record_path
from zkelect.core.znodes import Dialect
from zkelect.errors import (
    PermissionDenied,
    RequestFailed,
    SequenceExhausted,
    ServerTooOld,
    ZkelectError,
)
from zkelect.session.company import Company
from zkelect.session.gateway import Check, Create, Failure, Fault, Gateway, Stat
from zkelect.session.terms import history_path, term_path

__all__ = ["Ensemble", "Requests"]

_log: Final = logging.getLogger("zkelect.session")
_news: Final = logging.getLogger("zkelect")


class Ensemble(Protocol):
    """Whom to ask, and as whom."""

    @property
    def gateway(self) -> Gateway: ...
    @property
    def hosts(self) -> str: ...
    @property
    def schemes(self) -> tuple[str, ...]: ...


class Requests:
    """Performs the effects that need a server; never waits for it.

    An answer of unknown outcome feeds nothing: the connection is gone then, and the
    machine asks anew when the session says that it is resumed.

    :param identity: the bytes of the candidate's znode. :param feed: takes the events.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        path: str,
        dialect: Dialect,
        identity: bytes,
        feed: Callable[[Event], None],
        strict: bool = False,
        priority: int = 0,
    ) -> None:
        self._ensemble = ensemble
        self._company = Company(path, dialect, strict=strict, priority=priority)
        self._attempt: Stamp | None = None
        self._path = path
        self._dialect = dialect
        self._identity = identity
        self._feed = feed
        self._uuid = ""
        self._recognized = ""
        self._known: Record | None = None
        self._watching: list[str] = []

    @property
    def _gateway(self) -> Gateway:
        return self._ensemble.gateway

    # --- joining -----------------------------------------------------------------------------

    def create(self, effect: ev.Create) -> None:
        """Make the candidate; Create2 tells its czxid and owner."""
        self._uuid = effect.uuid
        prefix = self._dialect.prefix(effect.uuid)

        def done(answer: Any) -> None:
            if not isinstance(answer, Failure):
                self._created(effect, *answer)
            elif answer.fault is Fault.NO_NODE:
                self._feed(ev.ParentMissing(stamp=effect.stamp))
            elif answer.fault is Fault.NODE_EXISTS:  # the counter sticks at its end
                self._refuse(effect, SequenceExhausted(self._path, prefix))
            else:
                self._fail(effect, answer, self._path, "create")

        self._gateway.create_candidate(f"{self._path}/{prefix}", self._identity, done)

    def _created(self, effect: ev.Create, path: str, stat: Stat) -> None:
        node = path.rpartition("/")[2]
        self._feed(ev.Created(stamp=effect.stamp, node=node, czxid=stat.czxid, owner=stat.owner))

    def read_roll(self, effect: ev.ReadRoll) -> None:
        """Read children and record; a parent that is missing has no children."""
        roll: list[Any] = []

        def done(answer: Any) -> None:
            children = () if _is(roll[0], Fault.NO_NODE) else roll[0]
            record = _decoded(answer)
            if isinstance(children, Failure):
                self._fail(effect, children, self._path, "read")
            elif (error := self._look_around(effect, children)) is not None:
                self._refuse(effect, error)
            elif isinstance(record, Failure):
                self._fail(effect, record, record_path(self._path), "read")
            else:
                self._company.weigh(children)
                self._known = self._known if record is None else record
                self._feed(ev.Rolled(stamp=effect.stamp, children=children, record=record))

        self._gateway.children(self._path, roll.append)
        self._gateway.get(record_path(self._path), done)

    def _look_around(self, effect: ev.ReadRoll, children: Sequence[str]) -> ZkelectError | None:
        """Judge the company at the first roll of an attempt; who stands, stays."""
        if effect.stamp == self._attempt:
            return None
        self._attempt = effect.stamp
        return self._company.refuse(children)

    def read_record(self, effect: ev.ReadRecord) -> None:
        """Read the record and watch it; one that cannot be read is none."""
        path = record_path(self._path)
        self._note_watch(path)

        def heard(_: bool) -> None:
            self._feed(ev.RecordTouched(stamp=effect.stamp))

        def done(answer: Any) -> None:
            record = _decoded(answer)
            if isinstance(record, Failure):
                if record.fault is Fault.UNKNOWN:
                    return
                _log.error("%s: the record cannot be read: %s", self._path, record)
                record = None
            self._known = self._known if record is None else record
            self._feed(ev.Recorded(stamp=effect.stamp, look=effect.look, record=record))

        self._gateway.get(path, done, watch=(self, heard))

    def make_parent(self, effect: ev.MakeParent) -> None:
        """Make what is missing, all at once as a rule; else one by one, the record first.

        So whoever finds the parent finds the record. A record that was seen before, and
        was deleted by somebody, is made anew as it was.
        """
        record = self._known or Record(uuid=uuid.uuid4().hex)
        missing = [
            (record_path(self._path), encode_record(record)),
            (term_path(self._path), b"{}"),
            (history_path(self._path), b"[]"),
            (self._path, b""),
        ]

        def make(answer: Any) -> None:
            if isinstance(answer, Failure) and answer.fault is not Fault.NODE_EXISTS:
                self._fail(effect, answer, self._path, "create")
            elif missing:
                self._gateway.create(*missing.pop(0), make)
            else:
                self._feed(ev.ParentMade(stamp=effect.stamp))

        def made(answer: Any) -> None:
            if _is(answer, Fault.UNKNOWN):
                return
            if not any(isinstance(item, Failure) for item in answer):
                self._feed(ev.ParentMade(stamp=effect.stamp))
            elif (above := dirname(self._path)) == "/":
                make(None)
            else:
                self._gateway.ensure(above, make)

        self._gateway.multi([Create(path=path, data=data) for path, data in missing], made)

    def commit(self, effect: ev.Commit) -> None:
        """Pass a barrier. ``sync`` is none: a deposed leader of a minority answers it."""

        def done(answer: Any) -> None:
            item = answer if isinstance(answer, Failure) else answer[0]
            if _is(item, Fault.NO_NODE):
                self._feed(ev.ParentMissing(stamp=effect.stamp))
            elif isinstance(item, Failure):
                self._fail(effect, item, self._path, "check")
            else:
                self._feed(ev.Committed(stamp=effect.stamp))

        self._gateway.multi([Check(path=self._path)], done)

    # --- watching ----------------------------------------------------------------------------

    def watch(self, effect: ev.Watch) -> None:
        """Watch by getData: exists would leave a watch behind on each vanished znode."""
        path = f"{self._path}/{effect.node}"
        self._note_watch(path)

        def heard(deleted: bool) -> None:
            kind = ev.Vanished if deleted else ev.Changed
            self._feed(kind(stamp=effect.stamp, node=effect.node))

        def done(answer: Any) -> None:
            if _is(answer, Fault.DENIED):
                self._gateway.exists(path, seen, watch=(self, heard))
            elif isinstance(answer, Failure):
                seen(answer)
            else:
                self._recognize(effect.node, answer[0])
                seen(answer[1])

        def seen(answer: Stat | Failure | None) -> None:
            if answer is None or _is(answer, Fault.NO_NODE):
                self._feed(ev.Vanished(stamp=effect.stamp, node=effect.node))
            elif isinstance(answer, Failure):
                self._fail(effect, answer, path, "read")
            else:
                self._watched(effect, answer)

        self._gateway.get(path, done, watch=(self, heard))

    def _recognize(self, node: str, identity: bytes) -> None:
        """Say so when our predecessor has our name: most often it is our own past."""
        ours = node.startswith(self._dialect.prefix(self._uuid)) or node == self._recognized
        if identity == self._identity and not ours:
            self._recognized = node
            _news.warning(
                "%s: %s stands behind %s, which has the same name: an earlier life of ours, "
                "gone when its session times out, or another candidate; a name is only a label",
                self._path,
                identity.decode("utf-8", "backslashreplace")[:80],
                node,
            )

    def _watched(self, effect: ev.Watch, stat: Stat) -> None:
        self._feed(
            ev.Watched(
                stamp=effect.stamp,
                node=effect.node,
                czxid=stat.czxid,
                owner=stat.owner,
                touched=stat.version > 0,
            )
        )

    def read_handover(self, effect: ev.ReadHandover) -> None:
        """Read the page of the switchover; one that cannot be read is none.

        There need not be one: to evict a leader its znode is written anew, too.
        """
        path = handover_path(self._path)

        def done(answer: Any) -> None:
            if _is(answer, Fault.UNKNOWN):
                return
            if isinstance(answer, Failure):
                if answer.fault is not Fault.NO_NODE:
                    _log.warning("%s: the switchover cannot be read: %s", path, answer)
                self._feed(ev.HandoverRead(stamp=effect.stamp, handover=None))
            else:
                handover = decode_handover(answer[0], answer[1].version)
                self._feed(ev.HandoverRead(stamp=effect.stamp, handover=handover))

        self._gateway.get(path, done)

    def _note_watch(self, path: str) -> None:
        if path not in self._watching:
            self._watching.append(path)

    def unwatch_record(self) -> None:
        """Listen to the record no more, until it is read again."""
        path = record_path(self._path)
        self._watching = [each for each in self._watching if each != path]
        self._gateway.unwatch(path, self)

    def unwatch(self) -> None:
        """Listen to no znode any more."""
        for path in self._watching:
            self._gateway.unwatch(path, self)
        self._watching.clear()

    # --- leaving -----------------------------------------------------------------------------

    def delete(self, effect: ev.Delete | ev.Withdraw) -> None:
        """Delete a znode that carries a uuid of ours."""
        path = f"{self._path}/{effect.node}"
        self._gateway.delete(path, lambda answer: self.deleted(effect, answer))

    def deleted(self, effect: ev.Delete | ev.Withdraw, answer: Any) -> None:
        """Take the answer to a delete; of unknown outcome it is asked again on reconnect."""
        if not isinstance(answer, Failure) or answer.fault is Fault.NO_NODE:
            self._feed(ev.Deleted(stamp=effect.stamp, node=effect.node))
        elif answer.fault is not Fault.UNKNOWN:
            error = self._translate(answer, f"{self._path}/{effect.node}", "delete")
            _log.error("%s", error)
            self._feed(ev.DeleteRefused(stamp=effect.stamp, node=effect.node, error=error))

    # --- failures ----------------------------------------------------------------------------

    def _fail(self, effect: Effect, failure: Failure, path: str, permission: str) -> None:
        if failure.fault is not Fault.UNKNOWN:
            self._refuse(effect, self._translate(failure, path, permission))

    def _refuse(self, effect: Effect, error: ZkelectError) -> None:
        _log.warning("%s", error)
        self._feed(ev.Refused(stamp=effect.stamp, error=error))

    def _translate(self, failure: Failure, path: str, permission: str) -> ZkelectError:
        error: ZkelectError
        if failure.fault is Fault.DENIED:
            error = PermissionDenied(path, permission, self._ensemble.schemes)
        elif failure.fault is Fault.UNIMPLEMENTED:
            error = ServerTooOld(self._ensemble.hosts)
        else:
            error = RequestFailed(path, permission, str(failure))
        error.__cause__ = failure.cause
        return error


def _decoded(answer: Any) -> Record | Failure | None:
    """Read the record from its answer; None when there is none."""
    if _is(answer, Fault.NO_NODE):
        return None
    if isinstance(answer, Failure):
        return answer
    data, stat = answer
    record = decode_record(data, stat.version)
    if record is None:
        cause = ValueError(f"{data[:80]!r} is no record of an election")
        return Failure(fault=Fault.OTHER, cause=cause)
    return record


def _is(answer: Any, fault: Fault) -> bool:
    return isinstance(answer, Failure) and answer.fault is fault
