"""H75: where ZooKeeper is and which election is meant, as people write it, on a real server.

Understood, or refused with the right form before anything is asked; two spellings never make
two elections.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, Final

import pytest
from cli.command import NOBODYS

from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.command import Ended
    from conftest import Actor, Operator

TIMES: Final = ("--session-timeout", "2")
FORM: Final = "zk1:2181,zk2:2181,zk3:2181/chroot"


@pytest.fixture
def port(zookeeper: LocalEnsemble) -> str:
    return zookeeper.hosts.rpartition(":")[2]


@pytest.fixture
def status(zkelect_command: Callable[..., Ended], tmp_path: Path) -> Callable[..., Ended]:
    """Ask who leads: hosts by ``option``, ``environment`` or ``file``."""

    def ask(way: str, hosts: str, path: str) -> Ended:
        words = ("status", path, *TIMES, "-o", "json")
        if way == "option":
            return zkelect_command(*words, "-H", hosts, ZKELECT_HOSTS=None)
        if way == "environment":
            return zkelect_command(*words, ZKELECT_HOSTS=hosts)
        config = tmp_path / "config.toml"
        config.write_text(f"hosts = {json.dumps(hosts)}\n")
        return zkelect_command(*words, "--config", str(config), ZKELECT_HOSTS=None)

    return ask


def leader_of(ended: Ended) -> Any:
    assert ended.status == 0, ended.err
    return json.loads(ended.out)["leader"]["name"]


every_way = pytest.mark.parametrize("way", ["option", "environment", "file"])


# --- understood ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "hosts", "spelled"),
    [
        ("option", "127.0.0.1:{port}", "{path}"),
        ("option", "localhost:{port}", "{path}"),
        ("option", "zk://127.0.0.1:{port}", "{path}"),
        ("option", "zookeeper://127.0.0.1:{port}/", "{path}"),
        ("option", " 127.0.0.1:{port} , 127.0.0.1:{port} ", "{path}"),
        ("option", "127.0.0.1:{port}//", "{path}/"),
        ("option", "127.0.0.1:{port}/elections", "/{name}"),
        ("option", "127.0.0.1:{port}/elections/", "/{name}//"),
        ("option", "zk://127.0.0.1:{port} /elections", "/{name}"),
        ("option", "127.0.0.1:{port}", "{path}///"),
        ("environment", "zk://127.0.0.1:{port} /elections", "/{name}/"),
        ("file", "zk://127.0.0.1:{port} /elections", "/{name}/"),
    ],
)
def test_h75_each_spelling_finds_the_same_election(
    status: Callable[..., Ended],
    cast: Callable[..., Actor],
    path: str,
    port: str,
    way: str,
    hosts: str,
    spelled: str,
) -> None:
    cast("a").lead()
    name = path.rpartition("/")[2]
    where = {"port": port, "path": path, "name": name}
    assert leader_of(status(way, hosts.format(**where), spelled.format(**where))) == "a"


def test_h75_a_missing_port_is_zookeepers(zkelect_command: Callable[..., Ended], path: str) -> None:
    """Nothing of ours listens there: the message tells the port that was taken."""
    ended = zkelect_command("status", path, "-H", "127.0.0.1", *TIMES, "--timeout", "1")
    assert ended.status in (0, 69)
    assert ended.status == 0 or "127.0.0.1:2181" in ended.err


@pytest.fixture(scope="module")
def on_ipv6() -> Iterator[str]:
    """A server that listens on IPv6 as well; return its port."""
    options = ("-Djava.net.preferIPv4Stack=false",)
    config = {"clientPortAddress": "::"}
    with LocalEnsemble(tick_time=0.2, config=config, java_options=options) as zookeeper:
        yield zookeeper.hosts.rpartition(":")[2]


def test_h75_ipv6_is_written_in_brackets(
    zkelect_command: Callable[..., Ended], on_ipv6: str
) -> None:
    _need_ipv6()
    words = ("status", "/elections/none", *TIMES, "-o", "json")
    for hosts in (f"[::1]:{on_ipv6}", f"zk://[::1]:{on_ipv6}", f"[0:0::1]:{on_ipv6}/"):
        ended = zkelect_command(*words, "-H", hosts)
        assert "within" not in ended.err, ended.err
        assert ended.status != 69
    doctor = zkelect_command(
        "doctor", f"[::1]:{on_ipv6}", *TIMES, "--watch-host", "0", "-o", "json"
    )
    (server,) = json.loads(doctor.out)["servers"]
    assert (server["name"], server["mode"]) == (f"[::1]:{on_ipv6}", "standalone")


def _need_ipv6() -> None:
    """A machine without it is told apart from a server that does not answer on it."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))


# --- refused, before anything is asked -----------------------------------------------------------


@pytest.fixture
def untouched() -> Iterator[str]:
    """Listen as a server would; nobody may come."""
    with socket.create_server((NOBODYS, 0)) as listener:
        listener.setblocking(False)
        yield f"{NOBODYS}:{listener.getsockname()[1]}"
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("way", "hosts"),
    [
        ("option", "{server}/a,{server}/b"),
        ("option", "{server}/a,{server}"),
        ("option", "{server} {server}"),
        ("option", "{server};{server}"),
        ("option", "{server},"),
        ("option", "http://{server}"),
        ("option", "::1:2181"),
        ("option", "[::1"),
        ("option", "{server}:2181"),
        ("option", "{server}/a//b"),
        ("option", "{server}/a/../b"),
        ("option", "{server}/a "),
        ("option", "{server}/a\u200b"),
        ("option", "ZooKeeper is at {server}"),
        ("environment", "{server}/a,{server}/b"),
        ("file", "{server}/a,{server}/b"),
    ],
)
def test_h75_what_cannot_be_meant_is_refused_with_the_right_form(
    status: Callable[..., Ended], untouched: str, way: str, hosts: str
) -> None:
    spelled = hosts.format(server=untouched)
    if hosts == "{server}/a ":
        spelled += "/b"  # at the very end spaces are no part of it
    ended = status(way, spelled, "/elections/billing")
    assert (ended.status, ended.out) == (64, "")
    assert ended.err.startswith("zkelect: hosts=")
    assert FORM in ended.err


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("elections/billing", "a relative path"),
        ("./billing", "a relative path"),
        (" /elections/billing", "a relative path"),
        ("", "a relative path"),
        ("/", "the root cannot hold an election"),
        ("//elections/billing", "an empty part"),
        ("/elections//billing", "an empty part"),
        ("/elections/./billing", "'.' and '..' are not resolved"),
        ("/elections/../billing", "'.' and '..' are not resolved"),
        ("/elections/billing ", "a space at an end of a part"),
        ("/elections/bil\u200bling", "an invisible character"),
        ("/elections/gro\u0308\u00dfe", "a letter and its accent apart"),
        ("/elections/billing.zkelect", "the record of an election"),
        ("/zookeeper/quota", "/zookeeper belongs to the servers"),
    ],
)
def test_h75_a_path_that_is_none_is_refused_with_the_right_form(
    zkelect_command: Callable[..., Ended], path: str, why: str
) -> None:
    assert_path_refused(zkelect_command("status", path, *TIMES), why)


@pytest.mark.parametrize(
    "command",
    [
        ("history",),
        ("watch",),
        ("pause", "--yes"),
        ("resume", "--yes"),
        ("resign", "--yes"),
        ("switchover", "--to", "b", "--yes"),
        ("evict", "b", "--yes"),
        ("list",),
        ("run", "--", "true"),
        ("doctor",),
    ],
    ids=lambda command: command[0],
)
def test_h75_every_command_refuses_it(
    zkelect_command: Callable[..., Ended], command: tuple[str, ...]
) -> None:
    name, *options = command
    ended = zkelect_command(name, "/elections//billing", *TIMES, *options)
    assert_path_refused(ended, "an empty part")


def assert_path_refused(ended: Ended, why: str) -> None:
    assert (ended.status, ended.out) == (64, "")
    assert why in ended.err
    assert "'/elections/billing'" in ended.err


@every_way
def test_h75_a_chroot_that_is_not_there_is_told_with_how_to_make_it(
    status: Callable[..., Ended], zookeeper: LocalEnsemble, operator: Operator, path: str, way: str
) -> None:
    ended = status(way, f"{zookeeper.hosts}/none/such", path)
    assert (ended.status, ended.out) == (64, "")
    assert "the chroot /none/such does not exist" in ended.err
    assert f"zkCli.sh -server {zookeeper.hosts} create /none && " in ended.err
    assert operator.kazoo.exists("/none") is None


@pytest.mark.parametrize("way", ["option", "file"])
def test_credentials_in_the_hosts_are_refused_and_not_repeated(
    status: Callable[..., Ended], untouched: str, path: str, way: str
) -> None:
    ended = status(way, f"zk://ops:s3cret@{untouched}", path)
    assert (ended.status, ended.out) == (64, "")
    assert "no user and no password here" in ended.err
    assert f"***@{untouched}" in ended.err
    assert "s3cret" not in ended.err
