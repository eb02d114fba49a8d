"""A candidate of kazoo's or of ours as a process; those of Java are in Program.java.

Tells what happens on standard output, one JSON object to a line, each with the instant on the
monotonic clock::

    standing         it has its place in the queue; only zkelect tells it
    elected          it leads, as its library says
    suspended        its library has lost the connection
    lost             it does not lead any more: its library says so, or it is about to leave
    left             it has obeyed "leave"
    log              what zkelect has logged

Obeys ``leave`` on standard input: resign, stop, release, close, whatever its library calls it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable


def tell(event: str, **fields: Any) -> None:
    line = json.dumps({"event": event, "at": time.monotonic(), **fields})
    os.write(sys.stdout.fileno(), line.encode() + b"\n")


class Teller(logging.Handler):
    """Tells what the library logs."""

    def emit(self, record: logging.LogRecord) -> None:
        tell("log", level=record.levelname, message=record.getMessage())


# --- kazoo -----------------------------------------------------------------------------------


class Kazoo:
    """Stands once, on a thread, and leads until told to leave: kazoo takes no lead away.

    :param stand: calls its argument when it leads, and releases when that returns.
    """

    def __init__(self, arguments: argparse.Namespace, stand: Callable[..., None]) -> None:
        client = KazooClient(arguments.hosts, timeout=arguments.session_timeout)
        client.add_listener(self._tell_state)
        client.start(timeout=30.0)
        self._leaving = threading.Event()
        work = (client, arguments.path, arguments.name, self._lead)
        self._thread = threading.Thread(target=stand, args=work, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join()

    def _lead(self) -> None:
        tell("elected")
        self._leaving.wait()
        tell("lost")

    @staticmethod
    def _tell_state(state: str) -> None:
        if state != KazooState.CONNECTED:
            tell(state.lower())


def run_election(client: KazooClient, path: str, name: str, lead: Callable[[], None]) -> None:
    client.Election(path, name).run(lead)


def hold_lock(client: KazooClient, path: str, name: str, lead: Callable[[], None]) -> None:
    with client.Lock(path, name):
        lead()


# --- zkelect ---------------------------------------------------------------------------------


PLACED = (zkelect.Phase.WAITING, zkelect.Phase.PREPARING, zkelect.Phase.LEADING)


class Zkelect:
    """Stands without a thread, and again after every end."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        logging.getLogger("zkelect").addHandler(Teller())
        session = zkelect.connect(
            arguments.hosts,
            session_timeout=arguments.session_timeout,
            tick_time=arguments.tick_time,
        )
        self._election = zkelect.Election(
            session, arguments.path, name=arguments.name, dialect=arguments.dialect
        )
        self._listening = self._election.listen(self)
        self._listening.__enter__()
        self._election.start()
        threading.Thread(target=self._tell_standing, daemon=True).start()

    def leave(self) -> None:
        self._election.stop()

    def elected(self, leadership: zkelect.Leadership) -> None:
        tell("elected", token=str(leadership.token))

    def suspended(self, _: zkelect.Leadership) -> None:
        tell("suspended")

    def deposed(self, leadership: zkelect.Leadership) -> None:
        tell("lost", reason=leadership.reason)

    def _tell_standing(self) -> None:
        """It may create its candidate twice: the path's first one makes the record before."""
        while self._election.phase not in PLACED:
            time.sleep(0.01)
        tell("standing")


# --- the process -----------------------------------------------------------------------------

KINDS: dict[str, Callable[[argparse.Namespace], Kazoo | Zkelect]] = {
    "kazoo-election": lambda arguments: Kazoo(arguments, run_election),
    "kazoo-lock": lambda arguments: Kazoo(arguments, hold_lock),
    "zkelect": Zkelect,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("hosts")
    parser.add_argument("path")
    parser.add_argument("name")
    parser.add_argument("--dialect", default="kazoo")
    parser.add_argument("--session-timeout", type=float, required=True)
    parser.add_argument("--tick-time", type=float, required=True)
    arguments = parser.parse_args()
    candidate = KINDS[arguments.kind](arguments)
    for _ in sys.stdin:
        candidate.leave()
        tell("left")


if __name__ == "__main__":
    main()
