"""``status`` of ten thousand candidates: what it asks for, and, printed, how long it takes."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest
from cli.screen import Screen
from election.waiting import WITHIN
from kazoo.client import KazooClient

from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.command import Ended

    from zkelect.testing import LocalEnsemble

CROWD: Final = 10_000
BATCH: Final = 100
PAGES: Final = 3
"""The record, the term and the switchover of an election."""

PROMISED: Final = 3.0  # seconds, until the first page is there; printed, never judged


FIRST_PAGE: Final = ("10000 candidates", "host-9 ", "\n:")
"""What the screen shows then, the pager's prompt included."""


@pytest.fixture(scope="module")
def crowd(zookeeper: LocalEnsemble) -> Iterator[str]:
    """Let ten thousand candidates of another library stand, all of one session."""
    path = "/elections/crowd"
    with ExitStack() as stack:
        kazoo = KazooClient(zookeeper.hosts, timeout=10)
        stack.callback(kazoo.close)
        stack.callback(kazoo.stop)
        kazoo.start()
        kazoo.ensure_path(path)
        for start in range(0, CROWD, BATCH):
            made = [
                kazoo.create_async(
                    f"{path}/{number:012x}41118111111111111111__lock__",
                    f"host-{number}".encode("ascii"),
                    ephemeral=True,
                    sequence=True,
                )
                for number in range(start, start + BATCH)
            ]
            for answer in made:
                answer.get()
        yield path


def test_ten_thousand_are_paged_and_read_as_far_as_one_has_come(
    crowd: str, zookeeper: LocalEnsemble
) -> None:
    with Forwarder(zookeeper.hosts) as forwarder:
        with Screen("status", crowd, env=paging(forwarder.hosts)) as screen:
            screen.await_text(*FIRST_PAGE)
            screen.press("q")
            assert screen.await_end() == 0
        # Some screens are read ahead, until the pipe to the pager is full.
        assert forwarder.requests["getData"] < PAGES + CROWD / 2
        assert forwarder.requests["getChildren"] == 1


def test_ten_thousand_in_a_pipe_are_read_once_each(
    crowd: str, zookeeper: LocalEnsemble, zkelect_command: Callable[..., Ended]
) -> None:
    with Forwarder(zookeeper.hosts) as forwarder:
        ended = zkelect_command("status", crowd, "-o", "json", ZKELECT_HOSTS=forwarder.hosts)
        queue = json.loads(ended.out)["queue"]
        assert [row["name"] for row in queue] == [f"host-{number}" for number in range(CROWD)]
        assert forwarder.requests["getData"] == PAGES + CROWD
        assert forwarder.requests["getChildren"] == 1


def test_of_ten_thousand_in_place_only_those_on_the_screen_are_read_and_once(
    crowd: str, zookeeper: LocalEnsemble
) -> None:
    with Forwarder(zookeeper.hosts) as forwarder:
        env = {"ZKELECT_HOSTS": forwarder.hosts}
        with Screen("status", crowd, "-w", "0.1", env=env) as screen:
            shown = screen.await_text("10000 candidates", "more\n")
            assert forwarder.wait_for(lambda: forwarder.requests["getChildren"] > 2, timeout=WITHIN)
            screen.press("C-c")
            assert screen.await_end() == 130
        rows = shown.count("  waits  ") + 2
        rounds = forwarder.requests["getChildren"] + 1  # Ctrl-C may have come within one
        assert forwarder.requests["getData"] <= PAGES * rounds + rows


def test_print_how_long_ten_thousand_take(
    crowd: str,
    zookeeper: LocalEnsemble,
    zkelect_command: Callable[..., Ended],
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    with Screen("status", crowd, env=paging(zookeeper.hosts)) as screen:
        screen.await_text(*FIRST_PAGE)
        paged = time.monotonic() - began
        screen.press("q")
        assert screen.await_end() == 0
    began = time.monotonic()
    assert zkelect_command("status", crowd).out.count("\n") > CROWD
    whole = time.monotonic() - began
    with capsys.disabled():
        print(
            f"\nstatus of {CROWD} candidates: first page after {paged:.2f} s (promised: "
            f"{PROMISED:g} s), all of them in a pipe after {whole:.2f} s"
        )


def paging(hosts: str) -> dict[str, str]:
    return {"ZKELECT_HOSTS": hosts, "PAGER": "less"}
