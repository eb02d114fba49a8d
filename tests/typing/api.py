"""The public API as a user's program writes it: never run, read by mypy --strict and by pyright.

Every public name is used here in the way it is meant (tests/test_api.py says so), and each
``assert_type`` is a promise about a result. A change that breaks this file breaks somebody's build.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import httpx
import redis
import redis.asyncio
import requests
import sqlalchemy as sa
from kazoo.client import KazooClient  # pyright: ignore[reportMissingTypeStubs]  # it has no types
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session as OrmSession
from starlette.applications import Starlette

import zkelect
from zkelect import server, stores, testing

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

# --- a session ---------------------------------------------------------------------------------


def connect_plainly() -> None:
    with zkelect.connect("zk1:2181,zk2:2181,zk3:2181/app") as session:
        assert_type(session, zkelect.Session)
        assert_type(session.hosts, str)
        assert_type(session.timeout, float)
        assert_type(session.session_id, int | None)


def connect_with_everything() -> zkelect.Session:
    tls = zkelect.Tls(ca="ca.pem", certfile="host.pem", keyfile="host.key")
    return zkelect.connect(
        "zk1:2281,zk2:2281/app",
        session_timeout=10.0,
        tick_time=2.0,
        auth=zkelect.Digest(user="billing", password="secret"),
        tls=tls,
        acl=["world:anyone:r", "digest:billing:cdrwa"],
        hops=2,
        timeout=30.0,
    )


def connect_by_kerberos() -> zkelect.Session:
    return zkelect.connect("zk1", auth=zkelect.Sasl(mechanism="GSSAPI"))


def share_a_client(client: KazooClient) -> zkelect.Session:
    return zkelect.Session.adopt(client, session_timeout=10.0, tick_time=2.0, acl=None)


# --- to lead -----------------------------------------------------------------------------------


def lead_once(session: zkelect.Session) -> None:
    election = zkelect.Election(session, "/elections/reports", name="host-a")
    with election.campaign(timeout=60.0) as leadership:
        assert_type(leadership, zkelect.Leadership)
        assert_type(leadership.token, zkelect.Token)
        assert_type(leadership.check(), zkelect.Token)
        assert_type(leadership.remaining(), float)
        assert_type(leadership.deadline, float)
        assert_type(leadership.reason, zkelect.Reason | None)
        assert_type(leadership.wait_lost(timeout=5.0), bool)
        leadership.progress()
    election.resign()


def lead_and_bring_something_back(election: zkelect.Election) -> None:
    def count(leadership: zkelect.Leadership) -> int:
        return leadership.token.generation

    assert_type(election.run(count), int)
    assert_type(election.run(lambda leadership: str(leadership.token), timeout=10.0), str)


def lead_whenever_possible(election: zkelect.Election, stop: threading.Event) -> None:
    def lead(leadership: zkelect.Leadership) -> None:
        while not leadership.wait_lost(1.0):
            leadership.progress()

    election.run_forever(lead)
    election.run_forever(lead, stop=stop)


def say_everything(session: zkelect.Session, prepared: list[zkelect.Token]) -> zkelect.Election:
    def warm_up(leadership: zkelect.Leadership) -> None:
        prepared.append(leadership.check())

    return zkelect.Election(
        session,
        "/elections/database",
        name="db-1",
        address="10.0.0.1:5432",
        eligible=lambda: True,
        prepare=warm_up,
        prepare_timeout=30.0,
        healthy=lambda: bool(prepared),
        unhealthy_after=2,
        stall_timeout=60.0,
        on_suspended="pause-at-once",
        dialect="curator-latch",
        strict=True,
        priority=2,
        standby=follow_the_leader,
    )


def follow_the_leader(leaders: zkelect.Observation) -> None:
    for leader in leaders:
        print(leader and leader.address)


# --- without a thread of its own -----------------------------------------------------------------


class Diary:
    """Needs no base class: whatever has the three methods is a zkelect.Callbacks."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.pages.append(f"{leadership.name} leads")

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self.pages.append(f"{leadership.remaining():.1f} s are proven")

    def deposed(self, leadership: zkelect.Leadership) -> None:
        if leadership.reason is zkelect.Reason.EVICTED:
            self.pages.append(f"somebody deleted {leadership.node}")


def be_called_back(election: zkelect.Election) -> None:
    diary: zkelect.Callbacks = Diary()
    with election.listen(diary):
        election.start()
        assert_type(election.phase, zkelect.Phase)
        assert_type(election.status(), zkelect.Status)
        if election.phase is zkelect.Phase.LEADING:
            assert_type(election.stop(timeout=2.0), bool)


def decorate(election: zkelect.Election) -> None:
    @zkelect.leader_only(election, timeout=60.0)
    def rotate(leadership: zkelect.Leadership, day: str, *, keep: int = 7) -> list[str]:
        return [day] * keep

    assert_type(rotate("monday", keep=3), list[str])
    plain: Callable[[str], list[str]] = rotate
    plain("tuesday")


# --- pages -------------------------------------------------------------------------------------


class Outsider:
    """What a page takes in the place of an election."""

    path = "/elections/billing"

    def __init__(self, election: zkelect.Election) -> None:
        self.election = election

    def status(self) -> zkelect.Status:
        return self.election.status()


def own_page() -> tuple[bool, dict[str, object]]:
    return True, {"lag": 0}


def serve_pages(election: zkelect.Election, aelection: zkelect.AsyncElection) -> str:
    source: server.Source = Outsider(election)
    assert_type(server.application(election, aelection, source), Starlette)
    listener = server.listen("[::1]:8008")
    with server.serve(listener, election) as there:
        assert_type(there, server.Listener)
        assert_type(there.port, int)
    page: server.Page = own_page
    with server.serve_pages(":8009", {"/own": page}) as there:
        assert_type(there, server.Listener)
    status = election.status()
    assert_type(status.token, zkelect.Token | None)
    return f"{status.name} {status.phase}: {status.serving}, {status.remaining} s at {there.url}"


# --- many --------------------------------------------------------------------------------------


def stand_in_many(session: zkelect.Session) -> None:
    with zkelect.ElectionGroup(
        session,
        "/shards",
        name="worker-7",
        limit=120,
        eligible=lambda shard: shard != "shard-00013",
        healthy=lambda shard: len(shard) > 0,
        on_suspended="until-deadline",
    ) as group:
        with group.listen(Diary()):
            group.add(*(f"shard-{i:05}" for i in range(10_000)))
        assert_type(group.phase("shard-00001"), zkelect.Phase)
        assert_type(group.status("shard-00001"), zkelect.Status)
        assert_type(group.leaderships, dict[str, zkelect.Leadership])
        assert_type([group.name_of(each) for each in group.leaderships.values()], list[str])
        assert_type(group.remove("shard-00001", timeout=1.0), bool)
    assert_type(group.close(), bool)


def stand_in_many_as_others_have_it(session: zkelect.Session) -> zkelect.ElectionGroup:
    return zkelect.ElectionGroup(
        session,
        "/shards",
        spread=False,
        address="10.0.0.1:5432",
        prepare=lambda leadership: leadership.progress(),
        prepare_timeout=30.0,
        unhealthy_after=2,
        stall_timeout=60.0,
        dialect="zkelect",
        strict=True,
    )


# --- to operate ----------------------------------------------------------------------------------


def operate(election: zkelect.Election, stop: threading.Event) -> None:
    assert_type(election.pause("upgrade", by="ann", timeout=5.0), zkelect.Candidate | None)
    pause = election.paused()
    assert_type(pause, zkelect.Pause | None)
    if pause is not None:
        print(f"paused by {pause.by} since {pause.since}: {pause.why}")
    assert_type(election.resume("done", by="ann"), zkelect.Pause | None)
    assert_type(election.switchover("host-b", why="maintenance", stop=stop), zkelect.Candidate)
    evicted = election.evict("host-c", why="it hangs", by="ann", longest_lease=40.0, foreign=False)
    assert_type(evicted, zkelect.Evicted)
    if evicted.outcome is zkelect.EvictionOutcome.LEASE_OVER:
        print(f"{evicted.name} ({evicted.node}) hung; {evicted.pause or 'the next one leads'}")


def look_back(election: zkelect.Election) -> None:
    history = election.history(timeout=5.0)
    assert_type(history, tuple[zkelect.Term | zkelect.Act, ...])
    for event in history:
        if isinstance(event, zkelect.Act):
            print(f"{event.kind} of {event.target} by {event.by} at {event.at}: {event.why}")
        else:
            print(f"{event.name} led from {event.since} to {event.ended}: {event.reason}")


async def operate_on_asyncio(election: zkelect.AsyncElection, mark: zkelect.Token) -> None:
    assert_type(await election.pause("upgrade"), zkelect.Candidate | None)
    assert_type(await election.paused(), zkelect.Pause | None)
    assert_type(await election.resume(), zkelect.Pause | None)
    assert_type(await election.switchover(to="host-b", timeout=10.0), zkelect.Candidate)
    assert_type(await election.evict("host-c", why="it hangs"), zkelect.Evicted)
    assert_type(await election.history(), tuple[zkelect.Term | zkelect.Act, ...])
    assert_type(await election.adopt(mark, why="restored"), int)


# --- plain znodes, and who is there --------------------------------------------------------------


def follow_a_setting(session: zkelect.Session) -> None:
    znodes = zkelect.Znodes(session, timeout=5.0)
    znodes.ensure("/config")
    assert_type(znodes.get("/config"), zkelect.Znode | None)
    assert_type(znodes.children("/config"), tuple[str, ...] | None)
    with znodes.follow("/config") as changes:
        assert_type(changes, zkelect.Following)
        for znode in changes:
            assert_type(znode, zkelect.Znode | None)
            if znode is not None and changes.fresh:
                assert_type(znodes.replace("/config", b"", version=znode.version), bool)
                changes.close()


def register(session: zkelect.Session) -> dict[str, bytes]:
    registry = zkelect.Registry(session, "/services/billing")
    with registry.register("host-a", b"10.0.0.1:8080", timeout=30.0) as registration:
        assert_type(registration, zkelect.Registration)
        registration.update(b"10.0.0.1:8081")
        registration.wait(5.0)
        assert_type(registration.settled, bool)
    return registry.entries(timeout=5.0)


# --- to look -------------------------------------------------------------------------------------


def ask_who_leads(election: zkelect.Election) -> str:
    leader = election.leader(timeout=5.0, max_age=1.0)
    assert_type(leader, zkelect.Candidate | None)
    roll = election.candidates()
    assert_type(roll, tuple[zkelect.Candidate, ...])
    if leader is None:
        return f"nobody, of {len(roll)}"
    assert_type(leader.token, zkelect.Token | None)
    assert_type(leader.since, float | None)
    return f"{leader.name} at {leader.address}, {leader.phase or 'of another library'}"


def follow(election: zkelect.Election) -> None:
    with election.observe(timeout=5.0) as changes:
        assert_type(changes, zkelect.Observation)
        for leader in changes:
            assert_type(leader, zkelect.Candidate | None)
            if changes.fresh or changes.age < 5.0:
                break


def call_the_leader(election: zkelect.Election) -> None:
    def fetch(leader: zkelect.Candidate) -> bytes:
        return requests.get(f"http://{leader.address}/", timeout=5).content

    assert_type(election.resolve(fetch), bytes)
    assert_type(election.resolve(fetch, max_age=60.0, again=requests.ConnectionError), bytes)


def compare(token: zkelect.Token, text: str) -> bool:
    assert_type(zkelect.Token.parse(text), zkelect.Token)
    return zkelect.Token.parse(text) < token


# --- asyncio -------------------------------------------------------------------------------------


async def poll(leadership: zkelect.AsyncLeadership) -> int:
    assert_type(leadership.check(), zkelect.Token)
    assert_type(leadership.leadership, zkelect.Leadership)
    assert_type(await leadership.lost(), zkelect.Reason)
    return 1


async def lead_on_asyncio(stop: asyncio.Event) -> None:
    async with zkelect.aconnect("zk1,zk2/app", session_timeout=10.0) as session:
        assert_type(session, zkelect.AsyncSession)
        election = zkelect.AsyncElection(
            session, "/elections/poller", healthy=ping, standby=follow_on_asyncio
        )
        async with election.campaign(timeout=60.0) as leadership:
            assert_type(leadership, zkelect.AsyncLeadership)
        assert_type(await election.run(poll), int)
        await election.run_forever(poll, stop=stop)
    kept = await zkelect.aconnect("zk1", tick_time=2.0, timeout=5.0)
    assert_type(kept.timeout, float)
    await kept.close()


async def look_on_asyncio(session: zkelect.Session) -> None:
    election = zkelect.AsyncElection(zkelect.AsyncSession(session), "/elections/poller")
    assert_type(await election.leader(max_age=1.0), zkelect.Candidate | None)
    assert_type(await election.candidates(), tuple[zkelect.Candidate, ...])
    assert_type(await election.resolve(greet), str)
    async with election.observe() as changes:
        assert_type(changes, zkelect.AsyncObservation)
        async for leader in changes:
            assert_type(leader, zkelect.Candidate | None)


async def decorate_on_asyncio(election: zkelect.AsyncElection) -> None:
    @zkelect.leader_only(election)
    async def rotate(leadership: zkelect.AsyncLeadership, day: str) -> bytes:
        return day.encode()

    assert_type(await rotate("monday"), bytes)


async def follow_on_asyncio(leaders: zkelect.AsyncObservation) -> None:
    async for leader in leaders:
        print(leader and leader.address)


async def ping() -> bool:
    return True


async def greet(leader: zkelect.Candidate) -> str:
    return leader.name


# --- guarded stores ------------------------------------------------------------------------------


def write_guarded(leadership: zkelect.Leadership, engine: sa.Engine, orm: OrmSession) -> None:
    sql = stores.SqlFence(engine, domain="billing", schema="app")
    sql.claim(leadership)
    with sql.transaction(leadership) as connection:
        assert_type(connection, sa.Connection)
        connection.execute(sa.text("update invoices set state = 'sent'"))
    with sql.transaction(leadership, on=orm) as same:
        assert_type(same, OrmSession)
    assert_type(sql.run(leadership, lambda connection: connection.closed), bool)
    stores.fence_table(sa.MetaData()).create(engine)

    lite = stores.SqliteFence("jobs.db", domain="billing")
    lite.claim(leadership)
    with lite.transaction(leadership) as db:
        db.execute("insert into runs (token) values (?)", (str(leadership.token),))

    cache = stores.RedisFence(redis.Redis(), domain="billing")
    cache.claim(leadership, initialize=True)
    cache.set(leadership, "current", b"42", expire=60.0)
    assert_type(cache.incr(leadership, "runs"), int)

    with stores.ZnodeFence(leadership).transaction() as changes:
        changes.set_data("/config", b"42")

    disk = stores.FileFence(Path("current.json"), timeout=1.0)
    disk.claim(leadership)
    disk.replace(leadership, b"{}")
    assert_type(disk.read(leadership), bytes | None)

    bucket = stores.S3Fence(bucket="app", key="current.json", domain="billing")
    bucket.claim(leadership)
    bucket.replace(leadership, bucket.read(leadership))


def look_at_marks(election: zkelect.Election, stored: stores.SqliteFence) -> None:
    mark = stored.status()
    assert_type(mark, stores.Mark | None)
    if mark is not None:
        assert_type(mark.token, zkelect.Token)
    assert_type(stores.adopt(election, stored, why="restored", timeout=5.0), int)
    if mark is not None:
        assert_type(election.adopt(mark.token, by="ann"), int)


async def write_guarded_on_asyncio(leadership: zkelect.AsyncLeadership) -> None:
    engine: AsyncEngine = create_async_engine("postgresql+psycopg://localhost/app")
    sql = stores.AsyncSqlFence(engine, domain="poller")
    await sql.claim(leadership)
    async with sql.transaction(leadership) as connection:
        assert_type(connection, AsyncConnection)
    async with AsyncSession(engine) as orm, sql.transaction(leadership, on=orm) as same:
        assert_type(same, AsyncSession)
    cache = stores.AsyncRedisFence(redis.asyncio.Redis(), domain="poller")
    await cache.claim(leadership)
    await cache.set(leadership, "current", "42")


def call_a_guarded_service(leadership: zkelect.Leadership) -> None:
    with httpx.Client(event_hooks=stores.httpx_hooks(leadership)) as client:
        client.put("http://printer/jobs/1")
    hooks = stores.async_httpx_hooks(leadership)
    httpx.AsyncClient(event_hooks=hooks)
    requests.put("http://printer/jobs/1", auth=stores.RequestsAuth(leadership), timeout=5)
    requests.put("http://printer", headers={stores.HEADER: str(leadership.token)}, timeout=5)


def be_a_guarded_service(app: WSGIApplication) -> WSGIApplication:
    marks = stores.SqliteFence("marks.db", domain="billing")
    safe = {*stores.SAFE, "PROPFIND"}
    return stores.FencingMiddleware(app, mark=marks, safe=safe)


def be_a_guarded_service_on_asyncio(app: AsgiApplication) -> AsgiApplication:
    return stores.AsyncFencingMiddleware(app, mark=stores.MemoryFence(domain="billing"), hold=False)


def receive(headers: dict[str, str]) -> None:
    assert_type(stores.read_token(headers), zkelect.Token)
    with stores.Receiver(stores.SqliteFence("jobs.db", domain="billing")).accept(headers) as db:
        db.execute("insert into jobs default values")


# --- what goes wrong -----------------------------------------------------------------------------


def explain(error: zkelect.ZkelectError) -> str:
    """Whose fault it is: four kinds, and each error of a kind has its data as attributes."""
    match error:
        case zkelect.Misuse():
            return explain_misuse(error)
        case zkelect.Lost():
            return explain_lost(error)
        case zkelect.Refused():
            return explain_refusal(error)
        case zkelect.Unreachable():
            return explain_unreachable(error)
        case _:
            return str(error)


def explain_misuse(error: zkelect.Misuse) -> str:
    match error:
        case zkelect.InvalidArgument(argument=name, expected=form):
            return f"{name}: {form}"
        case zkelect.CampaignInProgress() | zkelect.NothingToAdopt() | zkelect.NameTaken():
            return error.path
        case zkelect.LeaderPresent():
            return f"{error.leader} leads with {error.token}"
        case zkelect.ForeignCompany():
            return ", ".join((*error.others, *error.unknown))
        case zkelect.NotStanding():
            return f"{error.name} is none of {', '.join(error.standing)}"
        case zkelect.ElectionPaused():
            return error.pause.why
        case zkelect.ForeignCandidate():
            return f"{error.act}: {error.node}"
        case zkelect.SwitchoverInProgress():
            return f"{error.by} moves it to {error.name}: {error.why}"
        case zkelect.SessionClosed():
            return error.hosts
        case zkelect.SessionForked():
            return f"of process {error.owner}, this is {error.pid}"
        case zkelect.MonkeyPatched():
            return f"{error.library}: {', '.join(error.modules)}"
        case _:
            return str(error)


def explain_lost(error: zkelect.Lost) -> str:
    match error:
        case zkelect.LeadershipLost():
            assert_type(error.token, zkelect.Token)
            return f"{error.token} ended: {error.reason}"
        case zkelect.LeadershipSuspended():
            return f"{error.token} is paused"
        case _:
            return str(error)


def explain_refusal(error: zkelect.Refused) -> str:
    assert_type(error.token, zkelect.Token | None)
    assert_type(error.mark, zkelect.Token | None)
    match error:
        case zkelect.Fenced() | zkelect.Unclaimed() | zkelect.StoreBusy():
            return f"{error.store} [{error.domain}] is held by {error.holder}"
        case zkelect.LineageMismatch() | zkelect.EnsembleWentBack() | zkelect.TokenConflict():
            return f"{error.token} beside {error.mark}: ask an operator"
        case zkelect.FenceStateLost() | zkelect.UnfitStore() | zkelect.DomainTaken():
            return error.detail
        case _:
            return str(error)


def explain_unreachable(error: zkelect.Unreachable) -> str:
    match error:
        case zkelect.NotElected(timeout=timeout, ahead=ahead):
            assert_type(timeout, float | None)
            assert_type(ahead, int | None)
            return f"{ahead} ahead after {timeout} s"
        case zkelect.ConnectFailed():
            return "; ".join(f"{host}: {cause}" for host, cause in error.causes.items())
        case zkelect.TlsFailed():
            return f"{error.host}: {error.cause}"
        case zkelect.AuthenticationFailed():
            return error.scheme
        case zkelect.ServerTooOld():
            return error.hosts
        case zkelect.PermissionDenied():
            return f"{error.permission} {error.path} as {', '.join(error.schemes)}"
        case zkelect.SwitchoverFailed() | zkelect.EvictionFailed():
            return f"{error.name}: {error.reason}"
        case zkelect.NobodyLeads() | zkelect.SequenceExhausted() | zkelect.RequestFailed():
            return error.path
        case _:
            return str(error)


# --- what both checkers must refuse --------------------------------------------------------------


def mistake(session: zkelect.Session, election: zkelect.Election) -> None:
    zkelect.connect("zk1", session_timout=10.0)  # type: ignore[call-arg]  # misspelt
    zkelect.aconnect("zk1", session_timout=10.0)  # type: ignore[call-arg]  # misspelt
    zkelect.Election(session, "/x", dialect="curator")  # type: ignore[arg-type]  # which one?
    zkelect.Election(session, "/x", on_suspended="wait")  # type: ignore[arg-type]  # not a policy
    zkelect.AsyncElection(session, "/x")  # type: ignore[arg-type]  # that session is blocking
    _ = election.run(poll)  # type: ignore[arg-type]  # a coroutine function is never awaited
    election.listen(object())  # type: ignore[arg-type]  # no callbacks
    election.is_leader  # type: ignore[attr-defined]  # noqa: B018  # nothing to guard a write with


def mistake_by_decorator(election: zkelect.Election) -> None:
    @zkelect.leader_only(election)
    def rotate(leadership: zkelect.Leadership, day: str) -> None:
        leadership.check()

    with election.campaign() as leadership:
        rotate(leadership, "monday")  # type: ignore[arg-type, call-arg]  # it gets its own
    rotate(day=1)  # type: ignore[arg-type]  # the types of the others stay


# --- in tests ------------------------------------------------------------------------------------


def test_on_a_real_server(zookeeper: testing.LocalEnsemble) -> None:
    with testing.FaultProxy(zookeeper.hosts) as proxy, zkelect.connect(proxy.hosts) as session:
        lost = proxy.drop_reply("create", path="/elections/*", nth=1)
        assert_type(lost, testing.Rule)
        lead_once(session)
        assert lost.wait(timeout=5.0)
        assert not proxy.unfired
        assert_type(proxy.log[0], testing.Frame)
        testing.expire(session)
    server: testing.LocalServer = zookeeper.servers[0]
    server.kill()
    server.start()


def test_on_a_network(zookeeper_ensemble: testing.FaultyEnsemble) -> None:
    zookeeper_ensemble.isolate(zookeeper_ensemble.leader())
    testing.mend(zookeeper_ensemble)


def test_in_memory(fake_ensemble: testing.FakeEnsemble) -> None:
    session = fake_ensemble.connect(session_timeout=10.0)
    assert_type(session, zkelect.Session)
    election = zkelect.Election(session, "/elections/reports")
    election.start()
    fake_ensemble.settle()
    fake_ensemble.advance(3.0)


@contextlib.contextmanager
def any_three_servers() -> Generator[testing.Ensemble]:
    """Without pytest, and on whatever this machine can do."""
    try:
        testing.find_server()
    except testing.ServerNotFound as missing:
        print(missing.looked)
        testing.install(print)
    with testing.LocalEnsemble(servers=3, tick_time=0.2) as ensemble:
        yield ensemble


def any_network() -> testing.FaultyEnsemble:
    if testing.find_missing():
        return testing.LoopbackEnsemble()
    return testing.NamespaceEnsemble(servers=3)


def containers() -> testing.FaultyEnsemble:
    return testing.DockerEnsemble(servers=3, image="zookeeper:3.8")


def cut(zookeeper: testing.Ensemble) -> None:
    distribution: testing.Distribution = testing.find_server()
    assert_type(distribution.origin, str)
    with testing.Forwarder(zookeeper.hosts) as link:
        link.cut()
        link.heal()


def explain_in_tests(start: Callable[[], None]) -> str:
    try:
        start()
    except testing.ServerFailed as error:
        return f"{error.address}: {error.log_tail}"
    except testing.NetworkUnavailable as error:
        return ", ".join(error.missing)
    except testing.ImageNotFound as error:
        return error.image
    except testing.EngineNotFound as error:
        return error.problem
    except (testing.EngineFailed, testing.InstallFailed) as error:
        return error.problem
    return ""


AsgiApplication = Callable[[Any, Any, Any], Awaitable[None]]
