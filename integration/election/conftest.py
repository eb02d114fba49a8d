"""What several tests of elections stand on: a session behind a forwarder, an event loop."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from election.actor import SESSION_TIMEOUT, TICK
from election.waiting import WITHIN

import zkelect
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from zkelect.testing import LocalEnsemble


# --- a session that can be harmed ----------------------------------------------------------------


@pytest.fixture
def proxy(zookeeper: LocalEnsemble) -> Iterator[FaultProxy]:
    with FaultProxy(zookeeper.hosts) as between:
        yield between


@pytest.fixture
def session(proxy: FaultProxy) -> Iterator[zkelect.Session]:
    """A session through the forwarder."""
    with zkelect.connect(proxy.hosts, session_timeout=SESSION_TIMEOUT, tick_time=TICK) as opened:
        yield opened


@pytest.fixture
def no_slow_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the slow look, which makes up for what is missed, come too late for this test."""
    monkeypatch.setattr(random, "uniform", lambda *_: 1000.0)


# --- coroutines ----------------------------------------------------------------------------------


@pytest.fixture(params=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Run a coroutine in a new event loop of either kind; no task may be left in the end."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    async def whole(coroutine: Coroutine[Any, Any, None]) -> None:
        await asyncio.wait_for(coroutine, 3 * WITHIN)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)

    def run(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(whole(coroutine))

    return run


@pytest.fixture
def connect(zookeeper: LocalEnsemble) -> Callable[[], Any]:
    """Open a session, to be awaited or entered."""
    return lambda: zkelect.aconnect(
        zookeeper.hosts, session_timeout=SESSION_TIMEOUT, tick_time=TICK
    )
