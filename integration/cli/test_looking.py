"""``status``, ``list``, ``history``: as processes, at real elections of ours and of others."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from election.actor import SESSION_TIMEOUT
from kazoo.security import make_digest_acl

import zkelect
from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.command import Ended, Running
    from conftest import Actor, Operator

    from zkelect.testing import LocalEnsemble

CURATOR = "_c_01234567-89ab-4def-8123-456789abcdef-latch-"
PEER = "11111111111141118111111111111111__lock__"


@pytest.fixture
def ask(zkelect_command: Callable[..., Ended]) -> Callable[..., Any]:
    """Run a command that succeeds, and return what it has written as JSON."""

    def run(*arguments: str) -> Any:
        ended = zkelect_command(*arguments, "-o", "json")
        assert ended.status == 0, ended.err
        return json.loads(ended.out)

    return run


@pytest.fixture
def queue(cast: Callable[..., Actor]) -> Callable[..., list[Actor]]:
    """Let candidates stand one after the other; the first leads."""

    def stand(*names: str, **options: Any) -> list[Actor]:
        actors = [cast(name, address=f"{name}:5432", **options) for name in names]
        actors[0].lead()
        for actor in actors[1:]:
            actor.queue()
        return actors

    return stand


# --- status --------------------------------------------------------------------------------------


def test_status_tells_who_leads_who_waits_for_whom_and_what_is_odd(
    queue: Callable[..., list[Actor]], operator: Operator, ask: Callable[..., Any], path: str
) -> None:
    actors = queue("host-a", "host-b")
    made = [
        operator.kazoo.create(f"{path}/{name}", b"peer", ephemeral=lives, sequence=True)
        for name, lives in ((PEER, True), (CURATOR, True), (PEER.replace("1", "2"), False))
    ]
    operator.kazoo.create(f"{path}/config", b"")
    told = ask("status", path)
    nodes = [row["node"] for row in told["queue"]]
    leader = actors[0].election.leader()
    assert leader is not None
    assert told["leader"] == {
        "name": "host-a",
        "node": nodes[0],
        "address": "host-a:5432",
        "token": str(leader.token),
        "phase": "serving",
        "since": leader.since,
        "foreign": False,
    }
    assert nodes[2:] == [znode.rpartition("/")[2] for znode in made]
    assert [row["name"] for row in told["queue"]] == ["host-a", "host-b", "peer", "peer", "peer"]
    assert [row["role"] for row in told["queue"]] == ["leads", "heir", "waits", "may lead", "waits"]
    assert [row["behind"] for row in told["queue"]] == [None, nodes[0], nodes[1], None, nodes[2]]
    assert [row["foreign"] for row in told["queue"]] == [False, False, True, True, True]
    assert [row["orphan"] for row in told["queue"]] == [None] * 4 + ["not ephemeral"]
    assert (told["candidates"], told["foreign"], told["orphans"]) == (5, 3, 1)
    assert told["strangers"] == ["config"]
    assert told["dialects"] == ["curator-latch", "kazoo"]
    assert (told["terms"], told["generation"]) == (1, 1)
    assert leader.token is not None and told["lineage"] == leader.token.lineage


def test_the_counter_is_the_number_that_the_next_candidate_gets(
    queue: Callable[..., list[Actor]], operator: Operator, ask: Callable[..., Any], path: str
) -> None:
    queue("host-a")
    operator.kazoo.create(f"{path}/config", b"")
    operator.kazoo.delete(f"{path}/{operator.stand(path)}")
    counter = ask("status", path)["counter"]
    assert counter == {"next": 3, "last": 2**31 - 2, "exhausted": False}
    assert operator.stand(path).endswith(f"__lock__{counter['next']:010d}")


def test_a_pause_is_told_with_who_and_why(
    queue: Callable[..., list[Actor]], ask: Callable[..., Any], path: str
) -> None:
    actors = queue("host-a", "host-b")
    actors[0].election.pause("the disk", by="ada")
    paused = ask("status", path)["paused"]
    assert (paused["by"], paused["why"]) == ("ada", "the disk")
    actors[0].election.resign()
    actors[0].diary.wait("deposed")
    actors[0].session.close()
    told = ask("status", path)
    assert told["leader"] is None
    assert [(row["name"], row["role"]) for row in told["queue"]] == [("host-b", "first")]


def test_session_ids_are_shown_only_when_asked_for(
    queue: Callable[..., list[Actor]], zkelect_command: Callable[..., Ended], path: str
) -> None:
    (actor,) = queue("host-a")
    session_id, _ = actor.session.credentials()
    shown = f"0x{session_id:x}"
    for output in ("table", "json", "tsv"):
        hidden = zkelect_command("status", path, "-o", output, "-vv")
        assert shown not in hidden.out, output
        asked = zkelect_command("status", path, "-o", output, "--show-session-id")
        assert shown in asked.out, output
    for command in ("list", "history"):
        assert shown not in zkelect_command(command, path).out


def test_limit_shows_the_first_and_says_how_many_are_not_shown(
    queue: Callable[..., list[Actor]], zkelect_command: Callable[..., Ended], path: str
) -> None:
    queue("host-a", "host-b", "host-c")
    out = zkelect_command("status", path, "-n", "1").out
    assert "3 candidates" in out and out.endswith("  and 2 more\n")
    assert "host-b" not in out
    told = json.loads(zkelect_command("status", path, "-n", "1", "-o", "json").out)
    assert told["candidates"] == 3
    assert [row["name"] for row in told["queue"]] == ["host-a"]
    assert zkelect_command("status", path, "-n", "0", "-o", "tsv").out == ""


def test_an_election_that_is_none_and_one_that_may_not_be_read(
    operator: Operator, zkelect_command: Callable[..., Ended], path: str
) -> None:
    nowhere = zkelect_command("status", path)
    assert (nowhere.status, nowhere.out) == (64, "")
    assert path in nowhere.err and "chroot" in nowhere.err
    operator.kazoo.create(path, acl=[make_digest_acl("ada", "secret", all=True)])
    try:
        denied = zkelect_command("status", path)
        assert (denied.status, denied.out) == (77, "")
        assert path in denied.err
        listed = json.loads(zkelect_command("list", "/elections", "-o", "json").out)
        assert path not in [row["path"] for row in listed]
        assert path in zkelect_command("list", "/elections").err
    finally:
        operator.kazoo.add_auth("digest", "ada:secret")
        operator.kazoo.delete(path)


def test_a_name_that_may_not_be_read_is_said_not_to_be(
    queue: Callable[..., list[Actor]],
    operator: Operator,
    zkelect_command: Callable[..., Ended],
    path: str,
) -> None:
    queue("host-a")
    acl = [make_digest_acl("ada", "secret", all=True)]
    operator.kazoo.create(f"{path}/{PEER}", b"x", ephemeral=True, sequence=True, acl=acl)
    out = zkelect_command("status", path).out
    assert out.rstrip().endswith("foreign: kazoo, its name may not be read")


def test_head_may_close_the_pipe(begin: Callable[..., Running], operator: Operator) -> None:
    for number in range(3):
        operator.stand(f"/elections/pipe-{number}")
    running = begin("list", "/elections", "-o", "json")
    assert running.process.stdout is not None
    running.process.stdout.close()
    assert running.process.stderr is not None
    assert "Traceback" not in running.process.stderr.read()


# --- again and again -----------------------------------------------------------------------------


def test_watching_status_outlives_an_outage_and_reads_a_candidate_once(
    queue: Callable[..., list[Actor]],
    operator: Operator,
    begin: Callable[..., Running],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    queue("host-a", "host-b")
    with Forwarder(zookeeper.hosts) as forwarder:
        running = begin(
            *("status", path, "-o", "json", "-w", "0.1", "--timeout", "0.5"),
            ZKELECT_HOSTS=forwarder.hosts,
        )
        for _ in range(5):
            assert json.loads(running.line())["candidates"] == 2
        read = forwarder.requests["getData"]
        rounds = forwarder.requests["getChildren"]
        assert read <= 3 * rounds + 2  # three pages a round, and each name once
        forwarder.cut()
        while "no server answered" not in (told := running.complaint()):
            assert told
        node = operator.stand(path)
        forwarder.heal()
        forwarder.resume()
        while (last := json.loads(running.line()))["candidates"] == 2:
            pass
        assert last["queue"][2]["node"] == node
    running.process.terminate()
    assert running.end().status == 128 + 15


# --- list ----------------------------------------------------------------------------------------


def test_list_finds_elections_of_ours_and_of_others_below_a_root(
    cast: Callable[..., Actor],
    operator: Operator,
    zookeeper: LocalEnsemble,
    ask: Callable[..., Any],
    path: str,
) -> None:
    with zkelect.connect(zookeeper.hosts, session_timeout=SESSION_TIMEOUT) as session:
        with zkelect.Election(session, f"{path}/a/one", name="host-a").campaign():
            operator.stand(f"{path}/a/two/deep")
            operator.kazoo.create(f"{path}/a/empty")
            found = {row["path"]: row for row in ask("list", path)}
            assert [*found] == [f"{path}/a/one", f"{path}/a/two/deep"]
            assert found[f"{path}/a/one"]["leader"]["name"] == "host-a"
            peer = found[f"{path}/a/two/deep"]
            assert (peer["leader"]["name"], peer["foreign"]) == ("peer", 1)
            assert [row["path"] for row in ask("list", path, "--depth", "2")] == [f"{path}/a/one"]
            assert [row["path"] for row in ask("list", f"{path}/a/two/deep/")] == [
                f"{path}/a/two/deep"
            ]
        assert ask("list", f"{path}/a/one") == []
        rest = {row["path"]: row for row in ask("list", path)}
        assert rest[f"{path}/a/one"]["leader"] is None
        assert rest[f"{path}/a/one"]["candidates"] == 0


def test_a_root_that_is_not_there_is_no_empty_list(
    zkelect_command: Callable[..., Ended], path: str
) -> None:
    ended = zkelect_command("list", f"{path}/misspelt")
    assert (ended.status, ended.out) == (64, "")
    assert "there is no such znode" in ended.err


def test_a_list_costs_a_request_for_each_znode_and_five_for_each_election(
    queue: Callable[..., list[Actor]],
    zkelect_command: Callable[..., Ended],
    zookeeper: LocalEnsemble,
    operator: Operator,
    path: str,
) -> None:
    queue("host-a", "host-b", "host-c")
    for number in range(7):
        operator.kazoo.create(f"{path}/znode-{number}")
    with Forwarder(zookeeper.hosts) as forwarder:
        assert zkelect_command("list", path, ZKELECT_HOSTS=forwarder.hosts).status == 0
        # Of the session: getChildren of none. Of the list: the root, seven below it, one roll.
        assert forwarder.requests["getChildren"] == 1 + 7 + 1
        assert forwarder.requests["exists"] == 1
        assert forwarder.requests["getData"] == 3


# --- history -------------------------------------------------------------------------------------


def test_history_ends_with_the_present_term_and_tells_why_others_ended(
    queue: Callable[..., list[Actor]], ask: Callable[..., Any], path: str
) -> None:
    first, second = queue("host-a", "host-b")
    second.election.switchover("host-b", why="a new kernel", by="ada")
    second.diary.wait("elected")
    told = ask("history", path)
    assert [(row["event"], row["name"], row["reason"]) for row in told] == [
        ("switchover", "host-b", None),
        ("term", "host-a", "switched-over"),
        ("term", "host-b", None),
    ]
    assert (told[0]["by"], told[0]["why"]) == ("ada", "a new kernel")
    assert told[1]["seconds"] == told[1]["ended"] - told[1]["since"]
    assert told[1]["token"] < told[2]["token"]
    assert told[2]["ended"] is None
    assert [row["name"] for row in ask("history", path, "-n", "1")] == ["host-b"]
    assert first.diary.wait("deposed").reason == "switched-over"


def test_the_history_of_nobody_is_refused(zkelect_command: Callable[..., Ended], path: str) -> None:
    ended = zkelect_command("history", path)
    assert ended.status == 64
    assert re.search(r"ever stood for such an election", ended.err)
