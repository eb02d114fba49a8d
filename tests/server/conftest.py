"""Candidates in memory, and a client of their pages that needs no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from session.troupe import TICK, Troupe

from zkelect import server
from zkelect.testing import FakeEnsemble

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@pytest.fixture
def fake() -> Iterator[FakeEnsemble]:
    with FakeEnsemble(3, tick_time=TICK) as made:
        yield made


@pytest.fixture
def troupe(fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch) -> Troupe:
    return Troupe(fake, monkeypatch)


class Client:
    """Asks an ASGI application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def ask(self, path: str, method: str = "GET") -> httpx.Response:
        return asyncio.run(self._ask(path, method))

    async def _ask(self, path: str, method: str) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            return await client.request(method, path)


@pytest.fixture
def pages() -> Callable[..., Client]:
    """Ask the pages of these elections."""

    def make(*elections: Any) -> Client:
        return Client(server.application(*elections))

    return make


@pytest.fixture
def client() -> type[Client]:
    """Ask any application."""
    return Client
