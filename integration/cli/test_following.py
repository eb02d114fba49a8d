"""``watch`` and ``top``: told by watches, not by asking again and again."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cli.screen import Screen
from election.waiting import until

from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.command import Running
    from conftest import Actor, Operator

    from zkelect.testing import LocalEnsemble

HOOK = """
import os, sys, time
told = {key[15:]: value for key, value in os.environ.items() if key.startswith("ZKELECT_LEADER_")}
with open(sys.argv[1], "a") as file:
    file.write(told["NAME"] + " " + told["PHASE"] + "\\n")
print("said by the hook")
sys.exit(3)
"""


def change(running: Running) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(running.line())
    return told


def leader(told: dict[str, Any]) -> str | None:
    return None if told["leader"] is None else told["leader"]["name"]


def next_leader(running: Running) -> str:
    """Return who leads next, whatever comes between."""
    while (name := leader(change(running))) is None:
        pass
    return name


# --- watch ---------------------------------------------------------------------------------------


def test_each_change_of_leader_is_a_line_and_the_first_tells_who_leads_now(
    cast: Callable[..., Actor], begin: Callable[..., Running], path: str
) -> None:
    first, second = cast("host-a", address="10.0.0.1:80"), cast("host-b")
    leadership = first.lead()
    second.queue()
    running = begin("watch", path, "-o", "json")
    told = change(running)
    assert (told["path"], told["leader"]["name"]) == (path, "host-a")
    assert told["leader"]["token"] == str(leadership.token)
    assert told["leader"]["address"] == "10.0.0.1:80"
    first.session.close()
    assert next_leader(running) == "host-b"
    second.session.close()
    while leader(change(running)) is not None:
        pass
    running.signal(signal.SIGINT)
    assert running.end().status == 130


def test_the_other_forms_are_a_sentence_and_fields(
    cast: Callable[..., Actor], begin: Callable[..., Running], path: str
) -> None:
    leadership = cast("host-a").lead()
    sentence = begin("watch", path).line()
    assert sentence.rstrip().endswith(
        f"host-a leads, token {leadership.token.generation:x}:{leadership.token.czxid:x}"
    )
    fields = begin("watch", path, "-o", "tsv").line().rstrip("\n").split("\t")
    assert fields[1:5] == ["host-a", "", str(leadership.token), "serving"]


def test_a_hook_runs_for_each_line_and_its_failure_is_told_and_survived(
    cast: Callable[..., Actor], begin: Callable[..., Running], path: str, tmp_path: Path
) -> None:
    first, second = cast("host-a"), cast("host-b")
    first.lead()
    second.queue()
    log = tmp_path / "log"
    hook = shlex.join([sys.executable, "-c", HOOK, str(log)])
    running = begin("watch", path, "-o", "json", "--exec", hook)
    assert next_leader(running) == "host-a"
    first.session.close()
    assert next_leader(running) == "host-b"
    for wanted in ("said by the hook", "ended with status 3"):
        while wanted not in (complaint := running.complaint()):
            assert complaint
    until(lambda: "host-b " in log.read_text("utf-8"), "the hook has run for host-b")
    assert log.read_text("utf-8").startswith("host-a serving\n")
    running.signal(signal.SIGTERM)
    assert running.end().status == 143


def test_no_hook_is_left_behind(
    cast: Callable[..., Actor], begin: Callable[..., Running], path: str, tmp_path: Path
) -> None:
    cast("host-a").lead()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "import sys, time; f = open(sys.argv[1], 'w'); f.write('x'); f.flush(); time.sleep(60)"
    hook = shlex.join([sys.executable, "-c", code, str(pipe)])
    running = begin("watch", path, "--exec", hook)
    with pipe.open(encoding="ascii") as reader:
        assert reader.read(1) == "x"
        running.signal(signal.SIGINT)
        assert reader.read() == ""  # its writer is gone
    assert running.end().status == 130


def test_a_lost_link_is_told_and_what_changed_meanwhile_comes_after_it(
    cast: Callable[..., Actor],
    begin: Callable[..., Running],
    zookeeper: LocalEnsemble,
    path: str,
) -> None:
    first, second = cast("host-a"), cast("host-b")
    first.lead()
    second.queue()
    with Forwarder(zookeeper.hosts) as forwarder:
        running = begin("watch", path, "-o", "json", ZKELECT_HOSTS=forwarder.hosts)
        assert leader(change(running)) == "host-a"
        forwarder.cut()
        while "no connection; who leads was so" not in (told := running.complaint()):
            assert told
        first.session.close()
        second.diary.wait("elected")
        forwarder.heal()
        assert next_leader(running) == "host-b"
        while "connected again" not in (told := running.complaint()):
            assert told


def test_an_election_of_another_library_cannot_be_watched(
    operator: Operator, begin: Callable[..., Running], path: str
) -> None:
    operator.stand(path)
    ended = begin("watch", path).end()
    assert ended.status == 64
    assert "ever stood for such an election" in ended.err


# --- top -----------------------------------------------------------------------------------------


def test_top_hears_of_leaders_by_watches_and_counts_only_what_it_shows(
    cast: Callable[..., Actor], operator: Operator, zookeeper: LocalEnsemble, path: str
) -> None:
    """Asked to count once in ten minutes, it has nothing but its watches."""
    first, second = cast("host-a"), cast("host-b")
    first.lead()
    second.queue()
    with Forwarder(zookeeper.hosts) as forwarder:
        env = {"ZKELECT_HOSTS": forwarder.hosts}
        with Screen("top", path, "-w", "600", env=env, width=100) as screen:
            screen.await_text("1 election", "host-a")
            asked = forwarder.requests["getData"] + forwarder.requests["exists"]
            first.session.close()
            screen.await_text("host-b", "ago")
            later = forwarder.requests["getData"] + forwarder.requests["exists"]
            # Each of: leader gone, term written, serving: at most a read of the term and one of
            # the candidate; the slow look of the observer may come between.
            assert later - asked <= 3 * 2 + 2
            screen.press("C-c")
            assert screen.await_end() == 130


def test_top_counts_again_and_shows_new_elections_and_pauses(
    cast: Callable[..., Actor], operator: Operator, zookeeper: LocalEnsemble, path: str
) -> None:
    first = cast("host-a")
    first.lead()
    operator.stand(f"{path}/of-kazoo")
    env = {"ZKELECT_HOSTS": zookeeper.hosts}
    with Screen("top", path, "-w", "0.2", env=env, width=120, height=10) as screen:
        shown = screen.await_text("2 elections", "host-a", "peer", "foreign")
        assert "nobody" not in shown
        first.election.pause("the disk", by="ada")
        screen.await_text("paused by ada")
        first.election.resume()
        operator.stand(path)
        operator.stand(path)
        until(lambda: count_of(screen, "host-a") == 4, "the others are counted")  # of-kazoo, too
        first.session.close()
        until(lambda: count_of(screen, "peer") == 3, "who has left is counted no more")


def count_of(screen: Screen, leader: str) -> int | None:
    """Return how many candidates the first line with this leader shows."""
    found = re.search(rf"  {leader} .*?(?: [smhd]|in|─) +(\d+)  ", screen.text())
    return None if found is None else int(found[1])


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {}])
def test_top_without_a_terminal_says_what_to_use(
    begin: Callable[..., Running], env: dict[str, str]
) -> None:
    ended = begin("top", **env).end()
    assert (ended.status, ended.out) == (64, "")
    assert "use list, or watch" in ended.err
