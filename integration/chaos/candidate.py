"""A candidate: stands, leads by rounds, stands again, until it is told to leave."""

from __future__ import annotations

import logging
import random
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import zkelect
from chaos.history import Writer
from chaos.rounds import Habits, Rounds
from chaos.sentry import Sentry
from chaos.stores import Place, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["stand"]

_LOOK_EVERY: Final = 0.02


def stand(
    *,
    process: str,
    hosts: str,
    path: str,
    directory: str,
    stores: Sequence[str],
    seed: str,
    session_timeout: float,
    tick_time: float,
    habits: dict[str, float],
) -> None:
    """Stand until standard input says ``leave``, or ends."""
    _log_to_errors()
    history = Writer(Path(directory), process)
    stop = threading.Event()
    threading.Thread(target=_hear, args=(stop,), daemon=True).start()
    history.write("started")
    try:
        with _connect(hosts, session_timeout, tick_time, stop) as session:
            place = Place(directory=Path(directory), hosts=hosts, session=session)
            rounds = Rounds(
                session,
                history=history,
                stores={name: open_store(name, place) for name in stores},
                process=process,
                dice=random.Random(f"{seed} {process}"),
                habits=Habits(**habits),
                stop=stop,
            )
            _stand(session, path, process, history, rounds, stop)
        history.write("left")
    except _Left:
        history.write("left")
    except BaseException as error:
        history.write("crashed", error=repr(error), trace=traceback.format_exc())
        raise


class _Left(Exception):
    """Told to leave before it was connected."""


def _connect(
    hosts: str, session_timeout: float, tick_time: float, stop: threading.Event
) -> zkelect.Session:
    while not stop.is_set():
        try:
            return zkelect.connect(
                hosts, session_timeout=session_timeout, tick_time=tick_time, timeout=5.0
            )
        except zkelect.Unreachable as error:
            logging.getLogger("zkelect.chaos").info("%s", error)
    raise _Left


def _stand(
    session: zkelect.Session,
    path: str,
    process: str,
    history: Writer,
    rounds: Rounds,
    stop: threading.Event,
) -> None:
    threading.Thread(target=_note_sessions, args=(session, history), daemon=True).start()
    sentries: list[Sentry] = []

    def granted(leadership: zkelect.Leadership) -> None:
        sentries.append(Sentry(leadership, history))

    def lead(leadership: zkelect.Leadership) -> None:
        rounds.lead(leadership)
        rounds.finish(leadership)

    election = zkelect.Election(session, path, name=process, prepare=granted)
    rounds.resign = election.resign
    election.run_forever(lead, stop)
    for sentry in sentries:  # every term is over; let the last one's end be written
        sentry.relieve()


def _note_sessions(session: zkelect.Session, history: Writer) -> None:
    """Write each new session of ours; they change behind our back."""
    known: int | None = None
    waiting = threading.Event()
    while not session.closed:
        if session.session_id not in (known, None):
            known = session.session_id
            history.write("opened", session=f"{known:#x}")
        waiting.wait(_LOOK_EVERY)


def _hear(stop: threading.Event) -> None:
    for line in sys.stdin:
        if line.strip() == "leave":
            break
    stop.set()


def _log_to_errors() -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(created).3f %(name)s %(message)s"
    )
