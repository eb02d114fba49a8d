"""Bad input: what an argument cannot be is told with its value, before anything is created."""

from __future__ import annotations

import math
import shlex
import subprocess
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest
from access.scripted import keep_silent
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

import zkelect
from zkelect.core.lease import smallest_timeout
from zkelect.core.paths import NAME_LIMIT
from zkelect.testing import LocalEnsemble, find_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Campaign, Operator

    Connect = Callable[..., zkelect.Session]
    Refused = Callable[..., Any]

TICK: Final = 0.2


def assert_misuse(error: zkelect.InvalidArgument, argument: str, value: object) -> None:
    assert isinstance(error, zkelect.Misuse)
    assert isinstance(error, ValueError)
    assert (error.argument, error.value) == (argument, value)
    assert argument in str(error)
    assert error.expected in str(error)


@pytest.mark.parametrize(
    ("kind", "branch"),
    [
        (zkelect.InvalidArgument, zkelect.Misuse),
        (zkelect.CampaignInProgress, zkelect.Misuse),
        (zkelect.SessionClosed, zkelect.Misuse),
        (zkelect.ConnectFailed, zkelect.Unreachable),
        (zkelect.TlsFailed, zkelect.Unreachable),
        (zkelect.AuthenticationFailed, zkelect.Unreachable),
        (zkelect.PermissionDenied, zkelect.Unreachable),
        (zkelect.ServerTooOld, zkelect.Unreachable),
        (zkelect.NotElected, zkelect.Unreachable),
    ],
)
def test_whose_fault_it_is(
    kind: type[zkelect.ZkelectError], branch: type[zkelect.ZkelectError]
) -> None:
    branches = (zkelect.Misuse, zkelect.Lost, zkelect.Refused, zkelect.Unreachable)
    assert [each for each in branches if issubclass(kind, each)] == [branch]


# --- where -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "relative",
        "elections/billing",
        "/elections//billing",
        "//billing",
        "/elections/./billing",
        "/elections/../billing",
        "/..",
        "/zookeeper",
        "/zookeeper/x",
        "/elections/x.zkelect",
        "/elections.zkelect/x",
        "/elections/x.zkelect/term",
        "/nul\0",
        "/line\nbreak",
        "/private\ue000",
        "/surrogate\ud800",
    ],
)
def test_a_path_that_can_hold_no_election(
    path: str, connect: Connect, zookeeper: LocalEnsemble, operator: Operator
) -> None:
    session = connect(zookeeper.hosts)
    before = operator.kazoo.get_children("/")
    with pytest.raises(zkelect.InvalidArgument) as caught:
        zkelect.Election(session, path)
    assert_misuse(caught.value, "path", path)
    assert "'/elections/billing'" in str(caught.value)
    assert operator.kazoo.get_children("/") == before


def test_a_trailing_slash_is_the_same_election(connect: Connect, zookeeper: LocalEnsemble) -> None:
    assert zkelect.Election(connect(zookeeper.hosts), "/elections/x/").path == "/elections/x"


@pytest.mark.parametrize(
    "hosts",
    [
        "",
        " ",
        ",",
        "/app",
        "zk1,,zk2",
        "zk1,",
        "zk1:",
        "zk1:client",
        "zk1:0",
        "zk1:65536",
        "zk1:-1",
        "zk1 zk2",
        "me@zk1:2181",
        "::1",
        "::1:2181",
        "[::1:2181",
        "[::1]2181",
        "http://zk1:2181",
        "zk1:2181?timeout=3",
        "zk1#x",
        "zk1//app",
        "zk1/app/../other",
        "zk1/a\0b",
        "zk1..example",
        "z" * 64 + ".example",
    ],
)
def test_hosts_that_are_none(hosts: str, refused: Refused) -> None:
    error = refused(zkelect.InvalidArgument, lambda: zkelect.connect(hosts, timeout=1.0))
    assert_misuse(error, "hosts", hosts)
    assert "the form is 'zk1:2181,zk2:2181,zk3:2181/chroot'" in str(error)


def test_a_list_of_hosts(refused: Refused) -> None:
    hosts: Any = ["zk1:2181", "zk2:2181"]
    error = refused(zkelect.InvalidArgument, lambda: zkelect.connect(hosts))
    assert_misuse(error, "hosts", hosts)


def test_a_chroot_behind_each_host(refused: Refused) -> None:
    hosts = "zk1:2181/app,zk2:2181/app"
    error = refused(zkelect.InvalidArgument, lambda: zkelect.connect(hosts))
    assert_misuse(error, "hosts", hosts)
    assert "one chroot for all, behind the last server" in str(error)


@pytest.mark.parametrize("written", ["{}", "zk://{}", "zookeeper://{}", " {} , {} ", "{}/"])
def test_hosts_as_people_write_them(
    written: str, connect: Connect, zookeeper: LocalEnsemble
) -> None:
    session = connect(written.replace("{}", zookeeper.hosts))
    assert session.hosts in (zookeeper.hosts, f"{zookeeper.hosts},{zookeeper.hosts}")


@pytest.mark.parametrize("chroot", ["/nowhere", "/no/where"])
def test_a_chroot_that_is_missing_is_told_with_the_commands_that_make_it(
    chroot: str, zookeeper: LocalEnsemble, operator: Operator, connect: Connect, refused: Refused
) -> None:
    hosts = zookeeper.hosts + chroot
    top = chroot.split("/")[1]
    operator.kazoo.delete(f"/{top}", recursive=True)
    error = refused(zkelect.InvalidArgument, lambda: connect(hosts))
    assert_misuse(error, "hosts", hosts)
    assert f"the chroot {chroot} does not exist" in str(error)
    assert operator.kazoo.exists(f"/{top}") is None
    told = str(error).partition("create it once: ")[2]
    for command in told.split(" && "):
        obey(command)
    connect(hosts)


def obey(command: str) -> None:
    """Type a command at a shell that has ZooKeeper's zkCli.sh."""
    program, *arguments = shlex.split(command)
    assert program == "zkCli.sh"
    found = find_server()
    class_path = ":".join((*found.class_path, "/usr/share/java/commons-cli.jar"))
    main = ("-cp", class_path, "org.apache.zookeeper.ZooKeeperMain")
    subprocess.run([found.java, *main, *arguments], check=True, capture_output=True, timeout=60)


# --- times -------------------------------------------------------------------------------------


def wrong_times() -> list[tuple[str, float, dict[str, float]]]:
    return [
        ("session_timeout", 0.0, {}),
        ("session_timeout", -1.0, {}),
        ("session_timeout", math.nan, {}),
        ("session_timeout", math.inf, {}),
        ("session_timeout", 86_401.0, {}),
        ("session_timeout", 0.1, {}),
        ("session_timeout", smallest_timeout() - 0.001, {}),
        ("session_timeout", smallest_timeout(TICK) - 0.001, {"tick_time": TICK}),
        ("tick_time", 0.0, {}),
        ("tick_time", -0.2, {}),
        ("tick_time", math.nan, {}),
        ("tick_time", 5.001, {"session_timeout": 10.0}),
        ("hops", 0, {}),
        ("hops", 3, {}),
        ("timeout", -1.0, {}),
        ("timeout", math.nan, {}),
        ("timeout", math.inf, {}),
    ]


@pytest.mark.parametrize(("argument", "value", "others"), wrong_times())
def test_times_out_of_range(
    argument: str, value: float, others: dict[str, float], scripted: Any, refused: Refused
) -> None:
    server = scripted(keep_silent)
    options: dict[str, Any] = {argument: value, **others}
    error = refused(zkelect.InvalidArgument, lambda: zkelect.connect(server.address, **options))
    assert_misuse(error, argument, value)
    assert server.callers == 0


def test_a_session_timeout_too_short_names_the_least_that_works(
    zookeeper: LocalEnsemble, connect: Connect, path: str, refused: Refused
) -> None:
    error = refused(zkelect.InvalidArgument, lambda: connect(zookeeper.hosts, session_timeout=0.3))
    assert_misuse(error, "session_timeout", 0.3)
    least = float(error.expected.partition("from ")[2].partition(",")[0])
    session = connect(zookeeper.hosts, session_timeout=least)
    with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
        leadership.check()
    below = least - 0.001
    refused(zkelect.InvalidArgument, lambda: connect(zookeeper.hosts, session_timeout=below))


def test_a_granted_timeout_too_short_for_a_lease(
    connect: Connect, path: str, operate: Any, refused: Refused
) -> None:
    with LocalEnsemble(tick_time=0.1, max_session_timeout=0.4) as stingy:
        call = lambda: connect(stingy.hosts, session_timeout=5.0, tick_time=None)  # noqa: E731
        error = refused(zkelect.InvalidArgument, call)
        assert_misuse(error, "session_timeout", 5.0)
        assert "granted 0.4 s" in str(error)
        assert f"needs {smallest_timeout():g} s" in str(error)
        assert "raise maxSessionTimeout" in str(error)
        assert operate(stingy.hosts).kazoo.get_children("/") == ["zookeeper"]


def test_another_timeout_than_asked_for_rules_and_is_logged(
    connect: Connect, zookeeper: LocalEnsemble, caplog: pytest.LogCaptureFixture
) -> None:
    session = connect(zookeeper.hosts, session_timeout=60.0)
    assert session.timeout == 20 * TICK
    assert "asked for a session timeout of 60 s, granted 4 s" in caplog.text


# --- adopted clients ---------------------------------------------------------------------------


class OtherHandler:
    """As gevent's and eventlet's are: not kazoo's threading handler."""

    def __init__(self) -> None:
        self._inner = SequentialThreadingHandler()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_client_that_may_be_read_only(
    kazoo: Any, zookeeper: LocalEnsemble, refused: Refused
) -> None:
    client = kazoo(zookeeper.hosts, read_only=True)
    assert_client_refused(client, client, "without read_only=True", refused)


def test_a_client_with_another_handler(
    kazoo: Any, zookeeper: LocalEnsemble, refused: Refused
) -> None:
    client = kazoo(zookeeper.hosts, handler=OtherHandler())
    assert_client_refused(client, client.handler, "kazoo's threading handler", refused)


def test_a_client_that_is_not_started(zookeeper: LocalEnsemble, refused: Refused) -> None:
    client = KazooClient(zookeeper.hosts)
    assert_client_refused(client, client, "a started, connected client", refused)


def test_a_client_that_was_stopped(kazoo: Any, zookeeper: LocalEnsemble, refused: Refused) -> None:
    client = kazoo(zookeeper.hosts)
    client.stop()
    assert_client_refused(client, client, "a started, connected client", refused)


def assert_client_refused(
    client: KazooClient, value: object, expected: str, refused: Refused
) -> None:
    error = refused(
        zkelect.InvalidArgument, lambda: zkelect.Session.adopt(client, session_timeout=2.0)
    )
    assert_misuse(error, "client", value)
    assert expected in str(error)
    assert not client.state_listeners


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("session_timeout", 0.0),
        ("session_timeout", 0.1),
        ("session_timeout", -2.0),
        ("session_timeout", math.nan),
        ("tick_time", 0.0),
        ("tick_time", 1.5),
        ("acl", "world:anyone:r"),
    ],
)
def test_wrong_arguments_beside_a_good_client(
    argument: str, value: Any, kazoo: Any, zookeeper: LocalEnsemble, refused: Refused
) -> None:
    client = kazoo(zookeeper.hosts)
    options: dict[str, Any] = {"session_timeout": 2.0, argument: value}
    error = refused(zkelect.InvalidArgument, lambda: zkelect.Session.adopt(client, **options))
    assert_misuse(error, argument, value)
    assert not client.state_listeners
    assert client.connected


# --- elections ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", "x" * (NAME_LIMIT + 1)),
        ("name", "ä" * (NAME_LIMIT // 2 + 1)),
        ("name", "half a pair \ud800"),
        ("address", "x" * (NAME_LIMIT + 1)),
        ("prepare_timeout", 0.0),
        ("prepare_timeout", -1.0),
        ("prepare_timeout", math.nan),
        ("stall_timeout", 0.0),
        ("stall_timeout", -1.0),
        ("unhealthy_after", 0),
        ("unhealthy_after", -3),
        ("on_suspended", "go-on"),
        ("dialect", "curator"),
    ],
)
def test_elections_that_cannot_be(
    argument: str,
    value: Any,
    connect: Connect,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    session = connect(zookeeper.hosts)
    with pytest.raises(zkelect.InvalidArgument) as caught:
        zkelect.Election(session, path, **{argument: value})
    assert_misuse(caught.value, argument, value)
    assert len(str(caught.value)) < 500
    assert operator.kazoo.exists(path) is operator.kazoo.exists(f"{path}.zkelect") is None


def test_the_longest_name_that_is_allowed(
    connect: Connect, zookeeper: LocalEnsemble, path: str
) -> None:
    name = "ä" * (NAME_LIMIT // 2)
    election = zkelect.Election(connect(zookeeper.hosts), path, name=name)
    with election.campaign(timeout=30.0):
        assert [candidate.name for candidate in election.candidates()] == [name]


def test_long_names_in_the_history_never_outgrow_a_request(
    connect: Connect, zookeeper: LocalEnsemble, operator: Operator, path: str
) -> None:
    """A server drops the connection of who sends more than 1 MiB (jute.maxbuffer)."""
    name = "\x01" * NAME_LIMIT  # in JSON it takes six times its length
    session = connect(zookeeper.hosts)
    election = zkelect.Election(session, path, name=name)
    began = session.session_id
    tokens = [str(election.run(lambda held: held.token, timeout=30.0)) for _ in range(25)]
    assert (election.phase, session.session_id) == ("idle", began)
    assert operator.nodes(path) == []
    written = [term["token"] for term in operator.terms(path)]
    assert written == tokens[-len(written) :]
    assert len(written) > 1


@pytest.mark.parametrize("timeout", [-1.0, -0.001, math.nan, math.inf])
@pytest.mark.parametrize("call", ["campaign", "run", "leader", "candidates", "stop"])
def test_timeouts_that_cannot_be(
    call: str,
    timeout: float,
    connect: Connect,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), path)
    calls: dict[str, Callable[[], object]] = {
        "campaign": lambda: election.campaign(timeout).__enter__(),
        "run": lambda: election.run(lambda _: None, timeout),
        "leader": lambda: election.leader(timeout),
        "candidates": lambda: election.candidates(timeout),
        "stop": lambda: election.stop(timeout),
    }
    with pytest.raises(zkelect.InvalidArgument) as caught:
        calls[call]()
    assert caught.value.argument == "timeout"
    assert operator.nodes(path) == []


def test_two_campaigns_at_a_time(
    connect: Connect,
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
    campaign: Callable[..., Campaign],
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), path)
    first = campaign(election)
    leadership = first.elected.result(30.0)
    calls: list[Callable[[], object]] = [
        lambda: election.campaign().__enter__(),
        lambda: election.run(lambda _: None),
        lambda: election.run_forever(lambda _: None),
    ]
    for call in calls:
        with pytest.raises(zkelect.CampaignInProgress) as caught:
            call()
        assert isinstance(caught.value, zkelect.Misuse)
        assert caught.value.path == path
    leadership.check()  # and the first one is none the worse for it
    assert len(operator.nodes(path)) == 1


def test_a_campaign_beside_start(connect: Connect, zookeeper: LocalEnsemble, path: str) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), path)
    elected = threading.Event()

    class Listener:
        def elected(self, leadership: zkelect.Leadership) -> None:
            elected.set()

        def suspended(self, leadership: zkelect.Leadership) -> None: ...

        def deposed(self, leadership: zkelect.Leadership) -> None: ...

    with election.listen(Listener()):
        election.start()
        assert elected.wait(30.0)
        with pytest.raises(zkelect.CampaignInProgress):
            election.start()
        with pytest.raises(zkelect.CampaignInProgress):
            election.campaign().__enter__()
        assert election.stop(timeout=30.0)


def test_use_after_close(connect: Connect, zookeeper: LocalEnsemble, path: str) -> None:
    session = connect(zookeeper.hosts)
    election = zkelect.Election(session, path)
    session.close()
    calls: list[Callable[[], object]] = [
        lambda: zkelect.Election(session, path),
        lambda: election.campaign().__enter__(),
        lambda: election.run(lambda _: None),
        lambda: election.run_forever(lambda _: None),
        election.start,
        election.leader,
        election.candidates,
        session.__enter__,
    ]
    for call in calls:
        with pytest.raises(zkelect.SessionClosed) as caught:
            call()
        assert isinstance(caught.value, zkelect.Misuse)
        assert caught.value.hosts == zookeeper.hosts
    session.close()
    election.resign()
    assert election.stop()
