"""A candidate as a process of its own, so that it can be stopped, killed and forked.

Tells what happens on standard output, one JSON object to a line, each with the instant on
the boot clock, which is the same in every process; obeys one word to a line on standard
input::

    check            ask for the leadership's token once
    renewed          wait until the lease is longer than now, then ask again
    claim            raise the fence's mark
    write TEXT       write into the fence's file, guarded
    write-late TEXT  check, go on checking until refused, then write with that first token
    fork HOW         fork, "plainly", by "multiprocessing", or "locked": while another thread
                     holds the session's lock; the child tells what it finds
    hold             hold the session's lock until the next line
    resign           resign; it stands again
    close            close the session, from here
    exit             leave the usual way, with all that runs at exit

With --stuck the callback ``elected`` never returns. With --serve its page is served.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import multiprocessing
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import zkelect
from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

boottime = SystemClock().boottime


def tell(event: str, **fields: Any) -> None:
    """Write a whole line at once: several threads and processes tell."""
    line = json.dumps({"event": event, "at": boottime(), "pid": os.getpid(), **fields})
    os.write(sys.stdout.fileno(), line.encode() + b"\n")


class Teller(logging.Handler):
    """Tells what the library logs."""

    def emit(self, record: logging.LogRecord) -> None:
        tell("log", logger=record.name, level=record.levelname, message=record.getMessage())


class Candidate:
    """Stands at once, and tells what its callbacks are told."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._stuck = arguments.stuck
        self._serve = arguments.serve
        self._lead = threading.Event()
        self._leadership: zkelect.Leadership | None = None
        self._session = zkelect.connect(
            arguments.hosts,
            session_timeout=arguments.session_timeout,
            tick_time=arguments.tick_time,
        )
        self._election = zkelect.Election(self._session, arguments.path, name=arguments.name)
        self._fence = (
            zkelect.stores.SqliteFence(arguments.fence, domain="test") if arguments.fence else None
        )

    def stand(self) -> None:
        with self._election.listen(self), self._served():
            self._election.start()
            tell("standing")
            self._obey()

    # --- callbacks -----------------------------------------------------------------------------

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._leadership = leadership
        tell("elected", token=str(leadership.token), node=leadership.node)
        if self._stuck:
            threading.Event().wait()

    def suspended(self, leadership: zkelect.Leadership) -> None:
        tell("suspended", token=str(leadership.token))

    def deposed(self, leadership: zkelect.Leadership) -> None:
        tell("deposed", token=str(leadership.token), reason=leadership.reason)

    @contextlib.contextmanager
    def _served(self) -> Iterator[None]:
        if self._serve is None:
            yield
            return
        with zkelect.server.serve(self._serve, self._election) as listener:
            tell("served", port=listener.port)
            yield

    # --- words ---------------------------------------------------------------------------------

    def _obey(self) -> None:
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            if word == "exit":
                return
            WORDS[word](self, rest)

    def _check(self, _: str) -> None:
        tell("check", **_outcome(self._led().check))

    def _renewed(self, _: str) -> None:
        leadership = self._led()
        before = leadership.deadline
        while leadership.deadline <= before and not leadership.wait_lost(0.01):
            pass
        tell("renewed", **_outcome(leadership.check))

    def _claim(self, _: str) -> None:
        tell("claim", **_outcome(lambda: self._guarded().claim(self._led())))

    def _write(self, text: str) -> None:
        tell("write", **_outcome(lambda: self._append(self._led(), text)))

    def _write_late(self, text: str) -> None:
        """What is under way when the machine stops: checked before, written after."""
        leadership = self._led()
        token = leadership.check()
        with self._session.lock:  # so that no other thread of ours says so first
            tell("checked")
            passed, outcome = _check_until_refused(leadership)
        tell("refused", passed=passed, **outcome)
        tell("write-late", **_outcome(lambda: self._append(token, text)))

    def _fork(self, how: str) -> None:
        fork = _fork_by_multiprocessing if how == "multiprocessing" else _fork_plainly
        if how != "locked":
            tell("fork", status=fork(self._be_child))
            return
        with _held(self._session.lock):  # as whichever thread of ours happens to hold it
            tell("fork", status=fork(self._be_child))

    def _be_child(self) -> None:
        leadership = self._led()
        calls: dict[str, Callable[[], object]] = {
            "check": leadership.check,
            "write": lambda: self._append(leadership, "child"),
            "run": lambda: self._election.run(lambda _: None, timeout=1.0),
            "leader": self._election.leader,
            "candidates": self._election.candidates,
            "resign": self._election.resign,
            "stop": self._election.stop,
            "start": self._election.start,
            "stand": lambda: zkelect.Election(self._session, "/elections/other"),
            "enter": self._session.__enter__,
            "close": self._session.close,
        }
        tell(
            "child",
            remaining=leadership.remaining(),
            lost=leadership.wait_lost(0.0),
            reason=leadership.reason,
        )
        for name, call in calls.items():
            tell("child-call", call=name, **_outcome(call))

    def _hold(self, _: str) -> None:
        with self._session.lock:
            tell("hold")
            sys.stdin.readline()

    def _resign(self, _: str) -> None:
        tell("resign", **_outcome(self._election.resign))

    def _close(self, _: str) -> None:
        tell("close", **_outcome(self._session.close))

    # --- within --------------------------------------------------------------------------------

    def _led(self) -> zkelect.Leadership:
        assert self._leadership is not None, "not elected yet"
        return self._leadership

    def _guarded(self) -> zkelect.stores.SqliteFence:
        assert self._fence is not None, "started without --fence"
        return self._fence

    def _append(self, claimant: zkelect.Leadership | zkelect.Token, text: str) -> None:
        with self._guarded().transaction(claimant) as transaction:
            transaction.execute("create table if not exists log (entry text)")
            transaction.execute("insert into log values (?)", (text,))


WORDS: dict[str, Callable[[Candidate, str], None]] = {
    "check": Candidate._check,
    "renewed": Candidate._renewed,
    "claim": Candidate._claim,
    "write": Candidate._write,
    "write-late": Candidate._write_late,
    "fork": Candidate._fork,
    "hold": Candidate._hold,
    "resign": Candidate._resign,
    "close": Candidate._close,
}


def _check_until_refused(leadership: zkelect.Leadership) -> tuple[float, dict[str, Any]]:
    """Return when the last check that passed had begun, and how the next one ended."""
    passed = -1.0
    while True:
        began = boottime()
        try:
            leadership.check()
        except zkelect.ZkelectError as error:
            return passed, _told(error)
        passed = began


def _fork_plainly(be_child: Callable[[], None]) -> int:
    """Fork as a server does that loads the program first; the child leaves the usual way."""
    pid = os.fork()
    if pid == 0:
        be_child()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _fork_by_multiprocessing(be_child: Callable[[], None]) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=be_child)
    child.start()
    child.join()
    return child.exitcode


@contextlib.contextmanager
def _held(lock: threading.RLock) -> Iterator[None]:
    """Let another thread hold the lock for the block."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    try:
        yield
    finally:
        done.set()


def _outcome(call: Callable[[], object]) -> dict[str, Any]:
    try:
        value = call()
    except zkelect.ZkelectError as error:
        return _told(error)
    return {"value": None if value is None else str(value)}


def _told(error: zkelect.ZkelectError) -> dict[str, Any]:
    fields = {name: str(value) for name, value in vars(error).items()}
    return {"error": type(error).__name__, "message": str(error), "fields": fields}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("hosts")
    parser.add_argument("path")
    parser.add_argument("name")
    parser.add_argument("--session-timeout", type=float, required=True)
    parser.add_argument("--tick-time", type=float, required=True)
    parser.add_argument("--fence")
    parser.add_argument("--stuck", action="store_true")
    parser.add_argument("--serve")
    return parser.parse_args()


if __name__ == "__main__":
    logging.getLogger("zkelect").addHandler(Teller())
    logging.getLogger("zkelect").setLevel(logging.INFO)
    Candidate(_arguments()).stand()
