"""Doing what a page asks: each duty as calls of the resource, in the order that makes it safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.choice import Policy
from zkelect.recipes.clock import now
from zkelect.recipes.duty import Act
from zkelect.recipes.member import Done, Member, Outcome
from zkelect.recipes.office import Office
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.resource import NotNow, Resource
from zkelect.recipes.synchrony import Synchrony

__all__ = ["Performer"]


class Performer:
    """Performs one duty after the other, for one server.

    :param board: to make sure that a page is still the one that asks.
    """

    def __init__(
        self, board: Board, resource: Resource, office: Office, synchrony: Synchrony, policy: Policy
    ) -> None:
        self._board = board
        self._resource = resource
        self._office = office
        self._synchrony = synchrony
        self._policy = policy
        self._acts: Final[dict[Act, Callable[[Page, int], Done]]] = {
            Act.DEMOTE: self._demote,
            Act.FENCE: self._fence,
            Act.FREEZE: self._freeze,
            Act.CATCH_UP: self._catch_up,
            Act.PROMOTE: self._promote,
            Act.OPEN: self._open,
            Act.FOLLOW: self._follow,
        }

    def perform(self, act: Act, page: Page, version: int) -> Done:
        """Do it, and return what came of it.

        :param version: of the page's znode.
        :raises NotNow: it is to be tried again. :raises NeedsRebuild: the server cannot follow.
        """
        return self._acts[act](page, version)

    def _deadline(self, timeout: float | None = None) -> float:
        return now() + (self._policy.phase_timeout if timeout is None else timeout)

    def _demote(self, page: Page, version: int) -> Done:
        """In good order only when the page asks for that; then give up the right to be writable."""
        self._office.closing()
        planned = page.planned and page.phase is Phase.DEMOTE
        position = self._resource.demote(planned=planned, deadline=self._deadline())
        self._office.leave()
        return Done(serial=page.serial, outcome=Outcome.DONE, position=position)

    def _fence(self, page: Page, version: int) -> Done:
        answer = self._resource.fence(_known(page, page.primary), self._deadline())
        return Done(serial=page.serial, outcome=Outcome.DONE, answer=answer)

    def _freeze(self, page: Page, version: int) -> Done:
        position = self._resource.freeze(page.target, self._deadline())
        return Done(serial=page.serial, outcome=Outcome.DONE, position=position)

    def _catch_up(self, page: Page, version: int) -> Done:
        position = self._resource.catch_up(self._deadline())
        return Done(serial=page.serial, outcome=Outcome.DONE, position=position)

    def _promote(self, page: Page, version: int) -> Done:
        """Stand; once elected look whether the page still names us, then promote and claim."""
        self._office.stand()
        with self._office.using() as leadership:
            self._confirm(leadership, version)
            self._resource.promote(self._in_time(leadership))
            leadership.check()
            position = self._resource.verify(self._in_time(leadership))
            self._claim(leadership)
            return Done(
                serial=page.serial,
                outcome=Outcome.DONE,
                position=position,
                token=str(leadership.check()),
            )

    def _claim(self, leadership: zkelect.Leadership) -> None:
        """Write the token; a store that does not take it is no ZooKeeper that does not answer."""
        try:
            self._resource.claim(leadership)
        except zkelect.Unreachable as error:
            raise NotNow(f"the token cannot be written: {error}") from error

    def _open(self, page: Page, version: int) -> Done:
        with self._office.using() as leadership:
            self._confirm(leadership, version)
            self._synchrony.begin(page, self._in_time(leadership))
            leadership.check()
            position = self._resource.open(self._in_time(leadership))
            self._office.opened(leadership)
            return Done(
                serial=page.serial,
                outcome=Outcome.DONE,
                position=position,
                token=str(leadership.token),
            )

    def _follow(self, page: Page, version: int) -> Done:
        primary = _known(page, page.primary)
        self._resource.follow(primary, page.position, self._deadline(self._policy.join_timeout))
        return Done(serial=page.serial, outcome=Outcome.DONE)

    def _confirm(self, leadership: zkelect.Leadership, version: int) -> None:
        """Another page may have been written while we stood; then that one is obeyed."""
        try:
            self._board.confirm(leadership, version)
        except (zkelect.Unreachable, zkelect.Lost, zkelect.Refused) as error:
            raise NotNow(str(error)) from error

    def _in_time(self, leadership: zkelect.Leadership) -> float:
        return min(self._deadline(), self._office.deadline(leadership))


def _known(page: Page, name: str | None) -> Member:
    member = page.member(name)
    if member is None:
        raise NotNow(f"the page does not tell where {name} is")
    return member
