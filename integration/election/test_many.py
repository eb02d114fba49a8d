"""Ten thousand elections of one process, all on one session."""

from __future__ import annotations

import gc
import re
import threading
import time
import tracemalloc
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Self

import pytest

import zkelect
from zkelect.session.gateway import WINDOW
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ELECTIONS: Final = 10_000
LARGEST: Final = 6 * 1024
"""Bytes for each election."""

WITHIN: Final = 300.0
"""Seconds: an outer bound against a hang; a calm machine takes a tenth of it."""

pytestmark = pytest.mark.timeout(WITHIN + 60)


class Probes:
    """Counts probes as they pass: sent, and under way at one time."""

    def __init__(self, session: zkelect.Session, patch: pytest.MonkeyPatch) -> None:
        self.sent = self.under_way = self.most = 0
        self._multi = session.gateway.multi
        patch.setattr(session.gateway, "multi", self._pass)

    def _pass(self, operations: Any, done: Callable[[Any], None], **options: Any) -> None:
        if not options.get("urgent"):
            self._multi(operations, done, **options)
            return

        def answered(answer: Any) -> None:
            self.under_way -= 1
            done(answer)

        self.sent += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self._multi(operations, answered, **options)


class Traced:
    """Counts the bytes that a block has left behind, garbage apart."""

    def __init__(self) -> None:
        self.bytes = 0

    def __enter__(self) -> Self:
        gc.collect()
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        gc.collect()
        self.bytes, _peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()


class Crowd:
    """Candidates of one session, alone on their paths; none of them has a thread."""

    def __init__(self, session: zkelect.Session) -> None:
        self.session = session
        self.elections: list[zkelect.Election] = []

    def join(self, number: int) -> None:
        for _ in range(number):
            election = zkelect.Election(self.session, f"/many/{len(self.elections)}")
            election.start()
            self.elections.append(election)

    def leading(self) -> int:
        phases = [election.phase for election in self.elections]
        return phases.count(zkelect.Phase.LEADING)

    def wait(self) -> None:
        """Wait until all lead, and nothing but probes is under way."""
        deadline = time.monotonic() + WITHIN
        while len(self.session.roster.leading) < len(self.elections) or self._asks():
            assert time.monotonic() < deadline, f"{self.leading()} of {len(self.elections)} lead"
            time.sleep(0.1)
        assert self.leading() == len(self.elections)

    def _asks(self) -> bool:
        with self.session.lock:
            return self.session.gateway.under_way > 1 or self.session.gateway.waiting > 0


def threads() -> list[str]:
    """Return the names of all threads but for the numbers in them."""
    return sorted(re.sub(r"\d+", "", thread.name) for thread in threading.enumerate())


def deposed(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return who lost a term, as it was logged."""
    return [record.message for record in caplog.records if "is deposed" in record.message]


@pytest.fixture
def session() -> Iterator[zkelect.Session]:
    with ExitStack() as stack:
        server = stack.enter_context(LocalEnsemble(tick_time=0.5, max_session_timeout=30.0))
        yield stack.enter_context(
            zkelect.connect(server.hosts, session_timeout=30.0, tick_time=0.5, timeout=30.0)
        )


@pytest.fixture
def crowd(session: zkelect.Session) -> Crowd:
    return Crowd(session)


def test_ten_thousand_lead_with_the_threads_of_one_and_one_stream_of_probes(
    session: zkelect.Session,
    crowd: Crowd,
    times: Callable[[int, int], int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody loses its lease, or its connection, while so many join.

    The bytes are those of the first two thousand, and of all of them with ZKELECT_THOROUGH: to
    trace each allocation doubles the time.
    """
    probes = Probes(session, monkeypatch)
    crowd.join(1)
    crowd.wait()
    alone, connected_at = threads(), session.connected_at
    traced = times(2_000, ELECTIONS - 1)
    with Traced() as memory:
        crowd.join(traced)
        crowd.wait()
    each = memory.bytes / traced
    crowd.join(ELECTIONS - traced - 1)
    crowd.wait()
    print(f"{each:.0f} bytes for each election, {probes.sent} probes")
    assert threads() == alone
    assert probes.most == 1
    assert each <= LARGEST
    assert session.connected_at == connected_at
    assert deposed(caplog) == []


def test_joins_do_not_wait_for_each_other(session: zkelect.Session, crowd: Crowd) -> None:
    """With the session's lock in our hands no answer can be handed over; all the same all begin.

    Only so many requests are under way that kazoo, waking its thread, never blocks.
    """
    with session.lock:
        crowd.join(3 * WINDOW)
        assert {election.phase for election in crowd.elections} == {zkelect.Phase.JOINING}
        assert 0 < session.gateway.under_way <= WINDOW
    crowd.wait()


def test_a_dropped_connection_asks_for_all_watches_anew_and_costs_nobody_its_term(
    session: zkelect.Session, crowd: Crowd, caplog: pytest.LogCaptureFixture
) -> None:
    crowd.join(10 * WINDOW)
    crowd.wait()
    connected_at = session.connected_at
    session.link.shut()
    deadline = time.monotonic() + WITHIN
    while session.connected_at == connected_at:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    crowd.wait()
    assert deposed(caplog) == []
