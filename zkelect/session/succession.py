"""The leader's side of a switchover: see to it that the target comes next, then go."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import attrs

from zkelect.core.handover import (
    Handover,
    HandoverState,
    decode_handover,
    encode_handover,
    handover_path,
    next_in_line,
)
from zkelect.core.record import decode_record, record_path
from zkelect.core.znodes import Dialect
from zkelect.session.gateway import Check, Failure, Fault, Operation, Put
from zkelect.session.session import Session
from zkelect.session.ticker import Timer

__all__ = ["Succession"]

_log: Final = logging.getLogger("zkelect")


class Succession:
    """What a leader does for the switchovers that it is asked for.

    It looks who is right behind it: the target, then it writes that it is done, and resigns;
    somebody else, then it looks again when that one is gone. Each write is by the version
    of the page that was read, and fails with our own znode, so that neither a withdrawal nor
    a later leader is written over. Whatever fails, the page is read again and followed; an
    answer of unknown outcome means that the link is down, and the page is read when it is up.

    Everything here runs under the session's lock.

    :param identity: the data of our znode: to write them again tells the heir to read the page.
    :param resign: ends the term.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        dialect: Dialect,
        identity: bytes,
        resign: Callable[[], None],
    ) -> None:
        self._session = session
        self._gateway = session.gateway
        self._path = path
        self._dialect = dialect
        self._identity = identity
        self._resign = resign
        self._handover: Handover | None = None
        self._deadline = 0.0
        self._timer: Timer | None = None
        self._watched: tuple[str, ...] = ()
        self._round = 0

    def follow(self, handover: Handover) -> None:
        """Hear what the page says; repeated after every change of it, and every reconnect."""
        known = self._handover is not None and self._handover.id == handover.id
        if not known and handover.state is not HandoverState.ASKED:
            return
        if not known:
            self._begin(handover)
        self._handover = handover
        self._turn()
        if handover.state is HandoverState.ASKED:
            self._write(self._drive, HandoverState.DRIVEN, "", self._wake_heir(handover))
        elif handover.state is HandoverState.DRIVEN:
            self._look()
        elif handover.state is HandoverState.DONE:
            self._finish(handover)
        else:
            self._drop(handover)

    def stop(self) -> None:
        """The term is over, whatever became of the switchover."""
        handover, self._handover = self._handover, None
        self._turn()
        if self._timer is not None:
            self._timer.cancel()
        if handover is not None and handover.pending:
            _log.warning("%s: the term ended before the %s was done", self._path, handover)

    # --- within ----------------------------------------------------------------------------

    def _begin(self, handover: Handover) -> None:
        self.stop()
        _log.info("%s: asked for a %s", self._path, handover)
        self._deadline = self._session.now() + handover.timeout
        self._timer = self._session.call_at(self._deadline, self._expire)

    def _turn(self) -> None:
        """What is under way belongs to an earlier round from now on."""
        self._round += 1
        for path in self._watched:
            self._gateway.unwatch(path, self)
        self._watched = ()

    def _now(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return a callback that is heard in this round only."""
        this = self._round

        def heard(*told: Any) -> None:
            if this == self._round:
                call(*told)

        return heard

    def _expire(self) -> None:
        if self._session.connected:
            self._turn()
            self._look()

    def _wake_heir(self, handover: Handover) -> Put:
        return Put(path=f"{self._path}/{handover.leader}", data=self._identity)

    # --- looking -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Read roll and record together, and judge."""
        roll: list[Any] = []
        self._gateway.children(self._path, roll.append)
        judge = self._now(lambda record: self._judge(roll[0], record))
        self._gateway.get(record_path(self._path), judge)

    def _judge(self, children: Any, answer: Any) -> None:
        handover = self._handover
        assert handover is not None  # a round belongs to a switchover
        failure = next((each for each in (children, answer) if isinstance(each, Failure)), None)
        if failure is not None:
            self._retry(failure)
            return
        record = decode_record(answer[0], answer[1].version)
        if record is None or record.paused is not None:
            self._withdraw(f"the election is {record.paused if record else 'without a record'}")
            return
        verdict = next_in_line(self._dialect.read(children), handover)
        if isinstance(verdict, str):
            self._withdraw(verdict)
        elif verdict.node == handover.target:
            self._go(handover, record.version)
        elif self._session.now() >= self._deadline:
            self._withdraw(f"{verdict.node} did not step back within {handover.timeout:g} s")
        else:
            self._wait_for(verdict.node, handover.target)

    def _wait_for(self, *nodes: str) -> None:
        """Look again as soon as one of these is gone."""
        self._watched = tuple(f"{self._path}/{node}" for node in nodes)
        again = self._now(lambda _: self._again())

        def read(answer: Any) -> None:
            if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
                self._again()
            elif isinstance(answer, Failure):
                self._retry(answer)

        for path in self._watched:
            self._gateway.get(path, self._now(read), watch=(self, again))

    def _again(self) -> None:
        self._turn()
        self._look()

    # --- writing -----------------------------------------------------------------------------

    def _go(self, handover: Handover, record_version: int) -> None:
        """All at one instant: we lead, the target is there, the election is not paused."""
        self._write(
            self._finish,
            HandoverState.DONE,
            "",
            Check(path=f"{self._path}/{handover.leader}"),
            Check(path=f"{self._path}/{handover.target}"),
            Check(path=record_path(self._path), version=record_version),
        )

    def _withdraw(self, reason: str) -> None:
        handover = self._handover
        assert handover is not None  # a round belongs to a switchover
        self._write(self._drop, HandoverState.WITHDRAWN, reason, self._wake_heir(handover))

    def _write(
        self,
        then: Callable[[Handover], None],
        state: HandoverState,
        reason: str,
        *operations: Operation,
    ) -> None:
        read = self._handover
        assert read is not None  # what is written was read before
        page = attrs.evolve(read, state=state, reason=reason, version=read.version + 1)
        put = Put(path=handover_path(self._path), data=encode_handover(page), version=read.version)

        def written(answer: Any) -> None:
            items = (answer,) if isinstance(answer, Failure) else answer
            failure = next((item for item in items if _is_own_failure(item)), None)
            if failure is None:
                then(page)
            else:
                self._retry(failure)

        self._gateway.multi([put, *operations], self._now(written))

    def _drive(self, handover: Handover) -> None:
        self._handover = handover
        self._look()

    def _finish(self, handover: Handover) -> None:
        self._handover = handover
        _log.info("%s: %s is next: resigning for the %s", self._path, handover.name, handover)
        self._resign()

    def _drop(self, handover: Handover) -> None:
        self._handover = handover
        self.stop()
        _log.warning("%s: no %s: %s; we go on leading", self._path, handover, handover.reason)

    def _retry(self, failure: Failure) -> None:
        """Read what the page says now; with the link down, that comes with the next one."""
        if failure.fault is Fault.UNKNOWN:
            return
        if failure.fault not in (Fault.BAD_VERSION, Fault.NO_NODE):
            _log.warning("%s: a switchover cannot go on: %s", self._path, failure)
            return
        self._gateway.get(handover_path(self._path), self._now(self._reread))

    def _reread(self, answer: Any) -> None:
        if isinstance(answer, Failure):
            return
        handover = decode_handover(answer[0], answer[1].version)
        ours = self._handover
        if handover is not None and ours is not None and handover.leader == ours.leader:
            self.follow(handover)


def _is_own_failure(item: Any) -> bool:
    """Whether it failed by itself, and was not only rolled back with another one."""
    return isinstance(item, Failure) and item.fault is not Fault.ROLLED_BACK
