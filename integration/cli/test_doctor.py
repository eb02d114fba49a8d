"""``zkelect doctor`` on real servers: each kind of trouble is made, and found."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from access.fortress import build, make_keys
from cli.command import PROGRAM, environment
from election.actor import TICK
from election.process import Process
from kazoo.security import make_acl, make_digest_acl

from zkelect.testing import LocalEnsemble
from zkelect.testing.server import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from access.fortress import Fortress, Keys
    from cli.command import Ended, Running
    from conftest import Actor, Operator

TIMES = ("--session-timeout", "2", "--watch-host", "0.1")


@attrs.frozen
class Report:
    """What a visit has told as JSON, and the exit status."""

    status: int
    facts: dict[str, Any]

    @property
    def findings(self) -> dict[str, dict[str, str]]:
        return {each["finding"]: each for each in self.facts["findings"]}

    def servers(self, field: str) -> list[Any]:
        return [server[field] for server in self.facts["servers"]]


@pytest.fixture
def examine(zkelect_command: Callable[..., Ended]) -> Callable[..., Report]:
    """Let the doctor look at something; hosts are the usual server's when not given."""

    def look(*words: str, **env: str | None) -> Report:
        ended = zkelect_command("doctor", *TIMES, *words, "-o", "json", **env)
        assert ended.err == "", "what the library warns of is among the findings"
        return Report(ended.status, json.loads(ended.out))

    return look


@pytest.fixture(scope="module")
def three() -> Iterator[LocalEnsemble]:
    with LocalEnsemble(servers=3, tick_time=TICK) as started:
        yield started


# --- servers -------------------------------------------------------------------------------------


def test_three_servers_that_serve_are_fine(
    three: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    report = examine(three.hosts, ZKELECT_HOSTS=None)
    assert {"single-server", "no-spare-server", "unequal-limits"}.isdisjoint(report.findings)
    assert sorted(report.servers("mode")) == ["follower", "follower", "leader"]
    assert set(report.servers("tick")) == {TICK}
    assert set(report.servers("version")) != {None}
    limits = {*report.servers("least"), *report.servers("most")}
    assert limits == {2 * TICK, 20 * TICK}
    assert report.facts["voters"] == 3
    assert report.facts["session"]["granted"] == 2.0
    assert report.facts["session"]["commits"]["count"] == 20
    assert abs(report.facts["host"]["ahead"]) < 1.0, "it is the same clock"


def test_one_of_three_stopped_is_a_warning_and_the_last_spare_is_gone(
    three: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    stopped = three.servers[0]
    stopped.stop()
    try:
        report = examine(three.hosts)
    finally:
        stopped.start()
        stopped.wait_ready()
    assert report.status == 1
    assert report.findings["server-down"]["where"] == stopped.address
    assert "2 of 3 voters serve" in report.findings["no-spare-server"]["what"]


def test_two_of_three_stopped_is_critical(
    three: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    stopped = three.servers[:2]
    for server in stopped:
        server.stop()
    try:
        report = examine(three.hosts, "--timeout", "2")
    finally:
        for server in stopped:
            server.launch()
        for server in three.servers:
            server.wait_ready()
    assert report.status == 2
    assert {"no-session", "server-down", "server-not-serving"} <= report.findings.keys()
    assert report.findings["server-not-serving"]["where"] == three.servers[2].address


def test_a_frozen_server_takes_the_connection_and_says_nothing(
    three: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    frozen = three.servers[0]
    frozen.pause()
    try:
        report = examine(three.hosts)
    finally:
        frozen.resume()
        frozen.wait_ready()
    finding = report.findings["server-not-serving"]
    assert (report.status, finding["where"], finding["what"]) == (1, frozen.address, "timed out")


def test_limits_that_differ_between_servers_are_seen(
    three: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    server, settings = three.servers[0], three.directory / "server-1" / "zoo.cfg"
    before = settings.read_text()
    settings.write_text(before + "maxSessionTimeout=9000\n")
    try:
        _restart(server)
        report = examine(three.hosts)
    finally:
        settings.write_text(before)
        _restart(server)
    assert f"{server.address} 0.4 to 9 s" in report.findings["unequal-limits"]["what"]
    assert report.status == 1


def _restart(server: Any) -> None:
    server.stop()
    server.start()
    server.wait_ready()


def test_some_of_the_hosts_are_not_enough(
    three: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    report = examine(three.servers[0].address)
    assert "1 of 3 voters" in report.findings["hosts-incomplete"]["what"]


def test_servers_of_two_ensembles_are_not_one(
    three: LocalEnsemble, zookeeper: LocalEnsemble, examine: Callable[..., Report]
) -> None:
    report = examine(f"{three.hosts},{zookeeper.hosts}")
    assert (report.status, "several-ensembles" in report.findings) == (2, True)


def test_a_server_without_a_whitelist_is_judged_by_what_it_does(
    examine: Callable[..., Report],
) -> None:
    with LocalEnsemble(tick_time=TICK, config={"4lw.commands.whitelist": "srvr,ruok"}) as shy:
        report = examine(shy.hosts)
    assert report.servers("silent") == [["conf", "mntr", "cons"]]
    assert report.servers("tick") == [None]
    assert report.servers("most") == [20 * TICK], "by a session that was opened"
    assert report.findings["words-refused"]["severity"] == "note"


# --- who comes ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def fortress(keys: Keys) -> Iterator[Fortress]:
    with build(keys, TICK) as built:
        yield built


def test_by_tls_it_asks_the_same(
    examine: Callable[..., Report], fortress: Fortress, keys: Keys, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[tls]\nca = "{keys.file("ca.crt")}"\n')
    report = examine(fortress.named, "--config", str(config))
    assert report.servers("problem") == [""]
    assert report.servers("silent") == [[]]
    assert report.facts["session"]["problem"] == ""


def test_a_tls_port_spoken_to_without_it_is_told(
    examine: Callable[..., Report], fortress: Fortress
) -> None:
    report = examine(fortress.named, "--timeout", "2")
    assert (report.status, "server-not-serving" in report.findings) == (2, True)
    assert "TLS" in report.findings["no-session"]["what"]


def test_a_certificate_that_is_not_trusted_is_told(
    examine: Callable[..., Report], fortress: Fortress, keys: Keys, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[tls]\nca = "{keys.file("stranger.crt")}"\n')
    report = examine(fortress.named, "--config", str(config), "--timeout", "2")
    assert report.status == 2
    assert "CERTIFICATE_VERIFY_FAILED" in report.findings["server-not-serving"]["what"]


def test_a_password_that_the_servers_refuse_is_critical_and_not_shown(
    examine: Callable[..., Report], fortress: Fortress, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.touch(0o600)
    config.write_text('[sasl]\nuser = "alice"\npassword = "wr0ng-s3cret"\n')
    report = examine(fortress.plain, "--config", str(config), "--timeout", "10")
    assert (report.status, "credentials-refused" in report.findings) == (2, True)
    assert "wr0ng" not in json.dumps(report.facts)


# --- session and host ----------------------------------------------------------------------------


def test_a_timeout_beyond_the_servers_limits_is_told(
    examine: Callable[..., Report], zookeeper: LocalEnsemble
) -> None:
    report = examine(zookeeper.hosts, "--session-timeout", "10")
    assert "10 s and get 4 s" in report.findings["other-timeout"]["what"]


def test_servers_that_grant_too_little_are_critical(examine: Callable[..., Report]) -> None:
    with LocalEnsemble(tick_time=TICK, max_session_timeout=0.5) as hasty:
        report = examine(hasty.hosts)
    assert (report.status, "timeout-too-small" in report.findings) == (2, True)
    assert report.facts["session"]["granted"] == 0.5


def test_a_tick_that_is_too_small_is_critical(
    examine: Callable[..., Report], tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("tick_time = 0.1\n")
    report = examine("--config", str(config))
    assert (report.status, "tick-too-small" in report.findings) == (2, True)
    config.write_text(f"tick_time = {TICK}\n")
    assert (
        not {"tick-too-small", "tick-not-given"} & examine("--config", str(config)).findings.keys()
    )


def test_a_chroot_that_is_not_there_is_named_with_how_to_make_it(
    examine: Callable[..., Report], zookeeper: LocalEnsemble
) -> None:
    report = examine(f"{zookeeper.hosts}/no/where", "/elections/billing")
    assert (report.status, report.facts["election"]) == (2, None)
    advice = report.findings["chroot-missing"]["advice"]
    assert f"zkCli.sh -server {zookeeper.hosts} create /no && " in advice
    assert advice.endswith(" create /no/where")


def test_nothing_of_the_visit_stays(
    examine: Callable[..., Report], operator: Operator, path: str
) -> None:
    examine(path)
    assert not [name for name in operator.kazoo.get_children("/") if "doctor" in name]
    assert operator.kazoo.exists(path) is None


# --- elections -----------------------------------------------------------------------------------


def test_an_election_that_runs_is_described(
    examine: Callable[..., Report], cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    cast("a").lead()
    cast("b").queue()
    report = examine(path)
    found = report.facts["election"]
    assert (found["first"], found["candidates"], found["in_office"]) == ("a", 2, True)
    assert {"no-heir", "orphan", "not-in-office", "leader-gone"}.isdisjoint(report.findings)
    assert operator.stand(path).endswith(f"{found['next_sequence']:010d}")


def test_below_a_chroot_it_is_the_same_election(
    examine: Callable[..., Report],
    cast: Callable[..., Actor],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    cast("a").lead()
    folder, _, name = path.rpartition("/")
    report = examine(f"{zookeeper.hosts}{folder}", f"/{name}")
    assert report.facts["election"]["first"] == "a"
    assert "chroot-missing" not in report.findings


def test_a_world_writable_election_is_warned_of_with_all_its_pages(
    examine: Callable[..., Report], cast: Callable[..., Actor], path: str
) -> None:
    cast("a").lead()
    finding = examine(path).findings["world-writable"]
    assert finding["severity"] == "warning"
    for page in ("", ".zkelect", ".zkelect/term", ".zkelect/history"):
        assert f"{path}{page} (cdrwa)" in finding["what"]


def test_an_election_that_everybody_may_read_and_nobody_change_is_not(
    examine: Callable[..., Report], operator: Operator, path: str
) -> None:
    readable = [make_acl("world", "anyone", read=True), make_digest_acl("ops", "x", all=True)]
    operator.kazoo.create(path, acl=readable)
    assert "world-writable" not in examine(path).findings


def test_h76_an_election_that_we_may_not_read_is_critical(
    examine: Callable[..., Report], operator: Operator, path: str
) -> None:
    operator.kazoo.create(path, acl=[make_digest_acl("ops", "secret", all=True)])
    report = examine(path)
    finding = report.findings["no-permission"]
    assert (report.status, finding["where"]) == (2, path)
    assert "permission to read is missing; we came as nobody" in finding["what"]


def test_with_the_credentials_it_is_read(
    examine: Callable[..., Report], operator: Operator, path: str, tmp_path: Path
) -> None:
    operator.kazoo.create(path, acl=[make_digest_acl("ops", "secret", all=True)])
    config = tmp_path / "config.toml"
    config.touch(0o600)
    config.write_text('[digest]\nuser = "ops"\npassword = "secret"\n')
    report = examine(path, "--config", str(config))
    assert "no-permission" not in report.findings
    assert report.facts["session"]["schemes"] == ["digest"]


def test_an_orphan_at_the_head_is_named(
    examine: Callable[..., Report], cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    made = operator.kazoo.create(
        f"{path}/00000000000080008000000000000001__lock__", sequence=True, makepath=True
    )
    cast("a").queue()
    report = examine(path)
    assert (report.status, report.findings["orphan"]["where"]) == (2, made)
    assert "not-in-office" not in report.findings, "the orphan is the reason"


def test_a_peer_of_kazoo_and_a_stranger_are_told_apart(
    examine: Callable[..., Report], cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    peer = operator.stand(path)
    operator.kazoo.create(f"{path}/config")
    cast("a").queue()
    findings = examine(path).findings
    assert findings["foreign-candidates"]["where"] == f"{path}/{peer}"
    assert findings["foreign-nodes"]["where"] == f"{path}/config"
    assert "mixed-dialects" not in findings


def test_a_first_candidate_that_never_takes_office_is_told(
    examine: Callable[..., Report], operator: Operator, path: str
) -> None:
    operator.stand(path, uuid="00000000000080008000000000000001")  # looks like one of ours
    assert "not-in-office" in examine(path).findings


def test_a_paused_election_says_who_and_why(
    examine: Callable[..., Report], cast: Callable[..., Actor], path: str
) -> None:
    actor = cast("a")
    actor.lead()
    actor.election.pause("a disk", by="ada")
    finding = examine(path).findings["paused"]
    assert "paused by 'ada'" in finding["what"]
    assert "a disk" in finding["what"]


def test_a_record_that_is_none_is_critical(
    examine: Callable[..., Report], operator: Operator, path: str
) -> None:
    operator.kazoo.create(path)
    operator.kazoo.create(f"{path}.zkelect", b"{}")
    report = examine(path)
    assert (report.status, "record-damaged" in report.findings) == (2, True)


def test_a_path_that_nobody_has_stood_for_is_a_warning(
    examine: Callable[..., Report], path: str
) -> None:
    report = examine(path)
    assert (report.status, report.findings["never-stood"]["where"]) == (1, path)


def test_a_leader_that_was_killed_is_found_while_its_session_lasts(
    examine: Callable[..., Report], path: str
) -> None:
    with LocalEnsemble(tick_time=TICK, max_session_timeout=600.0) as patient:
        process = Process(patient.hosts, path, "a", "--session-timeout=600", f"--tick-time={TICK}")
        try:
            process.wait("elected")
            process.signal(signal.SIGKILL)
            process.end()
            report = examine(patient.hosts, path)
        finally:
            process.close()
    assert (report.status, "leader-gone" in report.findings) == (2, True)
    assert report.findings["leader-gone"]["what"].startswith("'a' is first")


# --- how it ends ---------------------------------------------------------------------------------


def test_ctrl_c_while_it_watches_ends_it_without_a_report(
    begin: Callable[..., Running],
    zookeeper: LocalEnsemble,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    running = begin("doctor", "--session-timeout", "3.1", "--watch-host", "60")
    kept = re.compile(r"lop=PING,.*to=3100,")
    eventually(lambda: kept.search(ask(zookeeper.hosts, "cons")), "its session is kept alive")
    running.signal(signal.SIGINT)
    ended = running.end()
    assert (ended.status, ended.out) == (130, "")
    assert "Traceback" not in ended.err


def test_on_a_terminal_it_shows_what_takes_its_time(zookeeper: LocalEnsemble) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [*PROGRAM, "doctor", zookeeper.hosts, *TIMES],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environment({"TERM": "xterm"}),
        )
        os.close(theirs)
        shown = _read_all(terminal)
        assert process.stdout is not None
        with process.stdout as out:
            report = out.read()
        assert process.wait() == 1
    assert b"watching this host" in shown
    assert b"watching this host" not in report


def _read_all(terminal: Any) -> bytes:
    """Read until the other end is closed, which Linux tells by an error (pty(7))."""
    shown = b""
    try:
        while data := terminal.read(4096):
            shown += data
    except OSError:
        pass
    return shown
