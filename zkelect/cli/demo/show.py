"""The demo: a real ZooKeeper, three candidates, four acts, and an account at the end."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import zkelect
from zkelect.cli.demo.acts import Play
from zkelect.cli.demo.candidate import ELECTION, SESSION_TIMEOUT, TICK_TIME
from zkelect.cli.demo.event import Event, Screen
from zkelect.cli.demo.log import DOMAIN, read
from zkelect.cli.demo.processes import PROGRAM, Candidates
from zkelect.cli.demo.report import Report, audit
from zkelect.cli.demo.stage import DemoFailed, Stage
from zkelect.cli.signals import Interruption
from zkelect.session.clock import SystemClock
from zkelect.stores import SqliteFence
from zkelect.testing import LocalEnsemble, find_server
from zkelect.testing.server import ask

__all__ = ["NAMES", "run"]

NAMES: Final = ("host-a", "host-b", "host-c")

_now: Final = SystemClock().boottime


def run(
    screen: Screen,
    *,
    servers: int,
    rest: float,
    interruption: Interruption,
    program: Sequence[str] = PROGRAM,
) -> Report:
    """Run the demo; when it does not end well, the logs of all processes are kept.

    :param servers: how many ZooKeeper servers, 1 or 3.
    :param rest: seconds to let pass after each step, for those who read along.
    :param interruption: heeded at any time. :param program: what Python runs as a candidate.
    :returns: what was found; as promised only if it has no problems.
    :raises ServerNotFound: this machine has no ZooKeeper.
    :raises ServerFailed: it has one that does not start.
    """
    with interruption.deferred():
        tempfile.gettempdir()  # its first call makes a file there, to see whether it can
    origin = find_server().origin
    ensemble = LocalEnsemble(servers, tick_time=TICK_TIME)
    facts = {"servers": servers, "origin": origin}
    screen.show(Event(kind="servers_launched", at=_now(), facts=facts))
    with ensemble, _logging_to(ensemble.directory / "demo.log"):
        with closing(screen):
            screen.show(_ready(ensemble))
            with interruption.deferred():
                report = _perform(ensemble, screen, rest, interruption, program)
            screen.show(Event(kind="summary", at=_now(), facts=report.facts))
        if report.problems:
            ensemble.keep()
    return report


def _perform(
    ensemble: LocalEnsemble,
    screen: Screen,
    rest: float,
    interruption: Interruption,
    program: Sequence[str],
) -> Report:
    log = ensemble.directory / "log.sqlite"
    failures: list[str] = []
    with Candidates(NAMES, program=program, hosts=ensemble.hosts, log=log) as candidates:
        stage = Stage(
            candidates=candidates,
            servers=ensemble.servers,
            screen=screen,
            interruption=interruption,
        )
        try:
            _play(stage, ensemble.hosts, rest)
        except (DemoFailed, zkelect.ZkelectError) as failure:
            failures.append(str(failure))
    stage.drain()
    mark = SqliteFence(log, domain=DOMAIN).status()  # mends the file, should one have died in it
    return audit(stage.events, read(log), None if mark is None else mark.token, failures)


def _play(stage: Stage, hosts: str, rest: float) -> None:
    """Play with a session of our own: who leads is asked of ZooKeeper, not of who says so."""
    with zkelect.connect(hosts, session_timeout=SESSION_TIMEOUT, tick_time=TICK_TIME) as session:
        election = zkelect.Election(session, ELECTION, name="audience")
        Play(stage, election, rest=rest).perform()


def _ready(ensemble: LocalEnsemble) -> Event:
    answer = ask(ensemble.servers[0].address, "srvr")
    version = re.search(r"version: ([\d.]*\d)", answer)
    facts = {
        "version": version[1] if version else "",
        "hosts": ensemble.hosts,
        "pids": [server.pid for server in ensemble.servers],
        "directory": str(ensemble.directory),
    }
    return Event(kind="servers_ready", at=_now(), facts=facts)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Let what this process logs be read afterwards, and not between the lines of the demo."""
    root = logging.getLogger()
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
