"""docs/calling.md: its examples are one program, and each of its functions does what is said."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[1] / "docs" / "calling.md"
BLOCK: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAM: Final = "\n".join(BLOCK.findall(PAGE.read_text("utf-8")))
WITHIN: Final = 30.0


@pytest.fixture(scope="module")
def page() -> Any:
    """The functions of the page, by name."""
    names: dict[str, Any] = {}
    exec(compile(PROGRAM, PAGE.name, "exec", dont_inherit=True), names)  # noqa: S102  # ours
    return names


@pytest.fixture
def session(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0) as session:
        yield session


@pytest.fixture
def election(session: zkelect.Session, path: str) -> zkelect.Election:
    return zkelect.Election(session, path, name="host-a", address="10.0.0.1:80")


@contextmanager
def running(target: Callable[..., object], *arguments: object) -> Iterator[None]:
    """Run a function of the page beside the test, and see it return."""
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(WITHIN)
    assert not thread.is_alive()


def test_a_block(page: Any, election: zkelect.Election) -> None:
    orders, stock = page["send_reports"](election)
    assert orders.startswith("orders of 00000001-")
    assert stock.startswith("stock of 00000001-")
    assert election.phase == "idle"


def test_a_function_and_its_result(page: Any, election: zkelect.Election) -> None:
    assert page["count"](election) == len("orders as of ") + 59


def test_a_service_stops_when_it_is_told_to(page: Any, election: zkelect.Election) -> None:
    leads = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with running(terminate_after, leads):
            page["serve"](election, leads)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert leads.is_set()
    assert election.phase == "idle"


def terminate_after(event: threading.Event) -> None:
    event.wait(WITHIN)
    os.kill(os.getpid(), signal.SIGTERM)


def test_callbacks(
    page: Any,
    election: zkelect.Election,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    hooks, closed = page["Hooks"](), threading.Event()
    with running(page["open_for_business"], election, hooks, closed):
        eventually(lambda: hooks.told, "elected")
        closed.set()
    assert [line.partition(":")[0] for line in hooks.told] == ["elected", "deposed"]
    assert hooks.told[1] == "deposed: resigned"


def test_a_decorator(
    page: Any, election: zkelect.Election, capsys: pytest.CaptureFixture[str]
) -> None:
    page["make_rotation"](election)
    assert capsys.readouterr().out.startswith("monday by 00000001-")


def test_asyncio(page: Any, zookeeper: LocalEnsemble) -> None:
    assert zkelect.Token.parse(asyncio.run(page["poll_once"](zookeeper.hosts))).generation == 1


def test_while_it_waits(
    page: Any,
    session: zkelect.Session,
    zookeeper: LocalEnsemble,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    cache: dict[str, str] = {}
    standby = page["serve_with_a_warm_cache"](session, cache)
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0) as other:
        with zkelect.Election(other, standby.path, name="host-a").campaign(WITHIN):
            standby.start()
            eventually(lambda: cache.get("leader") == "host-a", "it follows who leads")
        eventually(lambda: standby.phase == "leading", "it leads")
    assert standby.stop(timeout=WITHIN)


def test_who_leads_and_to_call_it(
    page: Any,
    election: zkelect.Election,
    zookeeper: LocalEnsemble,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    seen: list[str] = []
    with ExitStack() as stack:
        watching = zkelect.connect(zookeeper.hosts, session_timeout=2.0)
        watched = zkelect.Election(watching, election.path)
        stack.callback(watching.close)
        with election.campaign(WITHIN):
            stack.enter_context(running(watch_until_closed, page["watch"], watched, seen))
            stack.callback(watching.close)
            eventually(lambda: seen[-1:] == ["host-a at 10.0.0.1:80"], "the leader is seen")
            assert page["glance"](election) in ("host-a, preparing", "host-a, serving")
            assert page["ask_the_leader"](election) == "fetched from 10.0.0.1:80"
        eventually(lambda: seen[-1:] == ["nobody"], "its end is seen")


def watch_until_closed(
    watch: Callable[..., None], election: zkelect.Election, seen: list[str]
) -> None:
    with pytest.raises(zkelect.SessionClosed):
        watch(election, seen)


def test_many(
    page: Any,
    session: zkelect.Session,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    hooks, closed, led = page["Hooks"](), threading.Event(), []
    with running(lambda: led.append(page["take_shards"](session, hooks, closed))):
        eventually(lambda: len(hooks.told) == 2, "it leads as many as it may")
        closed.set()
    assert led == [2]
