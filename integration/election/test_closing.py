"""Closing: bounded in time, whatever goes on, and nothing of ours stays on the path."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import zkelect
from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Campaign, Operator, Process

    from zkelect.testing import LocalEnsemble

T = 2.0
boottime = SystemClock().boottime


@pytest.fixture
def closes(measured: Callable[[str, float, float], None]) -> Callable[[zkelect.Session], None]:
    """Close a session, and measure how long that takes."""

    def close(session: zkelect.Session) -> None:
        began = boottime()
        session.close()
        measured("close()", boottime() - began, T / 5)
        assert session.closed

    return close


def test_h38_close_while_the_answer_to_a_create_is_under_way(
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    path: str,
    closes: Callable[[zkelect.Session], None],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    cast("earlier").election.run(lambda _: None)  # so that the parent is there
    a = cast("A")
    creates = a.forwarder.requests["create2"]
    a.forwarder.cut("replies")
    standing = campaign(a.election)
    assert a.forwarder.wait_for(lambda: a.forwarder.requests["create2"] > creates)
    eventually(lambda: operator.nodes(path), "the candidate was created")
    closes(a.session)
    a.forwarder.heal()
    assert isinstance(standing.elected.exception(T), zkelect.SessionClosed)
    eventually(lambda: not operator.nodes(path), "nothing is left")


def test_h38_close_while_a_create_is_on_its_way_to_a_server_that_stands_still(
    doomed: LocalEnsemble,
    operate: Callable[[str], Operator],
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    path: str,
    closes: Callable[[zkelect.Session], None],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    cast("earlier", server=doomed.hosts).election.run(lambda _: None)
    a = cast("A", server=doomed.hosts)
    creates = a.forwarder.requests["create2"]
    doomed.servers[0].pause()
    standing = campaign(a.election)
    assert a.forwarder.wait_for(lambda: a.forwarder.requests["create2"] > creates)
    closes(a.session)
    assert isinstance(standing.elected.exception(T), zkelect.SessionClosed)
    doomed.servers[0].resume()
    operator = operate(doomed.hosts)
    eventually(lambda: not operator.nodes(path), "nothing is left")


def test_h38_close_while_waiting_leaves_at_once(
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    operator: Operator,
    path: str,
    closes: Callable[[zkelect.Session], None],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a, b = cast("A"), cast("B")
    leadership = a.lead()
    standing = campaign(b.election)
    eventually(lambda: b.election.phase is zkelect.Phase.WAITING, "B waits")
    closes(b.session)
    assert isinstance(standing.elected.exception(T), zkelect.SessionClosed)
    assert operator.nodes(path) == [leadership.node]


class Closer:
    """Closes the session from inside a callback, more than once."""

    def __init__(self, session: zkelect.Session, inside: str) -> None:
        self._session, self._inside = session, inside
        self.took: list[float] = []
        self.done = threading.Event()

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._close("elected")

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self._close("suspended")

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self._close("deposed")

    def _close(self, inside: str) -> None:
        if inside == self._inside:
            began = boottime()
            self._session.close()
            self._session.close()
            self.took.append(boottime() - began)
            self.done.set()


@pytest.mark.parametrize("inside", ["elected", "suspended", "deposed"])
def test_h38_close_from_inside_a_callback(
    inside: str,
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    measured: Callable[[str, float, float], None],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a = cast("A", session_timeout=4.0)
    closer = Closer(a.session, inside)
    with a.election.listen(closer):
        leadership = a.lead()
        if inside == "suspended":
            a.forwarder.drop()
        if inside == "deposed":
            a.election.resign()
        assert closer.done.wait(10 * T)
        left = operator.nodes(path)
        measured("close(), twice", closer.took[0], 4.0 / 5)
        assert inside == "suspended" or not left  # no link: then it takes the session's time
        a.diary.wait("deposed")
    assert leadership.reason == ("resigned" if inside == "deposed" else "closed")
    a.diary.assert_paired()
    eventually(lambda: not operator.nodes(path), "nothing is left")


def test_h38_close_twice_and_by_two_at_a_time(
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    closes: Callable[[zkelect.Session], None],
) -> None:
    a = cast("A")
    a.lead()
    others = [threading.Thread(target=a.session.close) for _ in range(3)]
    for other in others:
        other.start()
    closes(a.session)
    closes(a.session)
    for other in others:
        other.join(T)
        assert not other.is_alive()
    assert operator.nodes(path) == []
    a.diary.wait("deposed")
    a.diary.assert_paired()
    uses: tuple[Callable[[], Any], ...] = (
        a.election.leader,
        a.election.candidates,
        a.session.__enter__,
        lambda: a.election.run(lambda _: None),
        lambda: zkelect.Election(a.session, path),
    )
    for use in uses:
        with pytest.raises(zkelect.SessionClosed, match="connect"):
            use()


@pytest.mark.parametrize("way", ["exit", "end of input"])
def test_h38_a_program_with_a_stuck_callback_ends(
    way: str,
    spawn: Callable[..., Process],
    operator: Operator,
    path: str,
    measured: Callable[[str, float, float], None],
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a = spawn("A", "--stuck")
    a.wait("elected")
    began = boottime()
    if way == "exit":
        a.order("exit")
    else:
        assert a.process.stdin is not None
        a.process.stdin.close()
    assert a.end() == 0
    measured("from the last word to the end", boottime() - began, T)
    eventually(lambda: not operator.nodes(path), "nothing is left")
