"""The pages: who asks learns from the status alone whether this process leads now."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from zkelect.errors import InvalidArgument
from zkelect.group import ElectionGroup
from zkelect.session.status import Status

__all__ = ["Source", "application"]

_METHODS: Final = ["GET", "HEAD", "OPTIONS"]
_OK: Final = 200
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503
_NO_STORE: Final = {"Cache-Control": "no-store"}


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
        Route("/", pages.leader, methods=_METHODS),
        Route("/leader", pages.leader, methods=_METHODS),
        Route("/leader/{path:path}", pages.leader_of, methods=_METHODS),
        Route("/health", pages.health, methods=_METHODS),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refuse})
    app.router.redirect_slashes = False  # a probe follows no redirect
    return app


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
            raise HTTPException(_NOT_FOUND, "there are several elections: ask /leader/<path>")
        (only,) = self._singles.values()
        return _tell_leader(request, only.status())

    async def leader_of(self, request: Request) -> Response:
        path = f"/{request.path_params['path']}"
        status = self._find(path)
        if status is None:
            raise HTTPException(_NOT_FOUND, f"this process does not stand in {path}")
        return _tell_leader(request, status)

    async def health(self, request: Request) -> Response:
        found = list(self._sessions())
        healthy = all(status.usable for status in found)
        connected = all(status.connected for status in found)
        return _tell(request, healthy, {"healthy": healthy, "connected": connected})

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
    return _tell(request, status.serving, told)


def _tell(request: Request, holds: bool, told: dict[str, Any]) -> Response:
    allow = {"Allow": ", ".join(_METHODS)} if request.method == "OPTIONS" else {}
    return _answer(_OK if holds else _UNAVAILABLE, told, allow)


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for it alone
    return _answer(error.status_code, {"error": error.detail}, error.headers or {})


def _answer(status: int, told: dict[str, Any], headers: Any) -> Response:
    """JSON in ASCII: whatever is in a name, it does a terminal no harm."""
    text = json.dumps(told) + "\n"
    fields = {**headers, **_NO_STORE}
    return Response(text, status, headers=fields, media_type="application/json")
