"""The pages: who asks learns from the status alone whether this process leads now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from zkelect.errors import InvalidArgument
from zkelect.group import ElectionGroup
from zkelect.server.answers import METHODS, NOT_FOUND, application_of, tell
from zkelect.session.status import Status

__all__ = ["Page", "Source", "application", "application_for"]


class Page(Protocol):
    """A page of one's own: whether something holds, and what is told of it, as JSON takes it."""

    def __call__(self) -> tuple[bool, Mapping[str, object]]:
        """Return both, at once, without asking anybody."""


class Source(Protocol):
    """An election as a page needs it: :class:`zkelect.Election`, or what stands for one."""

    @property
    def path(self) -> str:
        """Of the election."""

    def status(self) -> Status:
        """Return where its candidate stands now: at once, without asking anybody."""


def application(*elections: Source | ElectionGroup) -> Starlette:
    """Make an ASGI application of two pages, to serve by itself or to mount in another one.

    * ``/leader``, and ``/`` the same: 200 while this process serves by the lease, else 503. Of
      several elections, and of a group's, ``/leader/<path>``, as ``/leader/elections/billing``.
    * ``/health``: 200 while this process can take part, whether or not it leads, and whether or
      not ZooKeeper answers; 503 once it never can again.

    The answer is made of the lease at that very moment, and asks no server: while the old leader
    is told 200 nobody else can be. GET, HEAD and OPTIONS are answered alike.

    :param elections: one or more of :class:`zkelect.Election`, :class:`zkelect.AsyncElection`,
        :class:`zkelect.ElectionGroup`, or objects with their ``path`` and ``status()``.
    :raises InvalidArgument: none is given, or two of one path.
    """
    pages = _Pages(elections)
    routes = [
        Route("/", pages.leader, methods=METHODS),
        Route("/leader", pages.leader, methods=METHODS),
        Route("/leader/{path:path}", pages.leader_of, methods=METHODS),
        Route("/health", pages.health, methods=METHODS),
    ]
    return application_of(routes)


def application_for(pages: Mapping[str, Page]) -> Starlette:
    """Make an ASGI application of pages of one's own, by path.

    :param pages: each answers at once: whether it holds, told as 200 or 503, and what is so.
    """
    return application_of([_route(path, page) for path, page in pages.items()])


def _route(path: str, page: Page) -> Route:
    async def answer(request: Request) -> Response:
        return tell(request, *page())

    return Route(path, answer, methods=METHODS)


class _Pages:
    """What is asked of several elections."""

    def __init__(self, elections: tuple[Source | ElectionGroup, ...]) -> None:
        self._groups = [each for each in elections if isinstance(each, ElectionGroup)]
        singles = [each for each in elections if not isinstance(each, ElectionGroup)]
        self._singles = {each.path: each for each in singles}
        if not elections or len(self._singles) < len(singles):
            raise InvalidArgument("elections", elections, "one or more, each of another path")

    async def leader(self, request: Request) -> Response:
        if self._groups or len(self._singles) > 1:
            raise HTTPException(NOT_FOUND, "there are several elections: ask /leader/<path>")
        (only,) = self._singles.values()
        return _tell_leader(request, only.status())

    async def leader_of(self, request: Request) -> Response:
        path = f"/{request.path_params['path']}"
        status = self._find(path)
        if status is None:
            raise HTTPException(NOT_FOUND, f"this process does not stand in {path}")
        return _tell_leader(request, status)

    async def health(self, request: Request) -> Response:
        found = list(self._sessions())
        healthy = all(status.usable for status in found)
        connected = all(status.connected for status in found)
        return tell(request, healthy, {"healthy": healthy, "connected": connected})

    def _find(self, path: str) -> Status | None:
        if path in self._singles:
            return self._singles[path].status()
        root, _, name = path.rpartition("/")
        found = (_status_in(group, name) for group in self._groups if group.root == root)
        return next((status for status in found if status is not None), None)

    def _sessions(self) -> Iterator[Status]:
        """One status of each session at least: all elections of a group have one."""
        for single in self._singles.values():
            yield single.status()
        for group in self._groups:
            found = (_status_in(group, name) for name in group)
            yield from islice((status for status in found if status is not None), 1)


def _status_in(group: ElectionGroup, name: str) -> Status | None:
    try:
        return group.status(name)
    except InvalidArgument:  # it is not in the group, or not any more
        return None


def _tell_leader(request: Request, status: Status) -> Response:
    told = {
        "path": status.path,
        "name": status.name,
        "phase": status.phase,
        "serving": status.serving,
        "remaining": math.floor(status.remaining * 1000) / 1000,  # never more than there is
        "token": None if status.token is None else str(status.token),
        "ahead": status.ahead,
        "connected": status.connected,
    }
    return tell(request, status.serving, told)
