"""What the commands that look show on a terminal, for docs/cli_looking.md.

    PYTHONPATH=integration python -m cli.scenes [NAME …]

draws these scenes anew, all when none is named, and writes them into the page; read the diff
before you commit it. A test draws all but the demo, and compares them with the page.
"""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from cli.screen import Screen
from election.waiting import until
from kazoo.client import KazooClient

import zkelect
from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PAGE", "SCENES", "Stage", "block_of", "shape"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "cli_looking.md"
ROOT: Final = "/elections"
_TIMEOUT: Final = 4.0
_TICK: Final = 0.2
_OTHERS: Final = "4f1c2c2d7f9a4c0f9d6a3b8e5d2f1a70__lock__"


class Stage:
    """A server with some elections: one that others share, one at rest, one without a leader."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.hosts = stack.enter_context(LocalEnsemble(tick_time=_TICK)).hosts
            self.kazoo = KazooClient(self.hosts, timeout=10)
            stack.callback(self.kazoo.close)
            stack.callback(self.kazoo.stop)
            self.kazoo.start()
            self._opened = stack.pop_all()
        self._people()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def stand(self, name: str, path: str, priority: int = 0) -> zkelect.Election:
        """Let somebody stand; return when it has its place."""
        session = self._opened.enter_context(self._connect())
        address = f"{name}.example.org:5432"
        election = zkelect.Election(session, path, name=name, address=address, priority=priority)
        election.start()
        places = (zkelect.Phase.WAITING, zkelect.Phase.LEADING)
        until(lambda: election.phase in places, f"{name} has its place")
        return election

    def see(self, *arguments: str, width: int = 80, height: int = 24) -> Screen:
        """Run a command in a terminal of that size."""
        env = {"ZKELECT_HOSTS": self.hosts, "ZKELECT_CONFIG": None}
        return Screen(*arguments, "--session-timeout", "4", env=env, width=width, height=height)

    def _connect(self) -> zkelect.Session:
        return zkelect.connect(self.hosts, session_timeout=_TIMEOUT, tick_time=_TICK)

    def _people(self) -> None:
        self.billing = [
            self.stand("host-a", f"{ROOT}/billing"),
            self.stand("host-b", f"{ROOT}/billing"),
            self.stand("host-c", f"{ROOT}/billing", priority=10),
        ]
        self.kazoo.create(f"{ROOT}/billing/{_OTHERS}", b"old-worker", ephemeral=True, sequence=True)
        self.stand("host-b", f"{ROOT}/reports")
        self.kazoo.create(
            f"{ROOT}/mail/{_OTHERS}", b"old-worker", ephemeral=True, sequence=True, makepath=True
        )
        self.vacant()

    def vacant(self) -> None:
        """An election that its leader has left while it was paused."""
        path = f"{ROOT}/shards/7"
        leader = self.stand("host-a", path)
        until(lambda: leader.leader() is not None, "it leads")
        self.stand("host-b", path)
        leader.pause("the disk of host-b is being changed", by="ada@host-a")
        leader.resign()
        until(lambda: leader.leader() is None, "nobody leads")


# --- the scenes ----------------------------------------------------------------------------------


def status(stage: Stage, width: int) -> str:
    with stage.see("status", f"{ROOT}/billing", width=width) as screen:
        screen.await_end()
        return screen.text()


def vacancy(stage: Stage, width: int) -> str:
    with stage.see("status", f"{ROOT}/shards/7", width=width) as screen:
        screen.await_end()
        return screen.text()


def listed(stage: Stage, width: int) -> str:
    with stage.see("list", ROOT, width=width) as screen:
        screen.await_end()
        return screen.text()


def top(stage: Stage, width: int) -> str:
    with stage.see("top", ROOT, "-w", "0.5", width=width, height=12) as screen:
        return screen.await_text("4 elections, 1 without", "foreign", "host-b", " 2  ")


def watch(stage: Stage, width: int) -> str:
    path = "/rollouts/watched"
    first = stage.stand("host-a", path)
    until(lambda: first.leader() is not None, "it leads")
    stage.stand("host-b", path)
    with stage.see("watch", path, width=width, height=8) as screen:
        screen.await_text("host-a leads")
        first.resign()
        return screen.await_text("host-b leads")


def history(stage: Stage, width: int) -> str:
    path = "/rollouts/remembered"
    first = stage.stand("host-a", path)
    until(lambda: first.leader() is not None, "it leads")
    second = stage.stand("host-b", path)
    second.switchover("host-b", why="a new kernel", by="ada@host-a")
    second.pause("the disk of host-a is being changed", by="ada@host-a")
    second.resume(by="bob@host-c")
    with stage.see("history", path, width=width) as screen:
        screen.await_end()
        return screen.text()


def demo(_: Stage, width: int) -> str:
    with Screen("demo", env={}, width=width, height=30) as screen:
        return screen.await_text("3  Frozen leader", "lease has run out")


SCENES: Final[dict[str, tuple[Callable[[Stage, int], str], int]]] = {
    "status-80": (status, 80),
    "status-200": (status, 200),
    "vacancy-80": (vacancy, 80),
    "list-80": (listed, 80),
    "top-80": (top, 80),
    "top-200": (top, 200),
    "watch-80": (watch, 80),
    "history-80": (history, 80),
    "demo-80": (demo, 80),
}
"""By the names that stand in the page before each of them."""


# --- the page ------------------------------------------------------------------------------------


def block_of(page: str, name: str) -> str:
    """Return the text block that belongs to a scene."""
    found = _block(name).search(page)
    assert found is not None, f"docs/cli_looking.md has no <!-- {name} -->"
    return found[1]


def shape(text: str) -> str:
    """Return it without what differs from run to run: times, tokens, znodes, widths."""
    text = text.partition("<0>")[0]
    for pattern, name in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "INSTANT"),
        (r"\b\d+ (?:s|min|h|d)\b(?: \d+ (?:s|min|h))?", "TIME"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{16}-[0-9a-f]{16}-[0-9a-f]{16}\b", "TOKEN"),
        (r"\b1:[0-9a-f]+\b", "ORDER"),
        (r"\b[0-9a-f]{13}[0-9a-f]{19}__lock__", "ZNODE"),
        (r"\b[0-9a-f]{16}\b", "LINEAGE"),
        (r"[─ \n]+", " "),
    ):
        text = re.sub(pattern, name, text)
    return text.strip()


def _block(name: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- {name} -->\n\n```text\n(.*?)```", re.DOTALL)


def _framed(name: str, block: str) -> str:
    return f"<!-- {name} -->\n\n```text\n{block}```"


def _write(names: list[str]) -> None:
    page = PAGE.read_text("utf-8")
    with Stage() as stage:
        for name in names or SCENES:
            draw, width = SCENES[name]
            drawn = draw(stage, width).partition("<0>")[0].rstrip() + "\n"
            page = page.replace(_framed(name, block_of(page, name)), _framed(name, drawn))
            print(drawn)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    _write(sys.argv[1:])
