"""Calls as somebody types them wrong: told what was wrong, the value and the right form.

Nothing is asked of the servers, and no thread begins. What only servers can tell is in
integration/access.
"""

from __future__ import annotations

import asyncio
import functools
import math
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import attrs
import pytest

import zkelect
from zkelect.testing import FakeEnsemble

PATH = "/elections/billing"
WITHIN = 20.0


@attrs.frozen
class Ours:
    """What the calls are made of."""

    session: zkelect.Session

    @property
    def election(self) -> zkelect.Election:
        return zkelect.Election(self.session, PATH)

    @property
    def awaiting(self) -> zkelect.AsyncElection:
        return zkelect.AsyncElection(zkelect.AsyncSession(self.session), PATH)


@pytest.fixture
def ours() -> Iterator[Ours]:
    with FakeEnsemble(tick_time=0.2) as fake:
        session = fake.connect(session_timeout=2.0, tick_time=0.2)
        fake.settle()
        steps, threads = fake.steps, living()
        yield Ours(session)
        assert fake.steps == steps, "something was asked of the servers"
        assert fake.children("/") == []
        assert living() == threads


def living() -> set[threading.Thread]:
    """The threads there are, but for those that have just told what they were asked."""
    for thread in threading.enumerate():
        if thread.name == "zkelect aio":
            thread.join(WITHIN)
    return set(threading.enumerate())


def refused(argument: str, value: object, call: Callable[[], object]) -> str:
    """Return what the call is told."""
    with pytest.raises(zkelect.InvalidArgument) as caught:
        call()
    error = caught.value
    assert isinstance(error, zkelect.Misuse | ValueError)
    assert error.argument == argument
    assert error.value is value or error.value == value
    assert str(error).startswith(f"{argument}=")
    assert error.expected in str(error)
    return str(error)


def follow(_: object) -> None: ...


async def follow_awaited(_: object) -> None: ...


@functools.wraps(follow_awaited)
def decorated(_: object) -> Any:
    return follow_awaited(_)


class Hooks:
    def elected(self, leadership: zkelect.Leadership) -> None: ...
    def suspended(self, leadership: zkelect.Leadership) -> None: ...
    def deposed(self, leadership: zkelect.Leadership) -> None: ...


class Forgetful:
    def elected(self, leadership: zkelect.Leadership) -> None: ...
    def deposed(self, leadership: zkelect.Leadership) -> None: ...


class Awaited(Hooks):
    async def deposed(self, leadership: zkelect.Leadership) -> None: ...  # type: ignore[override]  # wrong on purpose


class Awaitable:
    async def __call__(self, _: object) -> None: ...


# --- making an election ------------------------------------------------------------------------

NO_ELECTION: list[tuple[str, Any, str]] = [
    ("name", b"host-a", "text (str)"),
    ("name", 5, "text (str)"),
    ("name", "half a pair \ud800", "UTF-8"),
    ("address", None, "text (str)"),
    ("address", ("10.0.0.1", 5432), "text (str)"),
    ("eligible", True, "a function without arguments"),
    ("prepare", "catch_up", "a function of the leadership"),
    ("healthy", True, "a function"),
    ("standby", 5, "a function of an observation"),
    ("prepare_timeout", "5", "a number of seconds"),
    ("prepare_timeout", timedelta(seconds=5), "a number of seconds"),
    ("prepare_timeout", True, "a number of seconds"),
    ("prepare_timeout", math.nan, "a number of seconds"),
    ("prepare_timeout", -1, "a number of seconds"),
    ("prepare_timeout", 0, "above 0, or None"),
    ("stall_timeout", "5", "a number of seconds"),
    ("stall_timeout", 0.0, "above 0, or None"),
    ("unhealthy_after", "3", "at least 1"),
    ("unhealthy_after", 2.5, "at least 1"),
    ("unhealthy_after", 0, "at least 1"),
    ("on_suspended", "go-on", "until-deadline"),
    ("on_suspended", None, "pause-at-once"),
    ("dialect", "curator", "curator-latch"),
    ("dialect", ["kazoo"], "curator-lock"),
    ("strict", "no", "True or False"),
    ("strict", None, "True or False"),
    ("priority", "1", "0 to 4095"),
    ("priority", -1, "0 to 4095"),
]


@pytest.mark.parametrize(("argument", "value", "told"), NO_ELECTION)
def test_elections_that_cannot_be(ours: Ours, argument: str, value: Any, told: str) -> None:
    for make, session in (
        (zkelect.Election, ours.session),
        (zkelect.AsyncElection, zkelect.AsyncSession(ours.session)),
    ):
        call = functools.partial(make, session, PATH, **{argument: value})  # type: ignore[arg-type]  # wrong on purpose
        assert told in refused(argument, value, call)


@pytest.mark.parametrize("argument", ["eligible", "prepare", "healthy", "standby"])
@pytest.mark.parametrize(
    "function",
    [
        follow_awaited,
        Awaitable(),
        functools.partial(follow_awaited, 1),
        functools.partial(Awaitable(), 1),
    ],
)
def test_a_coroutine_function_is_always_true_for_a_thread(
    ours: Ours, argument: str, function: Any
) -> None:
    """So it would stand, though unfit, and count as healthy, though it never ran."""
    told = refused(
        argument, function, lambda: zkelect.Election(ours.session, PATH, **{argument: function})
    )
    assert "a coroutine function needs an AsyncElection" in told


def test_an_ordinary_standby_body_would_stop_the_event_loop(ours: Ours) -> None:
    session = zkelect.AsyncSession(ours.session)
    function: Any = follow
    told = refused(
        "standby", function, lambda: zkelect.AsyncElection(session, PATH, standby=function)
    )
    assert "an ordinary one needs an Election" in told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (b"/elections/billing", "text (str)"),
        (None, "text (str)"),
        ("elections/billing", "a relative path"),
        ("/", "the root"),
        ("/elections/billing.zkelect", "where the record of an election beside it lives"),
        ("/elections/billing.zkelect/x", "where the record of an election beside it lives"),
    ],
)
def test_paths_that_can_hold_no_election(ours: Ours, path: Any, told: str) -> None:
    assert told in refused("path", path, lambda: zkelect.Election(ours.session, path))
    session = zkelect.AsyncSession(ours.session)
    assert told in refused("path", path, lambda: zkelect.AsyncElection(session, path))


def test_sessions_that_are_none(ours: Ours) -> None:
    session, awaiting = ours.session, zkelect.AsyncSession(ours.session)
    for wrong in ("zk1:2181", None, awaiting):
        call: Any = functools.partial(zkelect.Election, wrong, PATH)  # type: ignore[arg-type]  # wrong on purpose
        assert "from connect()" in refused("session", wrong, call)
    for wrong_ in ("zk1:2181", None, session):
        call = functools.partial(zkelect.AsyncElection, wrong_, PATH)  # type: ignore[arg-type]  # wrong on purpose
        assert "await aconnect" in refused("session", wrong_, call)
    for wrong__ in ("zk1:2181", None, awaiting):
        call = functools.partial(zkelect.AsyncSession, wrong__)  # type: ignore[arg-type]  # wrong on purpose
        assert "from connect()" in refused("session", wrong__, call)


# --- times ---------------------------------------------------------------------------------------

NO_TIMES: list[Any] = ["5", b"5", [5], True, timedelta(seconds=5), math.nan, math.inf, -1, -0.001]

WAITS: dict[str, Callable[[Ours, Any], object]] = {
    "campaign": lambda ours, time: ours.election.campaign(time).__enter__(),
    "run": lambda ours, time: ours.election.run(follow, time),
    "stop": lambda ours, time: ours.election.stop(time),
    "close": lambda ours, time: ours.session.close(time),
    "leader_only": lambda ours, time: zkelect.leader_only(ours.election, timeout=time)(follow),
    "await campaign": lambda ours, time: asyncio.run(ours.awaiting.campaign(time).__aenter__()),
    "await run": lambda ours, time: asyncio.run(ours.awaiting.run(follow_awaited, time)),
    "await close": lambda ours, time: asyncio.run(zkelect.AsyncSession(ours.session).close(time)),
}
"""Calls for which None is a time, too: as long as it takes, or a time of our own."""

ANSWERS: dict[str, Callable[[Ours, Any], object]] = {
    "leader": lambda ours, time: ours.election.leader(time),
    "candidates": lambda ours, time: ours.election.candidates(time),
    "observe": lambda ours, time: ours.election.observe(time),
    "resolve": lambda ours, time: ours.election.resolve(follow, timeout=time),
    "connect": lambda _, time: zkelect.connect("127.0.0.1:1", timeout=time),
    "await observe": lambda ours, time: ours.awaiting.observe(time),
    "await connect": lambda _, time: asyncio.run(opened(time)),
}


async def opened(time: Any) -> None:
    await zkelect.aconnect("127.0.0.1:1", timeout=time)


@pytest.mark.parametrize("time", NO_TIMES, ids=repr)
@pytest.mark.parametrize("call", [*WAITS, *ANSWERS])
def test_times_that_are_none(ours: Ours, call: str, time: Any) -> None:
    made = {**WAITS, **ANSWERS}[call]
    told = refused("timeout", time, lambda: made(ours, time))
    assert "a number of seconds from 0" in told
    assert ("or None" in told) == (call in WAITS)


@pytest.mark.parametrize("call", ANSWERS)
def test_an_answer_is_not_waited_for_without_end(ours: Ours, call: str) -> None:
    refused("timeout", None, lambda: ANSWERS[call](ours, None))


@pytest.mark.parametrize("age", [*NO_TIMES, None], ids=repr)
def test_ages_that_are_none(ours: Ours, age: Any) -> None:
    refused("max_age", age, lambda: ours.election.leader(max_age=age))
    refused("max_age", age, lambda: ours.election.resolve(follow, max_age=age))


@pytest.mark.parametrize("time", [*NO_TIMES, 0, None], ids=repr)
def test_session_timeouts_that_are_none(time: Any) -> None:
    call = functools.partial(zkelect.connect, "127.0.0.1:1", timeout=0.0, session_timeout=time)
    assert "a number of seconds" in refused("session_timeout", time, call)


@pytest.mark.parametrize("time", [*NO_TIMES, 0], ids=repr)
def test_ticks_that_are_none(time: Any) -> None:
    call = functools.partial(zkelect.connect, "127.0.0.1:1", timeout=0.0, tick_time=time)
    assert "a number of seconds above 0" in refused("tick_time", time, call)


# --- functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", [None, 5, "lead", follow_awaited, Awaitable()])
def test_bodies_that_a_thread_cannot_run(ours: Ours, lead: Any) -> None:
    for call in (ours.election.run, ours.election.run_forever):
        refused("lead", lead, functools.partial(call, lead))


@pytest.mark.parametrize(
    "lead", [None, 5, "lead", follow, Hooks().elected, functools.partial(follow, 1)]
)
def test_bodies_that_cannot_be_awaited(ours: Ours, lead: Any) -> None:
    for call in (ours.awaiting.run, ours.awaiting.run_forever):
        told = refused("lead", lead, lambda call=call: asyncio.run(call(lead)))  # type: ignore[misc]  # a default binds it
        assert "a coroutine function" in told


@pytest.mark.parametrize(
    "function",
    [
        follow_awaited,
        functools.partial(follow_awaited, 1),
        Awaitable(),
        decorated,
        lambda leaders: follow_awaited([leaders]),
    ],
)
def test_what_may_be_awaited_is_let_pass(ours: Ours, function: Any) -> None:
    """A function that only hands on what somebody else's coroutine function gave."""
    zkelect.AsyncElection(zkelect.AsyncSession(ours.session), PATH, standby=function)


@pytest.mark.parametrize("stop", [5, True, asyncio.Event(), follow])
def test_events_that_a_thread_cannot_look_at(ours: Ours, stop: Any) -> None:
    told = refused("stop", stop, lambda: ours.election.run_forever(follow, stop))
    assert "a threading.Event" in told


@pytest.mark.parametrize("stop", [5, True, threading.Event(), follow])
def test_events_that_would_stop_the_event_loop(ours: Ours, stop: Any) -> None:
    told = refused(
        "stop", stop, lambda: asyncio.run(ours.awaiting.run_forever(follow_awaited, stop))
    )
    assert "an asyncio.Event" in told


@pytest.mark.parametrize(
    ("callbacks", "argument", "told"),
    [
        (None, "callbacks", "there is no elected()"),
        (follow, "callbacks", "there is no elected()"),
        (Forgetful(), "callbacks", "there is no suspended()"),
        (Hooks, "callbacks", "this is a class"),
    ],
)
def test_callbacks_that_would_be_missed(
    ours: Ours, callbacks: Any, argument: str, told: str
) -> None:
    assert told in refused(argument, callbacks, lambda: ours.election.listen(callbacks).__enter__())


def test_a_callback_that_would_never_run(ours: Ours) -> None:
    hooks: Any = Awaited()
    refused("callbacks.deposed", hooks.deposed, lambda: ours.election.listen(hooks).__enter__())


@pytest.mark.parametrize("call", [None, 5, follow_awaited])
def test_calls_that_cannot_be_made(ours: Ours, call: Any) -> None:
    refused("call", call, lambda: ours.election.resolve(call))


@pytest.mark.parametrize("call", [None, 5, follow])
def test_calls_that_cannot_be_awaited(ours: Ours, call: Any) -> None:
    refused("call", call, lambda: asyncio.run(ours.awaiting.resolve(call)))


@pytest.mark.parametrize("again", [None, "TimeoutError", int, TimeoutError(), (OSError, "x")])
def test_what_except_could_not_take(ours: Ours, again: Any) -> None:
    refused("again", again, lambda: ours.election.resolve(follow, again=again))
    refused("again", again, lambda: asyncio.run(ours.awaiting.resolve(follow_awaited, again=again)))


def test_the_decorator(ours: Ours) -> None:
    only: Any = zkelect.leader_only
    for wrong in (None, 5, ours.session, follow):
        assert "@leader_only(election)" in refused("election", wrong, lambda w=wrong: only(w))  # type: ignore[misc]
    refused("function", 5, lambda: only(ours.election)(5))
    refused("function", follow_awaited, lambda: only(ours.election)(follow_awaited))
    refused("function", follow, lambda: only(ours.awaiting)(follow))


# --- the session ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value", "shown", "told"),
    [
        ("auth", ("user", "secret"), "tuple", "Digest(user="),
        ("auth", "user:secret", "str", "Digest(user="),
        ("tls", True, True, "Tls(ca="),
        ("tls", "ca.pem", "ca.pem", "Tls(ca="),
        ("acl", "world:anyone:r", "world:anyone:r", "a list of entries"),
        ("acl", 5, 5, "a list of entries"),
        ("acl", [], [], "a list of entries"),
        ("acl", [5], 5, "'scheme:id:permissions'"),
        ("hops", 3, 3, "1 or 2"),
        ("hops", "1", "1", "1 or 2"),
        ("hops", None, None, "1 or 2"),
    ],
)
def test_sessions_that_cannot_be(argument: str, value: Any, shown: Any, told: str) -> None:
    """Who gives credentials in the wrong form does not read them in a log."""
    before = living()
    message = refused(
        argument, shown, lambda: zkelect.connect("127.0.0.1:1", timeout=0.0, **{argument: value})
    )
    assert told in message
    assert "secret" not in message
    assert living() == before


@pytest.mark.parametrize("hosts", [None, 5, b"zk1:2181", ["zk1:2181"], ("zk1", 2181)])
def test_hosts_that_are_none(hosts: Any) -> None:
    assert "the form is" in refused("hosts", hosts, lambda: zkelect.connect(hosts))


def test_clients_that_cannot_be_adopted(ours: Ours) -> None:
    adopt: Any = zkelect.Session.adopt
    for client in ("zk1:2181", None, ours.session):
        call: Any = functools.partial(adopt, client, session_timeout=5.0)
        assert "KazooClient" in refused("client", client, call)


def test_marks_that_are_none(ours: Ours) -> None:
    adopt: Any = ours.election.adopt
    assert "at least one" in refused("marks", (), adopt)
    assert "Token.parse()" in refused("marks", ("00000001-",), lambda: adopt("00000001-"))


# --- standing twice ------------------------------------------------------------------------------


def test_a_path_has_one_right_spelling_and_a_session_one_candidate_on_it(ours: Ours) -> None:
    first = zkelect.Election(ours.session, PATH, name="first")
    twins = [
        zkelect.Election(ours.session, f"{PATH}/", name="second"),
        zkelect.Election(ours.session, PATH, name="first"),
        first,
    ]
    awaiting = zkelect.AsyncElection(zkelect.AsyncSession(ours.session), PATH, name="third")
    places = ours.session.roster.places
    places.take(PATH, "first")  # as first.start() does, without asking the servers
    calls: list[Callable[[], object]] = [
        *(twin.start for twin in twins),
        *(lambda twin=twin: twin.campaign().__enter__() for twin in twins),
        *(lambda twin=twin: twin.run(follow) for twin in twins),
        *(lambda twin=twin: twin.run_forever(follow) for twin in twins),
        lambda: asyncio.run(awaiting.run(follow_awaited)),
        lambda: asyncio.run(awaiting.run_forever(follow_awaited)),
    ]
    for call in calls:
        with pytest.raises(zkelect.CampaignInProgress) as caught:
            call()
        assert (caught.value.path, caught.value.name) == (PATH, "first")
        assert "'first' of this session is campaigning already" in str(caught.value)
    assert all(twin.stop() for twin in twins)
    with pytest.raises(zkelect.CampaignInProgress):  # who does not stand leaves no place
        twins[0].start()
    places.leave(PATH)
