"""What an operator asks for: done, refused, replaced, late, stopped; and what is said of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs
import pytest

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.notes import encode
from zkelect.recipes.operating import Promotion
from zkelect.recipes.page import Page, Phase, Request

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

PAGE = Page(phase=Phase.STEADY, token="t", coordinator="a", primary="a")
LONG = 60.0
SHORT = 0.1


@pytest.fixture
def session(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    with zkelect.connect(zookeeper.hosts, session_timeout=4.0, tick_time=0.2) as opened:
        yield opened


@pytest.fixture
def promotion(session: zkelect.Session, path: str) -> Promotion:
    Board(session, path).prepare()
    return Promotion(session, path)


@attrs.frozen
class Answer:
    """What happens to a request as soon as it is there, in place of a coordinator."""

    session: zkelect.Session
    path: str

    def turn(self, request: Request, **changes: Any) -> None:
        """Write a page that has taken it up."""
        page = attrs.evolve(PAGE, request=request.id, **changes)
        znodes, path = zkelect.Znodes(self.session), f"{self.path}/page"
        znode = znodes.get(path)
        assert znode is not None
        assert znodes.replace(path, encode(page), version=znode.version)


Arrange = Callable[[Callable[[Answer, Request], object]], None]


@pytest.fixture
def on_request(monkeypatch: pytest.MonkeyPatch, session: zkelect.Session, path: str) -> Arrange:
    """Let something happen behind the next request."""

    def arrange(call: Callable[[Answer, Request], object]) -> None:
        ask = Board.ask

        def asked(board: Board, request: Request) -> None:
            ask(board, request)
            monkeypatch.setattr(Board, "ask", ask)
            call(Answer(session, path), request)

        monkeypatch.setattr(Board, "ask", asked)

    return arrange


def of_bob(answer: Answer, _: Request) -> Request:
    """Ask for something else."""
    other = Request(id="other", to="c", by="bob@office")
    Board(answer.session, answer.path).ask(other)
    return other


def reason_of(promotion: Promotion, timeout: float, stop: threading.Event | None = None) -> str:
    with pytest.raises(zkelect.SwitchoverFailed) as failed:
        promotion.switchover("b", timeout=timeout, stop=stop)
    return failed.value.reason


def request_of(session: zkelect.Session, path: str) -> Request | None:
    return Board(session, path).request()


def test_what_is_done_is_told(promotion: Promotion, on_request: Arrange) -> None:
    on_request(lambda answer, request: answer.turn(request, primary="b"))
    assert promotion.switchover("b", timeout=LONG) == "b"


def test_what_is_refused_is_told(promotion: Promotion, on_request: Arrange) -> None:
    on_request(lambda answer, request: answer.turn(request, refused="b is behind"))
    assert reason_of(promotion, LONG) == "b is behind"


def test_a_request_that_another_has_replaced_says_whose_it_is_at_once(
    promotion: Promotion, on_request: Arrange, session: zkelect.Session, path: str
) -> None:
    on_request(lambda answer, request: answer.turn(of_bob(answer, request)))
    assert reason_of(promotion, LONG) == "another request has taken its place, by bob@office"
    present = request_of(session, path)
    assert present is not None
    assert present.id == "other"


def test_one_that_is_replaced_before_anybody_looks_is_not_said_to_be_withdrawn(
    promotion: Promotion, on_request: Arrange
) -> None:
    on_request(of_bob)
    assert reason_of(promotion, LONG) == "another request has taken its place, by bob@office"


def test_one_that_nobody_takes_up_is_withdrawn(
    promotion: Promotion, session: zkelect.Session, path: str
) -> None:
    reason = reason_of(promotion, SHORT)
    assert reason == "not within 0.1 s; nobody had taken it up, and it is withdrawn"
    assert request_of(session, path) is None


def test_one_that_is_being_done_is_said_to_be(promotion: Promotion, on_request: Arrange) -> None:
    on_request(lambda answer, request: answer.turn(request, phase=Phase.FREEZE))
    assert reason_of(promotion, SHORT) == "not within 0.1 s; it is being done still, at freeze"


def test_who_stops_waiting_withdraws(
    promotion: Promotion, on_request: Arrange, session: zkelect.Session, path: str
) -> None:
    stop = threading.Event()
    on_request(lambda _answer, _request: stop.set())
    reason = reason_of(promotion, LONG, stop)
    assert reason == "stopped; nobody had taken it up, and it is withdrawn"
    assert request_of(session, path) is None


def test_ctrl_c_withdraws(
    promotion: Promotion, monkeypatch: pytest.MonkeyPatch, session: zkelect.Session, path: str
) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(zkelect.Following, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        promotion.switchover("b", timeout=LONG)
    assert request_of(session, path) is None
