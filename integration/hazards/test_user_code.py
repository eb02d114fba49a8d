"""H14 and H15: callbacks that block or raise, bodies that do not listen."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Actor, Operator

    from zkelect.testing import LocalEnsemble

T = 2.0
boottime = SystemClock().boottime


class Stuck:
    """Callbacks that do not return before they are released.

    :ivar begun: one of them runs.
    """

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._free = threading.Event()

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.begun.set()
        self._free.wait()

    def suspended(self, leadership: zkelect.Leadership) -> None: ...

    def deposed(self, leadership: zkelect.Leadership) -> None: ...

    def release(self) -> None:
        self._free.set()


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    made = Stuck()
    yield made
    made.release()


def test_h14_a_callback_that_blocks_for_2_t_stops_neither_lease_nor_other_callbacks(
    stuck: Stuck,
    cast: Callable[..., Actor],
    path: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    a = cast("A")
    a.listen(stuck)
    a.lead()
    assert stuck.begun.wait(30.0)
    began = boottime()
    (term,) = (note.leadership for note in a.diary.all("elected"))
    other = zkelect.Election(a.session, f"{path}-other", name="other")
    while boottime() < began + 2 * T:
        told = threading.Event()
        with other.listen(Teller(told)), other.campaign(timeout=30.0):
            assert told.wait(10.0)  # callbacks of other elections go on
        term.check()  # and so does the lease
    assert "Stuck.elected has run for" in caplog.text
    stuck.release()
    a.election.stop()
    assert a.diary.wait("deposed").reason == "resigned"
    a.diary.assert_paired()


class Teller:
    def __init__(self, told: threading.Event) -> None:
        self._told = told

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._told.set()

    def suspended(self, leadership: zkelect.Leadership) -> None: ...

    def deposed(self, leadership: zkelect.Leadership) -> None: ...


class Raising:
    def elected(self, leadership: zkelect.Leadership) -> None:
        raise RuntimeError("elected of the user's")

    suspended = deposed = elected


def test_h14_a_callback_that_raises_is_logged_and_the_others_are_told(
    cast: Callable[..., Actor], caplog: pytest.LogCaptureFixture
) -> None:
    a = cast("A")
    a.listen(Raising())
    term = a.lead()
    assert term.check() == term.token
    a.election.stop()
    a.diary.wait("deposed")
    a.session.close()
    a.diary.assert_paired()
    for name in ("elected", "deposed"):
        assert f"Raising.{name} raised" in caplog.text
    assert "RuntimeError: elected of the user's" in caplog.text


class Deaf:
    """A body that ignores its loss until it is released."""

    def __init__(self, election: zkelect.Election) -> None:
        self.begun, self._free = threading.Event(), threading.Event()
        self.returned = float("nan")
        self.thread = threading.Thread(target=self._run, args=(election,), daemon=True)
        self.thread.start()

    def release(self) -> None:
        self._free.set()
        self.thread.join(30.0)

    def _run(self, election: zkelect.Election) -> None:
        with suppress(zkelect.LeadershipLost, zkelect.SessionClosed):
            election.run(self._work)

    def _work(self, leadership: zkelect.Leadership) -> None:
        self.begun.set()
        self._free.wait()
        self.returned = boottime()


def test_h15_the_znode_stays_until_a_body_that_ignores_its_resignation_returns(
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    zookeeper: LocalEnsemble,
) -> None:
    """kubernetes #139991. The body works on for 5 s, that is 2.5 T."""
    a, b = cast("A"), cast("B")
    body = Deaf(a.election)
    term = a.diary.wait("elected").leadership
    assert body.begun.wait(30.0)
    b.queue()
    a.election.resign()
    assert a.diary.wait("deposed").reason == "resigned"
    resigned = boottime()
    with pytest.raises(zkelect.LeadershipLost, match="resigned"):
        term.check()
    while boottime() < resigned + 5.0:
        assert operator.nodes(path)[0] == term.node
        assert not b.diary.all("granted")
        threading.Event().wait(0.05)
    body.release()
    assert body.returned < b.diary.wait("granted").at
    assert b.diary.wait("elected").leadership.token > term.token


def test_h15_under_a_body_that_ignores_close_the_session_is_left_to_expire(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    a, b = cast("A"), cast("B")
    body = Deaf(a.election)
    term = a.diary.wait("elected").leadership
    deadline = term.deadline
    b.queue()
    a.session.close()
    closed = boottime()
    assert operator.nodes(path)[0] == term.node
    granted = b.diary.wait("granted")
    assert granted.at > max(closed, deadline)
    body.release()
