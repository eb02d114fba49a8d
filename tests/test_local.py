"""What a local ZooKeeper is made of, looked at without starting one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zkelect.errors import InvalidArgument, Misuse, Unreachable
from zkelect.testing import (
    InstallFailed,
    LocalEnsemble,
    ServerNotFound,
    distribution,
    find_server,
    install,
    installation,
)
from zkelect.testing.configuration import Ports, Settings

ONE = [Ports(2181, 2888, 3888)]
THREE = [*ONE, Ports(2182, 2889, 3889), Ports(2183, 2890, 3890)]
TYPED = (
    "apt-get update && "
    "apt-get install -y --no-install-recommends libzookeeper-java default-jre-headless"
)


def program(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place of Debian's jars, and no Java but what PATH names."""
    folder = tmp_path / "java"
    folder.mkdir()
    monkeypatch.setattr(distribution, "_DEBIAN_JARS", folder)
    monkeypatch.setattr(distribution, "_DEBIAN_JVMS", tmp_path / "jvm")
    return folder


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with a program java."""
    return str(program(tmp_path / "bin" / "java").parent)


# --- zoo.cfg ------------------------------------------------------------------------------


def configured(settings: Settings, server: int = 0, ensemble: list[Ports] = ONE) -> dict[str, str]:
    text = settings.zoo_cfg(Path("/d"), server, ensemble)
    pairs = [line.partition("=") for line in text.splitlines()]
    assert len({key for key, _, _ in pairs}) == len(pairs)
    return {key: value for key, _, value in pairs}


def test_one_server() -> None:
    assert configured(Settings()) == {
        "dataDir": "/d",
        "clientPort": "2181",
        "clientPortAddress": "127.0.0.1",
        "maxClientCnxns": "0",
        "4lw.commands.whitelist": "*",
        "admin.enableServer": "false",
        "preAllocSize": "1024",
        "tickTime": "200",
        "initLimit": "75",
        "syncLimit": "15",
        "forceSync": "no",
    }


def test_three_servers_know_each_other_by_loopback_only() -> None:
    lines = configured(Settings(), 1, THREE)
    assert lines["clientPort"] == "2182"
    assert lines["quorumListenOnAllIPs"] == "false"
    assert lines["server.1"] == "127.0.0.1:2888:3888"
    assert lines["server.3"] == "127.0.0.1:2890:3890"


def test_times_are_seconds_here_and_milliseconds_there() -> None:
    settings = Settings(tick_time=2.0, min_session_timeout=3.0, max_session_timeout=10.5)
    lines = configured(settings)
    assert (lines["tickTime"], lines["initLimit"], lines["syncLimit"]) == ("2000", "8", "2")
    assert (lines["minSessionTimeout"], lines["maxSessionTimeout"]) == ("3000", "10500")


def test_durable_servers_force_the_disk() -> None:
    assert "forceSync" not in configured(Settings(durable=True))


def test_further_lines_win() -> None:
    lines = configured(Settings(config={"syncLimit": "5", "snapCount": "100"}))
    assert (lines["syncLimit"], lines["snapCount"]) == ("5", "100")


@pytest.mark.parametrize("tick_time", [0.0, -1.0, 0.0001, 3600.0, float("nan")])
def test_an_impossible_tick_is_refused(tick_time: float) -> None:
    with pytest.raises(InvalidArgument, match="tick_time"):
        LocalEnsemble(tick_time=tick_time)


@pytest.mark.parametrize("servers", [0, -1, 8])
def test_an_impossible_number_of_servers_is_refused(servers: int) -> None:
    with pytest.raises(InvalidArgument, match="servers"):
        LocalEnsemble(servers)


def test_an_ensemble_that_was_never_started_says_so() -> None:
    ensemble = LocalEnsemble()
    assert (ensemble.hosts, ensemble.servers) == ("", ())
    with pytest.raises(Misuse, match="not started"):
        ensemble.leader()
    with pytest.raises(Misuse, match="not started"):
        ensemble.keep()
    ensemble.stop()


# --- finding ------------------------------------------------------------------------------


def test_a_release_comes_first(tmp_path: Path, jars: Path, path: str) -> None:
    (jars / "zookeeper.jar").touch()
    (tmp_path / "release" / "lib").mkdir(parents=True)
    (tmp_path / "release" / "lib" / "zookeeper-3.9.2.jar").touch()
    found = find_server({"ZOOKEEPER_HOME": str(tmp_path / "release"), "PATH": path})
    assert found.origin == f"ZOOKEEPER_HOME={tmp_path}/release"
    assert found.class_path == (f"{tmp_path}/release/lib/*",)


def test_a_wrong_setting_is_told_not_passed_over(tmp_path: Path, jars: Path, path: str) -> None:
    (jars / "zookeeper.jar").touch()
    with pytest.raises(ServerNotFound, match=r"ZOOKEEPER_HOME=.*: it has no lib/zookeeper"):
        find_server({"ZOOKEEPER_HOME": str(tmp_path), "PATH": path})


def test_the_package_comes_second(jars: Path, path: str) -> None:
    for name in ("zookeeper.jar", "slf4j-simple.jar", "unrelated.jar"):
        (jars / name).touch()
    found = find_server({"PATH": path})
    assert found.class_path == (f"{jars}/zookeeper.jar", f"{jars}/slf4j-simple.jar")
    assert found.java == Path(path) / "java"


@pytest.mark.usefixtures("jars")
def test_nothing_found_tells_what_to_type(path: str) -> None:
    with pytest.raises(ServerNotFound) as caught:
        find_server({"PATH": path})
    assert TYPED in str(caught.value)
    assert "zkelect demo --install" in str(caught.value)
    assert "ZOOKEEPER_HOME: it is not set" in str(caught.value)
    assert isinstance(caught.value, Unreachable)


def test_a_server_without_java_is_not_found(jars: Path, tmp_path: Path) -> None:
    (jars / "zookeeper.jar").touch()
    with pytest.raises(ServerNotFound, match="no program java") as caught:
        find_server({"PATH": str(tmp_path)})
    assert TYPED in str(caught.value)


def test_any_java_will_do(jars: Path, tmp_path: Path, path: str) -> None:
    (jars / "zookeeper.jar").touch()
    packaged = program(tmp_path / "jvm" / "java-21" / "bin" / "java")
    chosen = program(tmp_path / "jdk" / "bin" / "java")
    assert find_server({"PATH": str(tmp_path)}).java == packaged
    assert find_server({"PATH": path}).java == Path(path) / "java"
    assert find_server({"PATH": path, "JAVA_HOME": str(tmp_path / "jdk")}).java == chosen


# --- installing ---------------------------------------------------------------------------


@pytest.fixture
def apt(jars: Path, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get that writes down how it is called; "install" brings the jar."""
    script = (
        f'echo "$DEBIAN_FRONTEND $*" >> {tmp_path}/calls; echo "Reading $5"; '
        f'case "$*" in *" install "*) : > {jars}/zookeeper.jar; esac'
    )
    program(Path(path) / "apt-get", script)
    monkeypatch.setenv("PATH", path, prepend=os.pathsep)
    monkeypatch.delenv("ZOOKEEPER_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path / "calls"


def test_install_runs_what_it_says_to_type(apt: Path) -> None:
    lines: list[str] = []
    found = install(lines.append)
    assert found.class_path[0].endswith("zookeeper.jar")
    options = "-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
    updated, installed = (command.removeprefix("apt-get ") for command in TYPED.split(" && "))
    assert apt.read_text("utf-8").splitlines() == [
        f"noninteractive {options} {updated}",
        f"noninteractive {options} {installed}",
    ]
    commands = [line for line in lines if line.startswith("$ ")]
    assert commands == [f"$ {command}" for command in TYPED.split(" && ")]
    assert "Reading update" in lines


def test_install_does_nothing_when_a_server_is_there(apt: Path, jars: Path) -> None:
    (jars / "zookeeper.jar").touch()
    install()
    assert not apt.exists()


def test_only_root_installs(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServerNotFound, match="only root can run apt-get") as caught:
        install()
    assert TYPED in str(caught.value)
    assert not apt.exists()


@pytest.mark.usefixtures("apt")
def test_a_machine_without_apt_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(ServerNotFound, match="has no apt-get"):
        install()


def test_a_failing_apt_is_quoted(apt: Path, path: str) -> None:
    program(Path(path) / "apt-get", f"echo called >> {apt}; echo 'E: no space left' >&2; exit 100")
    with pytest.raises(InstallFailed, match=r"(?s)exit status 100.*E: no space left") as caught:
        install()
    assert caught.value.command == "apt-get update"
    assert apt.read_text("utf-8") == "called\n"


def test_java_without_proc_is_told_before_apt_runs(
    apt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "_PROC", tmp_path / "not-mounted")
    with pytest.raises(InstallFailed, match="mount -t proc proc /proc"):
        install()
    assert not apt.exists()
