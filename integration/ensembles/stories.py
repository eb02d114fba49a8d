"""What happens to three servers, and must come out right, be they processes or containers.

Each takes an ensemble that is started, and leaves it running.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
from election.waiting import boottime, until
from ensembles.candidate import Candidate

from zkelect.testing import FaultProxy, expire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Operator

    import zkelect
    from zkelect.testing.ensembles import FaultyEnsemble

__all__ = ["Bounce", "bounce_servers", "restart_in_turn", "return_before_the_sweep"]

LONG: Final = 10.0
SHORT: Final = 2.0


# --- H04 ---------------------------------------------------------------------------------------


def restart_in_turn(ensemble: FaultyEnsemble, path: str) -> None:
    """Restart one server after the other: nobody else leads, and the token stays."""
    with (
        Candidate(ensemble.hosts, path, "A", session_timeout=LONG) as a,
        Candidate(ensemble.hosts, path, "B", session_timeout=LONG) as b,
    ):
        term = a.lead()
        b.queue()
        for server in ensemble.servers:
            server.stop()
            server.start()
            ensemble.wait_ready()
            until(partial(renewed, term, term.deadline), "the lease is renewed")
            assert term.check() == term.token
        assert a.diary.all("deposed") == b.diary.all("granted") == []
        assert [note.leadership for note in a.diary.all("elected")] == [term]


def renewed(term: zkelect.Leadership, deadline: float) -> bool:
    """Tell whether there is proof that is newer than that deadline, or will be none.

    What is left of the lease tells nothing: it outlasts a restart.
    """
    return term.reason is not None or term.deadline > deadline


# --- H23 ---------------------------------------------------------------------------------------


@attrs.frozen
class Known:
    """A session whose credentials were noted while it was connected."""

    hosts: str
    held: tuple[int, bytes]

    def credentials(self) -> tuple[int, bytes]:
        return self.held


def return_before_the_sweep(ensemble: FaultyEnsemble, operator: Operator, path: str) -> None:
    """Come back with a new session while the znode of the old one is still first (CURATOR-696).

    The servers do not tell that the session is another one, as some do not (ClickHouse #116690).
    """
    there: list[bool] = []

    def look(leadership: zkelect.Leadership) -> None:
        there.append(bool(terms) and terms[0].node in operator.nodes(path))

    terms: list[zkelect.Leadership] = []
    with (
        FaultProxy(ensemble.hosts) as proxy,
        Candidate(proxy.hosts, path, "A", session_timeout=LONG, prepare=look) as a,
    ):
        terms.append(a.lead())
        old = Known(ensemble.hosts, a.session.credentials())
        swap = proxy.swap_session()
        proxy.drop()
        assert a.diary.wait("deposed").reason == "expired"
        assert swap.fired
        a.await_place()
        first, own = operator.nodes(path)
        assert first == terms[0].node
        assert owner(operator, path, first) == old.held[0]
        assert owner(operator, path, own) == a.session.session_id != old.held[0]
        assert len(a.diary.all("elected")) == 1
        expire(old)
        term = a.diary.wait("elected", 2).leadership
        assert there == [False, False]
        assert term.node == own
        assert term.token > terms[0].token


def owner(operator: Operator, path: str, node: str) -> int:
    found: int = operator.kazoo.exists(f"{path}/{node}").ephemeralOwner
    return found


# --- H30 ---------------------------------------------------------------------------------------


@attrs.frozen
class Bounce:
    """What one bounce of all servers cost.

    :ivar leaderless: seconds from the moment at which all served again until one led.
    :ivar requests: frames that a candidate sent in a second, connects included.
    :ivar lines: what a candidate logged in a second, kazoo's records included.
    """

    leaderless: float
    requests: float
    lines: float


def bounce_servers(ensemble: FaultyEnsemble, path: str, times: int) -> list[Bounce]:
    """Kill all servers and start them again, so often; four candidates stand all the time."""
    lines = Lines()
    with ExitStack() as stack:
        stack.enter_context(lines)
        proxy = stack.enter_context(FaultProxy(ensemble.hosts))
        crowd = [
            stack.enter_context(Candidate(proxy.hosts, path, name, session_timeout=SHORT)).start()
            for name in "ABCD"
        ]
        until(partial(leads_alone, crowd), "one leads")
        bounced = [bounce(ensemble, proxy, crowd, lines) for _ in range(times)]
        tokens = [note.leadership.token for each in crowd for note in each.diary.all("elected")]
        assert len(set(tokens)) == len(tokens)
        for each in crowd:
            each.session.close()
            each.diary.assert_paired()
    return bounced


def bounce(
    ensemble: FaultyEnsemble, proxy: FaultProxy, crowd: Sequence[Candidate], lines: Lines
) -> Bounce:
    began, requests, logged = boottime(), len(proxy.log), lines.count
    for server in ensemble.servers:
        server.kill()
    for server in ensemble.servers:
        server.launch()
    ensemble.wait_ready()
    ready = boottime()
    until(partial(leads_alone, crowd), "one leads")
    led = boottime()
    sent = sum(frame.direction == "requests" for frame in proxy.log[requests:])
    each = len(crowd) * (led - began)
    return Bounce(leaderless=led - ready, requests=sent / each, lines=(lines.count - logged) / each)


def leads_alone(crowd: Sequence[Candidate]) -> bool:
    """One leads; more than one would be the end of the test."""
    terms = [term for term in (each.term for each in crowd) if term is not None]
    assert len(terms) <= 1, terms
    return len(terms) == 1


class Lines(logging.Handler):
    """Counts what the library and kazoo log, down to INFO."""

    def __init__(self) -> None:
        super().__init__()
        self._loggers = {logging.getLogger(name): 0 for name in ("zkelect", "kazoo")}
        self.count = 0

    def __enter__(self) -> None:
        for logger in self._loggers:
            self._loggers[logger] = logger.level
            logger.setLevel(logging.INFO)
            logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        for logger, level in self._loggers.items():
            logger.setLevel(level)
            logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
