"""One candidate of the demo, a process of its own: ``candidate HOSTS NAME LOG``.

Standard input brings orders, one word a line; standard output takes events, one JSON object
a line. While it leads it appends a row to the log every fifth of a second.

    stand   stand for election, and again after every end
    resign  leave on purpose
    hold    stop between two rows, and say so
    write   append the next row all the same: by the leadership; where that is over, by the
            bare token
    quit    leave for good; the end of standard input says the same
"""

from __future__ import annotations

import logging
import math
import os
import queue
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import zkelect
from zkelect.cli.demo.event import Event
from zkelect.cli.demo.log import DOMAIN, append, open_log
from zkelect.session.clock import SystemClock
from zkelect.stores import SqliteFence
from zkelect.token import Token

__all__ = ["ELECTION", "SESSION_TIMEOUT", "TICK_TIME", "main"]

ELECTION: Final = "/elections/demo"
SESSION_TIMEOUT: Final = 2.0
TICK_TIME: Final = 0.2

_ROW_EVERY: Final = 0.2
_QUIT: Final = "quit"

_now: Final = SystemClock().boottime


class Orders:
    """What the demo wants of this candidate; read on a thread, so that none is late.

    :ivar quit: set when the candidate shall leave for good.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.quit: Final = threading.Event()
        self._given = queue.SimpleQueue[str]()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def next(self, timeout: float | None = None) -> str | None:
        """Wait for the next order; None when none came within so many seconds."""
        try:
            return self._given.get(timeout=timeout)
        except queue.Empty:
            return None

    def forget(self) -> None:
        """Drop what was meant for a term that is over."""
        with suppress(queue.Empty):
            while self._given.get_nowait() != _QUIT:
                pass
            self._given.put(_QUIT)

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line.strip() == _QUIT:
                break
            self._given.put(line.strip())
        self.quit.set()
        self._given.put(_QUIT)


class Scribe:
    """Leads, and writes while it leads."""

    def __init__(self, name: str, fence: SqliteFence, orders: Orders) -> None:
        self._name = name
        self._fence = fence
        self._orders = orders

    def lead(self, leadership: zkelect.Leadership) -> None:
        """Write until told otherwise, or until the leadership is over."""
        self._orders.forget()
        try:
            _tell("elected", leadership)
            open_log(self._fence, leadership)
            _tell("claimed", leadership)
            self._write(leadership)
        except zkelect.LeadershipLost as lost:
            kind = "resigned" if lost.reason == zkelect.Reason.RESIGNED else "lost"
            _tell(kind, token=str(lost.token), reason=lost.reason)
            raise
        except BaseException:  # to leave the body is to resign, whatever the cause
            _tell("resigned", token=str(leadership.token))
            raise

    def _write(self, leadership: zkelect.Leadership) -> None:
        while (order := self._orders.next(_ROW_EVERY)) in (None, "hold"):
            if order == "hold":
                self._hold(leadership)
            else:
                self._append(leadership)
        if order == "resign":
            _tell("resigned", token=str(leadership.token))

    def _append(self, leadership: zkelect.Leadership) -> None:
        row = append(self._fence, leadership, self._name)
        _tell("committed", leadership, row=row.number, entry=row.entry)

    def _hold(self, leadership: zkelect.Leadership) -> None:
        """Stand between two transactions, and then write as if no time had passed."""
        _tell("held", leadership)
        self._orders.next()
        try:
            self._append(leadership)
        except zkelect.LeadershipLost as lost:
            _tell("check_failed", token=str(lost.token), reason=lost.reason)
            self._write_stale(Token.parse(str(lost.token)))
            raise

    def _write_stale(self, token: Token) -> None:
        """Hand the store a token that came over the wire: no lease goes with it."""
        try:
            row = append(self._fence, token, self._name)
        except zkelect.Fenced as refusal:
            mark = str(refusal.mark)
            _tell("refused", token=str(token), mark=mark, domain=refusal.domain)
        else:
            _tell("accepted", token=str(token), row=row.number, entry=row.entry)


def main(arguments: list[str], make_fence: type[SqliteFence] = SqliteFence) -> None:
    """Be a candidate until told to quit.

    :param arguments: the servers, the candidate's name, the log's file.
    :param make_fence: what guards the log.
    """
    hosts, name, log = arguments
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    orders = Orders(sys.stdin)
    with zkelect.connect(hosts, session_timeout=SESSION_TIMEOUT, tick_time=TICK_TIME) as session:
        _tell("connected", pid=os.getpid())
        election = zkelect.Election(session, ELECTION, name=name)
        scribe = Scribe(name, make_fence(Path(log), domain=DOMAIN), orders)
        if orders.next() == "stand":
            _tell("stood")
            with suppress(zkelect.NotElected):  # told to quit while it waited
                election.run_forever(scribe.lead, stop=orders.quit)


def _tell(kind: str, leadership: zkelect.Leadership | None = None, **facts: Any) -> None:
    """Write an event; of a leadership, with its token and the seconds of lease left."""
    at = _now()  # before the lease is read: at + lease is then never after its deadline
    if leadership is not None:
        lease = math.floor(leadership.remaining() * 1000) / 1000
        facts = {"token": str(leadership.token), "lease": lease, **facts}
    sys.stdout.write(Event(kind=kind, at=at, facts=facts).encode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
