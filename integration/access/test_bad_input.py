"""Bad input: what an argument cannot be is told with its value, before anything is created."""

from __future__ import annotations

import math
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from access.refusals import assert_misuse
from access.scripted import keep_silent
from election.actor import TICK
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

import zkelect
from zkelect.core.lease import smallest_timeout
from zkelect.testing import LocalEnsemble, find_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Operator

    Connect = Callable[..., zkelect.Session]
    Refused = Callable[..., Any]


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


# --- hosts -----------------------------------------------------------------------------------


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


def test_a_user_in_the_hosts_is_refused_and_not_shown(refused: Refused) -> None:
    error = refused(zkelect.InvalidArgument, lambda: zkelect.connect("me@zk1:2181", timeout=1.0))
    assert_misuse(error, "hosts", "***@zk1:2181")
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
    main = ("-cp", ":".join(found.class_path), "org.apache.zookeeper.ZooKeeperMain")
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
