"""The asyncio face on a real server: the same promises, with coroutines that are cancelled."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from election.waiting import WITHIN, until

import zkelect
from zkelect import stores
from zkelect.testing import expire

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Operator

    from zkelect import AsyncElection, AsyncLeadership, AsyncSession
    from zkelect.testing import LocalEnsemble

T = 2.0


async def gone(operator: Operator, path: str) -> None:
    """Wait until nobody stands, by another client's look."""
    await asyncio.to_thread(until, lambda: not operator.nodes(path), "nothing of ours is left")


# --- stand and lead --------------------------------------------------------------------------


def test_a_block_leads_and_resigns(play: Any, connect: Any, path: str, operator: Operator) -> None:
    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path, name="a", address="10.0.0.1:80")
            async with election.campaign(timeout=WITHIN) as leadership:
                assert leadership.check() == leadership.token
                assert 0 < leadership.remaining() <= T
                leader = await election.leader()
                while leader is None:
                    leader = await election.leader()
                assert (leader.name, leader.address) == ("a", "10.0.0.1:80")
                assert [each.name for each in await election.candidates()] == ["a"]
            assert leadership.reason == "resigned"
            await gone(operator, path)

    play(main())


def test_run_returns_what_the_body_returned(play: Any, connect: Any, path: str) -> None:
    async def lead(leadership: AsyncLeadership) -> str:
        return str(leadership.token)

    async def main() -> None:
        async with connect() as session:
            assert await zkelect.AsyncElection(session, path).run(lead)

    play(main())


def test_run_cancels_the_body_on_loss_and_awaits_its_end_before_the_znode_goes(
    play: Any, connect: Any, path: str, operator: Operator
) -> None:
    async def main() -> None:
        told: list[object] = []
        release = asyncio.Event()

        async def lead(leadership: AsyncLeadership) -> None:
            told.append(leadership)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.append(leadership.reason)
                await release.wait()  # it takes its time
                raise

        async with connect() as session:
            election = zkelect.AsyncElection(session, path)
            run = asyncio.ensure_future(election.run(lead))
            while not told:
                await asyncio.sleep(0.01)
            election.resign()
            while len(told) < 2:
                await asyncio.sleep(0.01)
            assert told[1] == "resigned"
            assert len(operator.nodes(path)) == 1
            release.set()
            with pytest.raises(zkelect.LeadershipLost, match="resigned"):
                await run
            await gone(operator, path)

    play(main())


def test_an_expired_session_ends_the_term_and_the_next_one_has_a_higher_token(
    play: Any, connect: Any, path: str
) -> None:
    async def main() -> None:
        async with connect() as session:
            terms: list[AsyncLeadership] = []
            stop = asyncio.Event()

            async def lead(leadership: AsyncLeadership) -> None:
                terms.append(leadership)
                if len(terms) == 1:
                    await asyncio.to_thread(expire, session.session)
                    await asyncio.Event().wait()
                stop.set()
                await asyncio.Event().wait()

            election = zkelect.AsyncElection(session, path)
            await election.run_forever(lead, stop)
            assert terms[1].token > terms[0].token
            assert [str(term.reason) for term in terms][1] == "resigned"
            assert terms[0].reason in {"expired", "lapsed"}

    play(main())


def test_a_body_that_cancels_itself_ends_run_forever_aloud(
    play: Any, connect: Any, path: str, operator: Operator
) -> None:
    async def lead(_: AsyncLeadership) -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        async with connect() as session:
            with pytest.raises(asyncio.CancelledError):
                await zkelect.AsyncElection(session, path).run_forever(lead, asyncio.Event())
            await gone(operator, path)

    play(main())


def test_lost_is_awaited_with_its_reason(
    play: Any, connect: Any, path: str, operator: Operator
) -> None:
    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path)
            async with election.campaign() as leadership:
                waiting = asyncio.ensure_future(leadership.lost())
                (node,) = operator.nodes(path)
                operator.delete(path, node)
                assert await waiting == "evicted"
                with pytest.raises(zkelect.LeadershipLost, match="evicted"):
                    leadership.check()

    play(main())


def test_who_waits_too_long_is_not_elected(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor], operator: Operator
) -> None:
    holder = cast("holder")
    holder.lead()

    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path)
            with pytest.raises(zkelect.NotElected, match="1 candidate ahead"):
                async with election.campaign(timeout=0.5):
                    pass
            with pytest.raises(zkelect.NotElected):
                await election.run(asyncio.sleep, timeout=0.0)  # type: ignore[arg-type]  # never called
            await asyncio.to_thread(
                until, lambda: len(operator.nodes(path)) == 1, "only the holder is left"
            )

    play(main())


def test_a_session_that_is_closed_wakes_who_waits(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor]
) -> None:
    cast("holder").lead()

    async def main() -> None:
        session = await connect()
        election = zkelect.AsyncElection(session, path)
        waiting = asyncio.ensure_future(election.run(asyncio.sleep))  # type: ignore[arg-type]  # never called
        while election.phase is not zkelect.Phase.WAITING:
            await asyncio.sleep(0.01)
        await session.close()
        with pytest.raises(zkelect.SessionClosed):
            await waiting

    play(main())


# --- H25: cancelled while suspended; test_cancelled.py has every await ------------------------


def test_h25_cancelled_while_suspended_nothing_is_left_when_the_link_heals(
    play: Any, path: str, operator: Operator, cast: Callable[..., Actor]
) -> None:
    bystander = cast("bystander")
    bystander.forwarder.cut()

    async def main() -> None:
        session = zkelect.AsyncSession(bystander.session)
        election = zkelect.AsyncElection(session, path)
        task = asyncio.ensure_future(election.run(asyncio.sleep))  # type: ignore[arg-type]  # never called
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        bystander.forwarder.heal()
        await gone(operator, path)

    play(main())


# --- stores, observers, misuse ---------------------------------------------------------------


def test_a_store_takes_it_and_fences_it(play: Any, connect: Any, path: str) -> None:
    fence = stores.MemoryFence(domain="d")
    ended: list[AsyncLeadership] = []

    async def main() -> None:
        async with connect() as session:
            await zkelect.AsyncElection(session, path).run(lead)

    async def lead(leadership: AsyncLeadership) -> None:
        fence.claim(leadership)
        with fence.transaction(leadership) as log:
            log.append("row")
        newer = attrs.evolve(leadership.token, czxid=leadership.token.czxid + 1)
        fence.claim(newer)  # a successor that we have not heard of
        with pytest.raises(zkelect.Fenced), fence.transaction(leadership):
            pass
        assert await leadership.lost() == "fenced"
        ended.append(leadership)

    with pytest.raises(zkelect.LeadershipLost, match="fenced"):
        play(main())
    assert len(fence.log) == 1


def test_a_loop_is_told_of_each_leader(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor]
) -> None:
    a = cast("A")
    a.lead()

    async def main() -> None:
        async with connect() as session:
            told: list[str | None] = []
            async with zkelect.AsyncElection(session, path).observe() as changes:
                async for leader in changes:
                    told.append(None if leader is None else leader.name)
                    if told[-1] == "A" and told.count("A") == 1:
                        await asyncio.to_thread(a.election.stop)
                    if "A" in told and told[-1] is None:
                        break
            assert told[-1] is None

    play(main())


def test_an_election_of_another_running_loop_is_refused(connect: Any, path: str) -> None:
    async def stand(election: AsyncElection) -> None:
        async with election.campaign():
            pass

    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path)
            async with election.campaign():
                with pytest.raises(zkelect.Misuse, match="event loop"):
                    await asyncio.to_thread(asyncio.run, stand(election))

    asyncio.run(main())


@pytest.mark.parametrize("stays", [False, True], ids=["the loop ends", "the loop goes on"])
def test_a_session_that_nobody_waits_for_is_closed(
    play: Any, zookeeper: LocalEnsemble, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()
    close = zkelect.Session.close

    def tell(session: zkelect.Session, timeout: float | None = None) -> None:
        close(session, timeout)
        closed.set()

    monkeypatch.setattr(zkelect.Session, "close", tell)

    async def main() -> None:
        opening: asyncio.Future[AsyncSession] = asyncio.ensure_future(open_(zookeeper.hosts))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        if stays:
            await asyncio.to_thread(closed.wait, WITHIN)

    async def open_(hosts: str) -> AsyncSession:
        return await zkelect.aconnect(hosts, session_timeout=T)

    play(main())
    assert closed.wait(WITHIN)


def test_what_cannot_be_connected_is_told_as_by_connect(play: Any) -> None:
    async def main() -> None:
        with pytest.raises(zkelect.ConnectFailed):
            await zkelect.aconnect("127.0.0.1:1", timeout=0.2)
        with pytest.raises(zkelect.InvalidArgument):
            await zkelect.aconnect("")

    play(main())
