"""The order of what is done for a duty, and what stops it in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from recipes.memory_cluster import Cluster, MemoryResource

import zkelect
from zkelect.recipes.choice import Policy
from zkelect.recipes.clock import now
from zkelect.recipes.duty import Act
from zkelect.recipes.member import Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.performer import Performer
from zkelect.recipes.resource import NotNow

TOKEN = zkelect.Token(lineage="0" * 16, generation=0, czxid=1, holder="0" * 16)
PROMOTE = Page(phase=Phase.PROMOTE, serial=3, token="t", coordinator="a", primary="a", winner="b")


class Leadership:
    """One that ends after so many checks."""

    token = "p1"

    def __init__(self, checks: int) -> None:
        self.left = checks

    def check(self) -> str:
        self.left -= 1
        if self.left < 0:
            raise zkelect.SessionClosed("it is over")
        return self.token


class Office:
    """One that is held, until it is left."""

    def __init__(self, leadership: Leadership | None) -> None:
        self.held = leadership
        self.stood = 0
        self.serves = False

    def stand(self) -> None:
        self.stood += 1

    def leave(self) -> None:
        self.held = None

    def opened(self, leadership: Leadership) -> None:
        self.serves = True

    def closing(self) -> None:
        self.serves = False

    @contextmanager
    def using(self) -> Iterator[Leadership]:
        if self.held is None:
            raise NotNow("not elected")
        yield self.held

    def deadline(self, leadership: Leadership) -> float:
        return now() + 1.0


class Board:
    """One whose page is at a version.

    :ivar error: what comes instead of an answer.
    """

    version = 4
    error: Exception | None = None

    def confirm(self, leadership: Leadership, version: int) -> None:
        if self.error is not None:
            raise self.error
        if version != self.version:
            raise zkelect.RequestFailed("/page", "check", "another version")


class Synchrony:
    """One that has nobody in step, and notes that it was asked first."""

    def __init__(self, acts: list[str]) -> None:
        self._acts = acts

    def begin(self, page: Page, deadline: float) -> None:
        self._acts.append("require")


class Stage:
    """A server b, its resource, and who performs duties for it."""

    def __init__(self, checks: int | None = 9) -> None:
        cluster = Cluster("a", "b")
        self.server = cluster.servers["b"]
        self.resource = MemoryResource(cluster, "b")
        self.office = Office(None if checks is None else Leadership(checks))
        self.board = Board()
        board: Any = self.board
        office: Any = self.office
        synchrony: Any = Synchrony(self.resource.acts)
        self.performer = Performer(board, self.resource, office, synchrony, Policy())


def test_the_winner_promotes_verifies_and_claims_in_this_order() -> None:
    stage = Stage()
    done = stage.performer.perform(Act.PROMOTE, PROMOTE, 4)
    assert stage.resource.acts == ["promote", "verify", "claim"]
    assert (done.serial, done.token, done.position) == (3, "p1", stage.server.position)
    assert not stage.server.open


def test_until_it_is_elected_it_stands_and_does_nothing() -> None:
    stage = Stage(checks=None)
    with pytest.raises(NotNow):
        stage.performer.perform(Act.PROMOTE, PROMOTE, 4)
    assert (stage.office.stood, stage.resource.acts) == (1, [])


@pytest.mark.parametrize("act", [Act.PROMOTE, Act.OPEN])
def test_h81_if_the_page_is_another_one_by_then_nothing_is_done(act: Act) -> None:
    stage = Stage()
    with pytest.raises(NotNow, match="another version"):
        stage.performer.perform(act, PROMOTE, 3)
    assert stage.resource.acts == []


@pytest.mark.parametrize(
    "error",
    [
        zkelect.ConnectFailed("here:1", 1.0, {}),
        zkelect.LeadershipLost("/primary", TOKEN, "expired"),
        zkelect.Fenced(store="/page", domain="/primary"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_h81_if_the_page_cannot_be_confirmed_nothing_is_done_and_nobody_has_failed(
    error: Exception,
) -> None:
    stage = Stage()
    stage.board.error = error
    with pytest.raises(NotNow):
        stage.performer.perform(Act.PROMOTE, PROMOTE, 4)
    assert stage.resource.acts == []


def test_h81_what_comes_after_the_promotion_is_not_done_when_the_lease_is_over() -> None:
    stage = Stage(checks=0)
    with pytest.raises(zkelect.SessionClosed):
        stage.performer.perform(Act.PROMOTE, PROMOTE, 4)
    assert stage.resource.acts == ["promote"]


def test_a_token_that_the_server_does_not_take_is_no_zookeeper_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its disk may be full: that is told, as what it is."""
    stage = Stage()

    def refuse(leadership: Leadership) -> None:
        raise zkelect.RequestFailed("postgresql", "claim", "no space left on device")

    monkeypatch.setattr(stage.resource, "claim", refuse)
    with pytest.raises(NotNow, match=r"the token cannot be written.*no space left"):
        stage.performer.perform(Act.PROMOTE, PROMOTE, 4)


def test_for_whom_to_wait_is_settled_before_writers_are_let_in() -> None:
    stage = Stage()
    stage.performer.perform(Act.PROMOTE, PROMOTE, 4)
    stage.performer.perform(Act.OPEN, PROMOTE, 4)
    assert stage.resource.acts[-2:] == ["require", "open"]
    assert stage.server.open


def test_h81_clients_are_led_to_it_when_it_is_open_and_no_more_before_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    seen: list[tuple[str, bool]] = []
    monkeypatch.setattr(
        stage.resource, "before", lambda act: seen.append((act, stage.office.serves))
    )
    stage.performer.perform(Act.PROMOTE, PROMOTE, 4)
    stage.performer.perform(Act.OPEN, PROMOTE, 4)
    assert ("open", False) in seen
    assert stage.office.serves
    stage.performer.perform(Act.DEMOTE, PROMOTE, 4)
    assert seen[-1] == ("demote", False)


def test_h84_the_right_is_given_up_after_the_server_was_demoted() -> None:
    stage = Stage()
    stage.server.role = Role.PRIMARY
    left: list[Role] = []
    stage.office.leave = lambda: left.append(stage.server.role)  # type: ignore[method-assign]  # to see when
    stage.performer.perform(Act.DEMOTE, PROMOTE, 4)
    assert left == [Role.DEMOTED]


def test_an_unknown_primary_cannot_be_followed_yet() -> None:
    stage = Stage()
    with pytest.raises(NotNow, match="where a is"):
        stage.performer.perform(Act.FOLLOW, PROMOTE, 4)
