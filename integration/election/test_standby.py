"""The body that runs while a candidate waits, on a real server: threads, and coroutines."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from election.waiting import WITHIN, until

import zkelect
from zkelect.testing import expire

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from conftest import Actor, Campaign, Operator

    from zkelect.testing import LocalEnsemble

T = 2.0


class Replica:
    """Follows the leader, and notes what it does.

    :ivar free: unset, a body hangs in its own work when its loop has ended.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self.fault: Exception | None = None
        self.begins = threading.Semaphore(0)
        self.ends = threading.Semaphore(0)
        self.threads: list[threading.Thread] = []

    def follow(self, leaders: zkelect.Observation) -> None:
        self.threads.append(threading.current_thread())
        self.notes.append("begun")
        self.begins.release()
        for leader in leaders:
            self.notes.append("nobody" if leader is None else leader.name)
        self.notes.append("ended")
        self.ends.release()
        assert self.free.wait(WITHIN)
        if self.fault is not None:
            raise self.fault
        self.notes.append("returned")

    def prepare(self, _: zkelect.Leadership) -> None:
        self.notes.append("prepare")

    @property
    def deeds(self) -> list[str]:
        """What it did, without whom it followed."""
        return [note for note in self.notes if note in ("begun", "returned", "prepare", "lead")]

    def join(self) -> None:
        for thread in self.threads:
            thread.join(WITHIN)
            assert not thread.is_alive()


@pytest.fixture
def replica() -> Iterator[Replica]:
    made = Replica()
    yield made
    made.free.set()


def begun(replica: Replica) -> None:
    assert replica.begins.acquire(timeout=WITHIN)


def ended(replica: Replica) -> None:
    assert replica.ends.acquire(timeout=WITHIN)


# --- threads -----------------------------------------------------------------------------------


def test_it_follows_the_leader_until_ours_is_about_to_lead(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign], replica: Replica
) -> None:
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow, prepare=replica.prepare)
    standing = campaign(b.election)
    until(lambda: "A" in replica.notes, "B follows A")
    a.election.stop()
    standing.leadership()
    assert replica.deeds == ["begun", "returned", "prepare"]
    replica.join()


def test_run_forever_has_a_body_for_each_wait_and_none_beside_a_term(
    cast: Callable[..., Actor], replica: Replica
) -> None:
    stop, leave = threading.Event(), threading.Semaphore(0)
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow)

    def lead(leadership: zkelect.Leadership) -> None:
        replica.notes.append("lead")
        assert leave.acquire(timeout=WITHIN)

    thread = threading.Thread(target=b.election.run_forever, args=(lead, stop), daemon=True)
    thread.start()
    begun(replica)
    for term in (1, 2):
        a.election.stop()
        b.diary.wait("elected", term)
        a.start()
        until(lambda: a.election.phase is zkelect.Phase.WAITING, "A waits behind B")
        leave.release()
        begun(replica)
    stop.set()
    thread.join(WITHIN)
    assert not thread.is_alive()
    assert replica.deeds == ["begun", "returned", "lead"] * 2 + ["begun", "returned"]
    replica.join()


def test_start_and_stop(cast: Callable[..., Actor], operator: Operator, replica: Replica) -> None:
    """stop() waits for it, too, and says whether it still runs."""
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow, prepare=replica.prepare).start()
    begun(replica)
    replica.free.clear()
    a.election.stop()
    ended(replica)
    assert b.election.phase is zkelect.Phase.PREPARING
    assert b.diary.all("elected") == []
    replica.free.set()
    b.diary.wait("elected")
    assert replica.deeds == ["begun", "returned", "prepare"]
    c = cast("C", standby=replica.follow).start()
    begun(replica)
    replica.free.clear()
    assert not c.election.stop(timeout=0.2)
    replica.free.set()
    replica.join()
    assert c.election.stop()


def test_one_that_hangs_is_waited_for_no_longer_than_prepare_may_take(
    cast: Callable[..., Actor], replica: Replica, path: str, operator: Operator
) -> None:
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow, prepare=replica.prepare, prepare_timeout=0.5).start()
    begun(replica)
    c = cast("C").queue()
    replica.free.clear()
    a.election.stop()
    c.diary.wait("elected")
    assert [term["reason"] for term in operator.terms(path)][-1] == "unprepared"
    until(lambda: b.election.phase is zkelect.Phase.WAITING, "B stands again")
    assert replica.deeds == ["begun"]  # the old one still hangs: there are never two
    replica.free.set()
    begun(replica)
    replica.free.set()
    c.election.stop()
    b.diary.wait("elected")
    assert replica.deeds == ["begun", "returned"] * 2 + ["prepare"]


def test_run_forever_gives_up_waiting_when_the_time_to_prepare_is_over(
    cast: Callable[..., Actor], replica: Replica, path: str, operator: Operator
) -> None:
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow, prepare=replica.prepare, prepare_timeout=0.5)
    stop = threading.Event()
    arguments = (lambda _: None, stop)
    thread = threading.Thread(target=b.election.run_forever, args=arguments, daemon=True)
    thread.start()
    begun(replica)
    c = cast("C").queue()
    replica.free.clear()
    a.election.stop()
    c.diary.wait("elected")
    until(lambda: b.election.phase is zkelect.Phase.WAITING, "B stands again")
    assert [term["reason"] for term in operator.terms(path)][-1] == "unprepared"
    assert replica.deeds == ["begun"]
    stop.set()
    thread.join(WITHIN)
    assert not thread.is_alive()


def test_what_it_raises_ends_the_campaign(
    cast: Callable[..., Actor],
    replica: Replica,
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    cast("A").lead()
    replica.fault = OSError("the disk is full")

    def fail(_: zkelect.Observation) -> None:
        raise replica.fault or AssertionError

    b = cast("B", standby=fail)
    for call in (
        lambda: b.election.campaign().__enter__(),
        lambda: b.election.run(lambda _: None),
        lambda: b.election.run_forever(lambda _: None),
    ):
        with pytest.raises(OSError, match="the disk is full"):
            call()
    eventually(lambda: len(operator.nodes(path)) == 1, "B has left the queue")


def test_what_it_raises_at_the_grant_ends_the_campaign_too(
    cast: Callable[..., Actor],
    campaign: Callable[..., Campaign],
    replica: Replica,
    operator: Operator,
    path: str,
) -> None:
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow, prepare=replica.prepare)
    raised: list[BaseException] = []

    def stand() -> None:
        try:
            b.election.run(lambda _: None)
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=stand, daemon=True)
    thread.start()
    begun(replica)
    replica.fault = OSError("the disk is full")
    a.election.stop()
    thread.join(WITHIN)
    assert raised == [replica.fault]
    assert "prepare" not in replica.notes
    assert operator.nodes(path) == []
    assert [term["reason"] for term in operator.terms(path)] == ["resigned", "unprepared"]


def test_a_session_that_expires_while_we_wait_does_not_disturb_it(
    cast: Callable[..., Actor], replica: Replica, operator: Operator, path: str
) -> None:
    a = cast("A")
    a.lead()
    b = cast("B", standby=replica.follow).queue()
    until(lambda: "A" in replica.notes, "B follows A")
    nodes = operator.nodes(path)
    expire(b.session)
    until(lambda: len(set(operator.nodes(path)) - set(nodes)) == 1, "B stands anew")
    until(lambda: b.election.phase is zkelect.Phase.WAITING, "B waits")
    assert replica.deeds == ["begun"]
    a.election.stop()
    b.diary.wait("elected")
    assert replica.deeds == ["begun", "returned"]


def test_who_follows_another_librarys_leader_sees_nobody(
    cast: Callable[..., Actor], replica: Replica, operator: Operator, path: str
) -> None:
    """It writes no term; and this path has never had one."""
    node = operator.stand(path)
    b = cast("B", standby=replica.follow).queue()
    until(lambda: "nobody" in replica.notes, "B is told")
    operator.delete(path, node)
    b.diary.wait("elected")
    assert replica.notes == ["begun", "nobody", "ended", "returned"]


def test_a_campaign_that_is_too_late_does_not_wait_for_ever_for_it(
    cast: Callable[..., Actor], replica: Replica, operator: Operator, path: str
) -> None:
    cast("A").lead()
    b = cast("B", standby=replica.follow)
    replica.free.clear()
    with pytest.raises(zkelect.NotElected), b.election.campaign(timeout=1.0):
        pass
    ended(replica)
    until(lambda: len(operator.nodes(path)) == 1, "B has left")
    assert replica.deeds == ["begun"]
    replica.free.set()
    replica.join()


def test_closing_the_session_ends_it_and_waits_for_nothing(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign], replica: Replica
) -> None:
    cast("A").lead()
    b = cast("B", standby=replica.follow)
    standing = campaign(b.election)
    begun(replica)
    replica.free.clear()
    b.session.close()
    ended(replica)
    with pytest.raises(zkelect.SessionClosed):
        standing.leadership()
    replica.free.set()
    replica.join()


def test_it_may_resign_or_close_the_session_itself(
    cast: Callable[..., Actor], campaign: Callable[..., Campaign]
) -> None:
    cast("A").lead()
    b: Actor = cast("B", standby=lambda _: b.election.resign())
    with pytest.raises(zkelect.NotElected):
        campaign(b.election).leadership()
    c: Actor = cast("C", standby=lambda _: c.session.close())
    with pytest.raises(zkelect.SessionClosed):
        campaign(c.election).leadership()


def test_ctrl_c_while_it_runs_leaves_nothing_behind(
    cast: Callable[..., Actor],
    replica: Replica,
    operator: Operator,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal comes when the body has begun; the main thread waits in campaign()."""
    monkeypatch.setattr("zkelect.session.candidacy.patience_of", lambda _: WITHIN)
    cast("A").lead()
    b = cast("B", standby=replica.follow)

    def interrupt() -> None:
        begun(replica)
        replica.free.clear()
        os.kill(os.getpid(), signal.SIGINT)
        ended(replica)
        threading.Event().wait(0.2)  # so that who does not wait for it would be seen
        replica.free.set()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt), b.election.campaign(WITHIN):
        pass
    assert replica.deeds == ["begun", "returned"]  # campaign() has waited a little for it
    until(lambda: len(operator.nodes(path)) == 1, "B has left")


def test_h16_a_child_that_is_forked_while_it_runs_hangs_nowhere(
    cast: Callable[..., Actor], replica: Replica
) -> None:
    cast("A").lead()
    b = cast("B", standby=replica.follow).queue()
    begun(replica)
    pid = os.fork()
    if pid == 0:
        b.election.resign()
        b.election.stop(timeout=0.0)
        b.session.close()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert b.election.stop()
    replica.join()


def test_h16_a_body_that_forks_is_told_so_in_the_child(
    cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    told: list[int] = []

    def fork(leaders: zkelect.Observation) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                leaders.wait(timeout=0.0)
            except zkelect.SessionForked:
                os._exit(7)
            os._exit(1)
        told.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    cast("A").lead()
    cast("B", standby=fork).queue()
    until(lambda: told, "the child has ended")
    assert told == [7]
    assert len(operator.nodes(path)) == 2


# --- coroutines --------------------------------------------------------------------------------


@attrs.define
class Log:
    """What coroutines note, and a way to wait for it."""

    notes: list[str] = attrs.Factory(list)

    async def wait(self, what: str, count: int = 1) -> None:
        async with asyncio.timeout(WITHIN):
            while self.notes.count(what) < count:
                await asyncio.sleep(0.01)

    @property
    def deeds(self) -> list[str]:
        known = ("begun", "ended", "prepare", "lead")
        return [note for note in self.notes if note in known]


@pytest.fixture
def log() -> Log:
    return Log()


def follower(log: Log) -> Callable[[zkelect.AsyncObservation], Coroutine[Any, Any, None]]:
    async def follow(leaders: zkelect.AsyncObservation) -> None:
        log.notes.append("begun")
        try:
            async for leader in leaders:
                name = "nobody" if leader is None else leader.name
                if log.notes[-1] != name:  # not its phase alone
                    log.notes.append(name)
        finally:
            await asyncio.sleep(0.05)  # it takes its time
            log.notes.append("ended")

    return follow


def test_a_task_is_cancelled_at_the_grant_and_awaited_before_prepare(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor], log: Log
) -> None:
    a = cast("A")
    a.lead()
    named: contextvars.ContextVar[str] = contextvars.ContextVar("named")

    async def prepare(_: zkelect.AsyncLeadership) -> None:
        log.notes.append("prepare")

    async def follow(leaders: zkelect.AsyncObservation) -> None:
        log.notes.append(named.get())
        await follower(log)(leaders)

    async def main() -> None:
        named.set("as who campaigns")
        async with connect() as session:
            election = zkelect.AsyncElection(session, path, standby=follow, prepare=prepare)
            stop = asyncio.Event()

            async def lead(leadership: zkelect.AsyncLeadership) -> None:
                log.notes.append("lead")
                await asyncio.to_thread(a.queue)
                if log.notes.count("lead") == 2:
                    stop.set()
                    await asyncio.Event().wait()

            forever = asyncio.ensure_future(election.run_forever(lead, stop))
            for count in (1, 2):
                await log.wait("A", count)
                await asyncio.to_thread(a.election.stop)
                await log.wait("lead", count)
            await forever
        assert log.deeds == ["begun", "ended", "prepare", "lead"] * 2
        assert log.notes[0] == "as who campaigns"

    play(main())


def test_a_task_that_will_not_end_is_awaited_no_longer_than_prepare_may_take(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor], log: Log
) -> None:
    a = cast("A")
    a.lead()
    c = cast("C")

    async def main() -> None:
        free = asyncio.Event()

        async def hang(_: zkelect.AsyncObservation) -> None:
            log.notes.append("begun")
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    log.notes.append("cancelled")
            log.notes.append("ended")

        async with connect() as session:
            election = zkelect.AsyncElection(session, path, standby=hang, prepare_timeout=0.5)
            run = asyncio.ensure_future(election.run_forever(asyncio.sleep))  # type: ignore[arg-type]  # never called
            try:
                await log.wait("begun")
                await asyncio.to_thread(c.queue)
                await asyncio.to_thread(a.election.stop)
                await asyncio.to_thread(c.diary.wait, "elected")
                while election.phase is not zkelect.Phase.WAITING:
                    await asyncio.sleep(0.01)
                assert log.notes == ["begun", "cancelled"]
                run.cancel()
                await asyncio.wait({run}, timeout=0.2)
                assert not run.done()  # its end is awaited, however long it takes
            finally:
                free.set()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert log.notes[-1] == "ended"

    play(main())


@pytest.mark.parametrize("call", ["campaign", "run", "run_forever"])
def test_what_a_task_raises_ends_the_campaign(
    call: str, play: Any, connect: Any, path: str, cast: Callable[..., Actor], operator: Operator
) -> None:
    cast("A").lead()

    async def fail(_: zkelect.AsyncObservation) -> None:
        raise OSError("the disk is full")

    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path, standby=fail)
            calls: dict[str, Callable[[], Any]] = {
                "campaign": lambda: election.campaign().__aenter__(),
                "run": lambda: election.run(asyncio.sleep),  # type: ignore[arg-type]  # never called
                "run_forever": lambda: election.run_forever(asyncio.sleep),  # type: ignore[arg-type]
            }
            with pytest.raises(OSError, match="the disk is full"):
                await calls[call]()
            await asyncio.to_thread(
                until, lambda: len(operator.nodes(path)) == 1, "nothing of ours is left"
            )

    play(main())


def test_a_task_that_cancels_itself_ends_the_campaign_aloud(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor]
) -> None:
    cast("A").lead()

    async def leave(_: zkelect.AsyncObservation) -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path, standby=leave)
            with pytest.raises(asyncio.CancelledError):
                await election.run(asyncio.sleep)  # type: ignore[arg-type]  # never called

    play(main())


def test_what_cannot_be_awaited_is_told(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor]
) -> None:
    cast("A").lead()
    function: Any = lambda leaders: 42  # noqa: E731  # of a lambda it shows only then

    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path, standby=function)
            with pytest.raises(zkelect.InvalidArgument, match=r"standby=.* returned 42"):
                await election.run(asyncio.sleep)  # type: ignore[arg-type]  # never called

    play(main())


def test_a_task_ends_with_its_session(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor], log: Log
) -> None:
    cast("A").lead()

    async def main() -> None:
        session = await connect()
        election = zkelect.AsyncElection(session, path, standby=follower(log))
        run = asyncio.ensure_future(election.run(asyncio.sleep))  # type: ignore[arg-type]  # never called
        await log.wait("A")
        await session.close()
        with pytest.raises(zkelect.SessionClosed):
            await run
        assert log.deeds == ["begun", "ended"]

    play(main())


def test_a_timeout_ends_a_task_and_awaits_its_end(
    play: Any, connect: Any, path: str, cast: Callable[..., Actor], log: Log
) -> None:
    cast("A").lead()

    async def main() -> None:
        async with connect() as session:
            election = zkelect.AsyncElection(session, path, standby=follower(log))
            with pytest.raises(zkelect.NotElected):
                await election.run(asyncio.sleep, timeout=1.0)  # type: ignore[arg-type]  # never called
            assert log.deeds == ["begun", "ended"]

    play(main())


def test_an_election_whose_event_loop_has_gone_stands_in_the_next_one(
    zookeeper: LocalEnsemble, path: str, cast: Callable[..., Actor], log: Log
) -> None:
    """Whoever drops a loop drops its tasks: nobody waits for their end any more."""
    a = cast("A")
    a.lead()

    async def follow(leaders: zkelect.AsyncObservation) -> None:
        log.notes.append("begun")
        async for _ in leaders:
            pass

    def make_way() -> None:
        until(lambda: log.notes.count("begun") == 2, "the second body has begun")
        a.election.stop()

    async def again(election: zkelect.AsyncElection) -> str:
        async with election.campaign(WITHIN) as leadership:
            return leadership.leadership.name

    with zkelect.connect(zookeeper.hosts, session_timeout=T, tick_time=0.2) as opened:
        election = zkelect.AsyncElection(zkelect.AsyncSession(opened), path, standby=follow)
        loop = asyncio.new_event_loop()
        dropped = loop.create_task(election.run(asyncio.sleep))  # type: ignore[arg-type]  # never called
        loop.run_until_complete(log.wait("begun"))
        election.resign()
        loop.close()
        threading.Thread(target=make_way, daemon=True).start()
        assert asyncio.run(again(election)) == election.name
    assert not dropped.done()
