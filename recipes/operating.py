"""What an operator sees of a cluster and may ask of it, from any process."""

from __future__ import annotations

import getpass
import socket
import threading
import uuid
from contextlib import suppress
from typing import Final, TypeGuard

import attrs

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.choice import Policy, SyncSet, Verdict, discords, judge
from zkelect.recipes.clock import now
from zkelect.recipes.member import Heartbeat
from zkelect.recipes.page import Page, Phase, Request

__all__ = ["ClusterStatus", "Promotion"]

_STOP_INTERVAL: Final = 0.2
"""Seconds between two looks whether we are to stop."""


@attrs.frozen(kw_only=True)
class ClusterStatus:
    """A cluster as it was found.

    :ivar page: what was decided last; None: nobody has looked after it yet.
    :ivar beats: of the agents that are there. :ivar verdicts: on every member: may it win, and why
        not; what may win now is decided again when it comes to that.
    :ivar coordinator: who decides; None: nobody now. :ivar holder: who may be writable.
    :ivar sync: who has every acknowledged write, as the present primary has recorded it.
    :ivar paused: who has paused promotions, when and why; None: nobody.
    """

    page: Page | None
    beats: tuple[Heartbeat, ...]
    verdicts: tuple[Verdict, ...]
    coordinator: str | None
    holder: str | None
    sync: SyncSet | None
    paused: zkelect.Pause | None

    @property
    def primary(self) -> str | None:
        """Who is the primary, or was last."""
        return None if self.page is None else self.page.primary

    @property
    def steady(self) -> bool:
        """Whether there is a primary and nothing is being done about it."""
        return self.page is not None and self.page.phase is Phase.STEADY

    @property
    def troubles(self) -> tuple[str, ...]:
        """What a person should look at, a line for each: what agents cannot do, and why."""
        told = ((beat.name, beat.trouble or beat.observed.detail) for beat in self.beats)
        return (*(f"{name} {why}" for name, why in told if why), *discords(self.beats))

    def beat(self, name: str) -> Heartbeat | None:
        """Return the heartbeat of a member, None when its agent is not there."""
        return next((beat for beat in self.beats if beat.name == name), None)


class Promotion:
    """The operator's side of a cluster; needs no server, and may be used beside the agents.

    :param path: of the cluster in ZooKeeper. :param policy: as the agents have it, for verdicts.
    """

    def __init__(
        self, session: zkelect.Session, path: str, *, policy: Policy | None = None
    ) -> None:
        self._board: Final = Board(session, path)
        self._policy = Policy() if policy is None else policy
        self._primary = zkelect.Election(session, self._board.primary)
        self._coordinator = zkelect.Election(session, self._board.coordinator)

    def status(self) -> ClusterStatus:
        """Read how the cluster is.

        :raises zkelect.ConnectFailed: no answer came.
        """
        page, _ = self._board.page()
        beats, (sync, _) = self._board.beats(), self._board.sync()
        leader = self._coordinator.leader()
        return ClusterStatus(
            page=page,
            beats=beats,
            verdicts=() if page is None else judge(beats, page, self._policy, sync),
            coordinator=None if leader is None else leader.name,
            holder=self._board.holder(),
            sync=_valid(sync, page),
            paused=self._pause(),
        )

    def pause(self, why: str = "", *, by: str | None = None) -> None:
        """Let nobody become primary until :meth:`resume`; who is, stays, as long as its lease.

        It is a pause of the primary's election, so that no agent can pass it.

        :raises zkelect.ElectionPaused: somebody else has paused it.
        :raises zkelect.InvalidArgument: there has never been a primary.
        """
        self._primary.pause(why, by=by)

    def resume(self, why: str = "", *, by: str | None = None) -> zkelect.Pause | None:
        """End the pause; return the one that is over, None if there was none."""
        return None if self._pause() is None else self._primary.resume(why, by=by)

    def switchover(
        self,
        to: str | None = None,
        *,
        timeout: float = 60.0,
        why: str = "",
        by: str | None = None,
        stop: threading.Event | None = None,
    ) -> str:
        """Have another server be the primary, in good order, and wait until it is.

        Nothing is lost: the new one has all that the old one ever wrote, or it is called off and
        the old one is the primary again.

        :param to: the member; None: the best. :param timeout: seconds to wait.
        :param stop: when set, it is waited for no more, and withdrawn unless it is being done.
            Ctrl-C does the same.
        :returns: who is the primary.
        :raises zkelect.SwitchoverFailed: it was refused, rolled back, or is not done in time, or
            somebody else asked for something else.
        """
        request = Request(id=_id(), to=to, by=by or _operator(), why=why)
        return str(self._bring_about(request, timeout, stop).primary)

    def forget(self, name: str, *, timeout: float = 60.0, by: str | None = None) -> None:
        """Count a member no more whose server is gone for good, for how many must be there.

        :raises zkelect.SwitchoverFailed: it is there, or nobody has done it in time.
        """
        self._bring_about(Request(id=_id(), forget=name, by=by or _operator()), timeout)

    # --- within --------------------------------------------------------------------------------

    def _pause(self) -> zkelect.Pause | None:
        try:
            return self._primary.paused()
        except zkelect.InvalidArgument:  # nobody has ever stood, so nobody can have paused it
            return None

    def _bring_about(
        self, request: Request, timeout: float, stop: threading.Event | None = None
    ) -> Page:
        """Ask, and return the steady page on which it is done."""
        wanted = request.forget or request.to or "the best"
        self._await(request, timeout, stop)
        page, _ = self._board.page()
        if not _is_over(page, request):
            late = f"not within {timeout:g} s" if stop is None or not stop.is_set() else "stopped"
            raise zkelect.SwitchoverFailed(self._board.path, wanted, self._end(request, late))
        if page.refused:
            raise zkelect.SwitchoverFailed(self._board.path, wanted, page.refused)
        return page

    def _await(self, request: Request, timeout: float, stop: threading.Event | None) -> None:
        """Ask, and wait as long as somebody may do it."""
        deadline = now() + timeout
        with self._board.pages() as pages:
            self._board.ask(request)
            try:
                while (left := deadline - now()) > 0 and not (stop and stop.is_set()):
                    page = self._board.page_of(pages.znode)
                    if _is_over(page, request) or self._is_replaced(page, request):
                        return
                    pages.wait(left if stop is None else min(left, _STOP_INTERVAL))
            except BaseException:
                with suppress(zkelect.ZkelectError):  # the reason is the other one
                    self._board.withdraw(request)
                raise

    def _is_replaced(self, page: Page | None, request: Request) -> bool:
        """Whether nobody will do it, since somebody else has asked for something."""
        if page is not None and page.request == request.id:
            return False
        present = self._board.request()
        return present is None or present.id != request.id

    def _end(self, request: Request, late: str) -> str:
        """Withdraw it, unless it is being done, and say what has become of it."""
        if self._is_replaced(self._board.page()[0], request):
            other = self._board.request()
            return f"another request has taken its place, by {other.by if other else 'somebody'}"
        self._board.withdraw(request)  # of one that is being done it changes nothing
        page, _ = self._board.page()
        if page is not None and page.request == request.id:
            return f"{late}; it is being done still, at {page.phase}"
        return f"{late}; nobody had taken it up, and it is withdrawn"


def _is_over(page: Page | None, request: Request) -> TypeGuard[Page]:
    """Whether what was asked for is done or refused."""
    return page is not None and page.request == request.id and page.phase is Phase.STEADY


def _valid(sync: SyncSet | None, page: Page | None) -> SyncSet | None:
    """Return the set only if the present primary has recorded it, as such."""
    if sync is None or page is None or sync.reign != page.reign:
        return None
    return sync


def _id() -> str:
    return uuid.uuid4().hex


def _operator() -> str:
    """Return who runs this, for people; it proves nothing."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
