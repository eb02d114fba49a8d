"""docs/cli_operating.md: what it shows is what one sees, at a terminal, on a real server."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from cli.command import PROGRAM, environment
from election.waiting import WITHIN, until

import zkelect
from zkelect import stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator

    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[2] / "docs" / "cli_operating.md"
_SESSION: Final = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS: Final = [
    re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    for block in _SESSION.findall(PAGE.read_text("utf-8"))
]
"""The sessions of the page: of each, the commands with what follows them."""

PAUSES, CHANGES, LATE, EVICTIONS, MARKS, ADOPTION = BLOCKS
PATH: Final = "/elections/billing"
DEAF: Final = "00000000000080008000000000000000"
_VARYING: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{16}-[0-9a-f]{16}-[0-9a-f]{16}"), "TOKEN"),
    (re.compile(r"lineage [0-9a-f]{16}"), "LINEAGE"),
    (re.compile(r"\b[0-9a-f]{32}__lock__\d{10}"), "NODE"),
    (re.compile(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "SINCE"),
)


def comparable(text: str) -> list[str]:
    """Return the lines without what is another one each time."""
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.replace("\r\n", "\n").splitlines()


class Terminal:
    """A terminal at which somebody answers yes to every question."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self._told = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # so ends a terminal that nobody has open any more
            while chunk := os.read(self._ours, 4096):
                self._told += chunk
                if self._told.endswith(b"[y/N]: "):
                    os.write(self._ours, b"y\n")

    def told(self) -> str:
        """Return all that was shown, once the command has ended."""
        os.close(self.theirs)
        self._reader.join(WITHIN)
        os.close(self._ours)
        return self._told.decode()


def seen(line: str, hosts: str, folder: Path) -> str:
    """Run a command line of the page, and return what one sees."""
    terminal = Terminal()
    arguments = [*shlex.split(line)[1:]]
    if "fence show" not in line:
        arguments += ["--session-timeout", "2"]
    ended = subprocess.run(
        [*PROGRAM, *arguments],
        stdin=terminal.theirs,
        stdout=subprocess.PIPE,
        stderr=terminal.theirs,
        text=True,
        env=environment({"ZKELECT_HOSTS": hosts}),
        cwd=folder,
        timeout=WITHIN,
        check=False,
    )
    return terminal.told() + ended.stdout


@pytest.fixture
def hosts(zookeeper: LocalEnsemble, operator: Operator, request: pytest.FixtureRequest) -> str:
    """The ensemble below a chroot of this test's, so that its path is that of the page."""
    operator.kazoo.create(f"/{request.node.name}")
    return f"{zookeeper.hosts}/{request.node.name}"


@pytest.fixture
def stand(hosts: str) -> Iterator[Callable[[str], zkelect.Election]]:
    """Let a candidate stand, and wait until it has its place."""
    with ExitStack() as stack:

        def begin(name: str) -> zkelect.Election:
            session = stack.enter_context(zkelect.connect(hosts, session_timeout=2.0))
            election = zkelect.Election(session, PATH, name=name)
            election.start()
            stack.callback(election.stop)
            until(lambda: election.phase in ("waiting", "leading"), f"{name} has its place")
            return election

        yield begin


def see(commands: list[str], hosts: str, folder: Path) -> None:
    """Type each command, and compare what one sees with the page."""
    for each in commands:
        line, _, expected = each.partition("\n")
        assert comparable(seen(line, hosts, folder)) == comparable(expected), line


def test_pause_and_resume(
    stand: Callable[[str], zkelect.Election], hosts: str, tmp_path: Path
) -> None:
    leader = stand("host-a")
    until(lambda: leader.leader() is not None, "host-a leads")
    see(PAUSES, hosts, tmp_path)


def test_switchover_and_resign(
    stand: Callable[[str], zkelect.Election], hosts: str, tmp_path: Path
) -> None:
    leader = stand("host-a")
    until(lambda: leader.leader() is not None, "host-a leads")
    for name in ("host-b", "host-c"):
        stand(name)
    see(CHANGES, hosts, tmp_path)


def test_who_is_in_the_way_is_told(
    stand: Callable[[str], zkelect.Election],
    hosts: str,
    tmp_path: Path,
    operate: Callable[[str], Operator],
) -> None:
    leader = stand("host-a")
    until(lambda: leader.leader() is not None, "host-a leads")
    operate(hosts).stand(PATH, uuid=DEAF)
    stand("host-c")
    see(LATE, hosts, tmp_path)


def test_evictions(stand: Callable[[str], zkelect.Election], hosts: str, tmp_path: Path) -> None:
    leader = stand("host-a")
    until(lambda: leader.leader() is not None, "host-a leads")
    stand("host-b")
    see(EVICTIONS, hosts, tmp_path)


def test_marks_are_shown_and_adopted(
    stand: Callable[[str], zkelect.Election],
    hosts: str,
    tmp_path: Path,
    operate: Callable[[str], Operator],
) -> None:
    config = tmp_path / "ops.toml"
    config.write_text('[stores]\njobs = "sqlite:///jobs.db"\n')
    config.chmod(0o600)
    fence = stores.SqliteFence(tmp_path / "jobs.db", domain="billing")
    with zkelect.connect(hosts, session_timeout=2.0) as session:
        election = zkelect.Election(session, PATH, name="host-a")
        election.run(fence.claim, timeout=WITHIN)
    see(MARKS, hosts, tmp_path)
    wiped = operate(hosts).kazoo
    for each in (PATH, f"{PATH}.zkelect"):
        wiped.delete(each, recursive=True)
    stand("host-b").stop(WITHIN)
    see(ADOPTION, hosts, tmp_path)
