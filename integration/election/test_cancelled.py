"""H25 for coroutines: whichever await they are cancelled at, nothing is left behind."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from election.waiting import WITHIN, until

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from conftest import Actor, Operator

    from zkelect import AsyncLeadership, AsyncObservation, AsyncSession
    from zkelect.testing import LocalEnsemble

T = 2.0


class Counted:
    """Awaits a coroutine, and tells of each of its awaits."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], tell: Callable[[], None]) -> None:
        self._awaited = coroutine.__await__()
        self._tell = tell

    def __await__(self) -> Generator[Any, Any, Any]:
        go_on: Callable[[Any], Any] = self._awaited.send
        value: Any = None
        while True:
            try:
                pending = go_on(value)
            except StopIteration as returned:
                return returned.value
            self._tell()
            try:
                value, go_on = (yield pending), self._awaited.send
            except BaseException as error:  # noqa: BLE001  # handed on
                value, go_on = error, self._awaited.throw


class Canceller:
    """Cancels a task at the n-th await, be it its own or that of a task it has begun.

    :ivar fired: whether there were so many.
    """

    def __init__(self, number: int) -> None:
        self._left = number
        self._task: asyncio.Future[None] | None = None
        self.fired = False

    async def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make)
        try:
            self._task = asyncio.ensure_future(coroutine)
            await self._task
        finally:
            loop.set_task_factory(None)

    def _make(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> asyncio.Task[Any]:
        async def counted() -> Any:
            return await Counted(coroutine, self._count)

        return asyncio.Task(counted(), loop=loop, **options)

    def _count(self) -> None:
        self._left -= 1
        if not self._left and self._task is not None:
            self.fired = True
            self._task.cancel()


@attrs.frozen
class Scene:
    """What a call is made of."""

    session: AsyncSession
    path: str
    hosts: str

    def election(self, **options: Any) -> zkelect.AsyncElection:
        return zkelect.AsyncElection(self.session, self.path, **options)


async def lead(_: AsyncLeadership) -> None:
    await asyncio.sleep(0)


async def follow(leaders: AsyncObservation) -> None:
    async for _ in leaders:
        pass


async def campaign(scene: Scene) -> None:
    async with scene.election(prepare=lead).campaign():
        await asyncio.sleep(0)


async def run(scene: Scene) -> None:
    await scene.election(prepare=lead, eligible=eligible).run(lead)


async def eligible() -> bool:
    await asyncio.sleep(0)
    return True


async def run_forever(scene: Scene) -> None:
    """Two terms, with the hold-down between them."""
    stop, terms = asyncio.Event(), []

    async def lead_twice(leadership: AsyncLeadership) -> None:
        terms.append(leadership)
        if len(terms) == 2:
            stop.set()
        await asyncio.sleep(0)

    await scene.election().run_forever(lead_twice, stop)


async def wait_in_vain(scene: Scene) -> None:
    with pytest.raises(zkelect.NotElected):
        await scene.election(standby=follow).run(lead, timeout=0.2)


async def leader(scene: Scene) -> None:
    await scene.election().leader()


async def candidates(scene: Scene) -> None:
    await scene.election().candidates()


async def observe(scene: Scene) -> None:
    async with scene.election().observe() as changes:
        async for _ in changes:
            break


async def resolve(scene: Scene) -> None:
    """The first one called is deposed, as far as the caller knows; nobody else leads."""

    async def call(_: zkelect.Candidate) -> None:
        await asyncio.sleep(0)
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await scene.election().resolve(call)


async def connect(scene: Scene) -> None:
    async with zkelect.aconnect(scene.hosts, session_timeout=T, tick_time=0.2):
        await asyncio.sleep(0)


LONELY = (campaign, run, run_forever, connect)
BEHIND_A_LEADER = (wait_in_vain, leader, candidates, observe, resolve)


def threads() -> set[threading.Thread]:
    """Those of ours; a loop keeps some for its next call of to_thread."""
    kept = ("asyncio_", "uvloop_")
    return {each for each in threading.enumerate() if not each.name.startswith(kept)}


class Audit:
    """What is there before a call; afterwards it has to be the same."""

    def __init__(self, scene: Scene, operator: Operator) -> None:
        self._scene = scene
        self._operator = operator
        self._nodes = operator.nodes(scene.path)
        self._threads = threads()

    async def settle(self) -> None:
        tasks = asyncio.all_tasks
        deadline = asyncio.get_running_loop().time() + WITHIN
        while len(tasks()) > 2 and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0)
        assert len(tasks()) <= 2, "who plays, and who waits for it"
        await asyncio.to_thread(until, lambda: not self._left(), "nothing of ours is left")
        assert not self._scene.session.session.observers

    def _left(self) -> list[object]:
        nodes = self._operator.nodes(self._scene.path)
        return [*set(nodes).difference(self._nodes), *(threads() - self._threads)]


@pytest.mark.parametrize("call", [*LONELY, *BEHIND_A_LEADER], ids=lambda call: call.__name__)
def test_h25_cancelled_at_every_await_nothing_is_left(
    call: Callable[[Scene], Coroutine[Any, Any, None]],
    play: Any,
    zookeeper: LocalEnsemble,
    path: str,
    operator: Operator,
    cast: Callable[..., Actor],
) -> None:
    if call in BEHIND_A_LEADER:
        cast("holder").lead()
    awaits = 0

    async def cancelled(scene: Scene, number: int) -> bool:
        """Whether there were so many awaits to be cancelled at."""
        canceller = Canceller(number)
        try:
            await canceller.run(call(scene))
        except asyncio.CancelledError:
            assert canceller.fired
            return True
        assert not canceller.fired, f"cancelled at await {number}, it goes on all the same"
        return False

    async def main() -> None:
        nonlocal awaits
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            scene = Scene(session, path, zookeeper.hosts)
            audit = Audit(scene, operator)
            while await cancelled(scene, awaits + 1):
                await audit.settle()
                awaits += 1
            await audit.settle()

    play(main())
    print(f"{call.__name__}: cancelled at each of {awaits} awaits")
    assert awaits >= 1


# --- H48 for coroutines --------------------------------------------------------------------------


def test_h48_a_deposed_leader_refuses_a_coroutine_and_its_successor_does_the_call(
    play: Any, zookeeper: LocalEnsemble, path: str, cast: Callable[..., Actor]
) -> None:
    actors = {name: cast(name) for name in ("A", "B")}
    actors["A"].lead()
    actors["B"].queue()
    calls: list[str] = []

    async def call(leader: zkelect.Candidate) -> str:
        calls.append(leader.name)
        if actors[leader.name].diary.all("deposed"):
            raise ConnectionRefusedError
        return leader.name

    async def main() -> None:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            client = zkelect.AsyncElection(session, path, name="client")
            onlooker = zkelect.AsyncElection(session, path, name="onlooker")
            assert await client.resolve(call) == "A"
            await asyncio.to_thread(actors["A"].election.stop)
            successor = await asyncio.to_thread(actors["B"].diary.wait, "elected")
            token, seen = successor.leadership.token, await onlooker.leader()
            while seen is None or seen.token != token:
                seen = await onlooker.leader()
            assert await client.resolve(call, max_age=3600.0) == "B"

    play(main())
    assert calls == ["A", "A", "B"]


def test_h48_a_coroutine_does_not_call_the_same_leader_twice(
    play: Any, zookeeper: LocalEnsemble, path: str, cast: Callable[..., Actor]
) -> None:
    cast("A").lead()
    calls: list[str] = []

    async def reset(leader: zkelect.Candidate) -> None:
        calls.append(leader.name)
        raise ConnectionResetError

    async def main() -> None:
        async with zkelect.aconnect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as session:
            with pytest.raises(ConnectionResetError):
                await zkelect.AsyncElection(session, path).resolve(reset)

    play(main())
    assert calls == ["A"]
