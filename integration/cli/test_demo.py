"""The demo on the real server: as promised, and, with each promise broken, not as promised."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from zkelect.cli import main
from zkelect.cli.demo import command as demo
from zkelect.cli.demo.show import run as show
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEMO = [sys.executable, "-m", "zkelect.cli", "demo"]
WITHIN = 60.0
"""Seconds: an outer bound against a hang, never a measure."""


class Run:
    """``zkelect demo --json`` as a process, and the events it prints."""

    def __init__(self, *arguments: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [*DEMO, "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, kind: str) -> dict[str, Any]:
        """Read on until an event of this kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == kind:
                return self.events[-1]
        raise AssertionError(f"no {kind!r} among {self.events}")

    def end(self) -> tuple[int, str]:
        """Read all that is left; return exit status and standard error."""
        out, err = self.process.communicate(timeout=WITHIN)
        self.events += map(json.loads, out.splitlines())
        return self.process.returncode, err

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]


class Place:
    """A directory for all temporary files of a demo, and who works there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def left(self) -> list[Path | int]:
        """Files and processes: nothing may be."""
        return [*self.path.rglob("*"), *self.processes()]

    def processes(self) -> list[int]:
        """Candidates and servers: each has the path of its files on its command line."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has ended
                if os.fsencode(self.path) in entry.read_bytes():
                    found.append(int(entry.parent.name))
        return found

    def kept(self, stderr: str) -> Path:
        """Return the directory that a failed demo says it has kept."""
        (kept,) = self.path.iterdir()
        assert f"ZooKeeper's logs and data are kept in {kept}\n" in stderr
        return kept


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    path = tmp_path / "demo"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return Place(path)


@pytest.fixture
def run(place: Place) -> Iterator[Callable[..., Run]]:
    """Start the demo, in its place."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(closing(Run(*arguments)))


# --- as promised --------------------------------------------------------------------------


STORY = ["elected", "handed_over", "failed_over", "refused", "killed", "failed_over", "summary"]


@pytest.mark.parametrize("servers", [1, 3])
def test_the_demo_does_what_it_says(servers: int, run: Callable[..., Run], place: Place) -> None:
    shown = run("--servers", str(servers))
    assert shown.end() == (0, "")
    told = iter(event["event"] for event in shown.events)
    assert all(kind in told for kind in STORY) and next(told, None) is None
    summary = shown.events[-1]
    assert summary["ok"] and summary["problems"] == []
    assert summary["elections"] == len(shown.all("elected")) >= 4
    assert summary["acked"] == len(shown.all("committed")) > 0
    assert summary["rows"] == summary["acked"] + summary["unacked"]
    assert summary["stale_refused"] == len(shown.all("refused")) == 1
    for figure in ("acked_lost", "stale_accepted", "lease_overlaps", "others_woken"):
        assert summary[figure] == 0, figure
    assert summary["hand_over_seconds"] > 0
    assert set(summary["fail_over_seconds"]) == {"frozen", "killed"}
    assert len(shown.all("servers_ready")[0]["pids"]) == servers
    assert place.left() == []


def test_the_stale_write_is_refused_at_the_store_with_both_tokens_named(
    run: Callable[..., Run],
) -> None:
    shown = run()
    shown.end()
    (refused,) = shown.all("refused")
    frozen, woken, failed = (shown.all(kind)[0] for kind in ("frozen", "woken", "check_failed"))
    assert frozen["name"] == woken["name"] == failed["name"] == refused["name"]
    assert refused["token"] == failed["token"] == frozen["token"]
    assert Token.parse(refused["token"]) < Token.parse(refused["mark"])
    successor = next(event for event in shown.all("elected") if event["token"] == refused["mark"])
    assert successor["name"] != refused["name"]
    # All that the frozen one had written it had told before it was stopped.
    told = [row["seconds"] for row in shown.all("committed") if row["token"] == frozen["token"]]
    assert max(told) <= frozen["seconds"]


def test_people_get_plain_ascii_where_there_is_no_terminal(place: Place) -> None:
    environ = {**os.environ, "LANG": "C", "LC_ALL": "C"}
    done = subprocess.run(DEMO, env=environ, capture_output=True, timeout=2 * WITHIN, check=False)
    text = done.stdout.decode("ascii")
    assert (done.returncode, done.stderr) == (0, b""), text
    assert "\x1b" not in text and "\r" not in text
    assert max(map(len, text.splitlines())) <= 80
    titles = re.findall(r"^(\d  [A-Z].*|The log.*|All.*)$", text, re.MULTILINE)
    assert titles == [
        "1  Election",
        "2  Planned handover",
        "3  Frozen leader",
        "4  Killed leader",
        "The log, read again",
        "All as promised.",
    ]


# --- not as promised ----------------------------------------------------------------------


def candidate(tmp_path: Path, fence: str) -> list[str]:
    """Write a candidate program whose log is guarded by a class ``Broken``; return its command."""
    program = tmp_path / "candidate.py"
    program.write_text(
        "import sys\n"
        "from contextlib import contextmanager\n"
        "from zkelect.cli.demo.candidate import main\n"
        "from zkelect.stores import SqliteFence, fence\n"
        f"{textwrap.dedent(fence)}"
        "main(sys.argv[1:], Broken)\n",
        "utf-8",
    )
    return [str(program)]


UNGUARDED = """
    fence.guard = lambda view, token, **_: None  # whoever comes may write
    Broken = SqliteFence
"""
FORGETFUL = """
    class Lost(Exception): ...

    class Broken(SqliteFence):
        written = 0

        @contextmanager
        def transaction(self, claimant):  # every third one is acknowledged and rolled back
            self.written += 1
            try:
                with super().transaction(claimant) as log:
                    yield log
                    if self.written % 3 == 0:
                        raise Lost
            except Lost:
                pass
"""
CRASHING = """
    class Broken(SqliteFence):
        def claim(self, claimant):
            raise RuntimeError("the disk is on fire")
"""


@pytest.fixture
def broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: Place
) -> Callable[[str], Result]:
    """Run the demo with candidates whose store is broken so."""

    def invoke(fence: str) -> Result:
        command = candidate(tmp_path, fence)
        monkeypatch.setattr(
            demo, "run", lambda screen, **settings: show(screen, program=command, **settings)
        )
        return CliRunner().invoke(main.command, ["demo", "--json"])

    return invoke


@pytest.mark.parametrize(
    ("fence", "figure", "problem"),
    [
        (UNGUARDED, "stale_accepted", "stale writes accepted by the store: 1"),
        (FORGETFUL, "acked_lost", "acknowledged writes missing from the log: "),
    ],
    ids=["unguarded", "forgetful"],
)
def test_a_broken_store_is_found_out(
    fence: str, figure: str, problem: str, broken: Callable[[str], Result], place: Place
) -> None:
    result = broken(fence)
    summary = json.loads(result.stdout.splitlines()[-1])
    assert result.exit_code == 1
    assert summary["event"] == "summary" and not summary["ok"]
    assert summary[figure] > 0
    assert any(told.startswith(problem) for told in summary["problems"])
    assert f"zkelect: {problem}" in result.stderr
    assert (place.kept(result.stderr) / "host-a.log").exists()


def test_a_candidate_that_crashes_is_told_with_its_log(
    broken: Callable[[str], Result], place: Place
) -> None:
    result = broken(CRASHING)
    (problem,) = json.loads(result.stdout.splitlines()[-1])["problems"]
    told = re.fullmatch(r"candidate .* ended by itself \(exit status 1\); its log is (.*)", problem)
    assert result.exit_code == 1
    assert told is not None, problem
    assert Path(told[1]).parent == place.kept(result.stderr)
    assert "the disk is on fire" in Path(told[1]).read_text("utf-8")


def test_a_server_that_dies_is_told_and_its_log_kept(run: Callable[..., Run], place: Place) -> None:
    shown = run()
    (server,) = shown.until("servers_ready")["pids"]
    shown.until("resigned")
    os.kill(server, signal.SIGKILL)
    status, err = shown.end()
    kept = place.kept(err)
    problem = shown.events[-1]["problems"][0]
    assert status == 1
    assert f"has ended; its log is {kept / 'server-1' / 'server.log'}" in problem
    assert (kept / "server-1" / "server.log").stat().st_size > 0
    assert place.processes() == []


# --- interrupted --------------------------------------------------------------------------

MOMENTS = [
    "servers_launched",
    "act_began",
    "connected",
    "elected",
    "resigned",
    "frozen",
    "lapsed",
    "refused",
    "killed",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_at_any_moment_leaves_nothing_behind(
    moment: str, run: Callable[..., Run], place: Place
) -> None:
    shown = run()
    shown.until(moment)
    shown.process.send_signal(signal.SIGINT)
    status, err = shown.end()
    assert place.left() == []
    assert status == 130
    assert err == "zkelect: SIGINT: the demo was stopped, and all that it had started\n"


def test_ctrl_c_on_a_terminal_gives_it_back_as_it_was(place: Place) -> None:
    status, text = on_terminal(80, until=b"appends rows", type_in=b"\x03")
    assert place.left() == []
    assert status == 130
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor stays hidden"
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", text).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(re.match(r" host-. leads  token \S+  row \d+  lease ", line) for line in lines)


def test_whatever_kills_the_demo_kills_what_it_started(
    run: Callable[..., Run], place: Place
) -> None:
    shown = run()
    shown.until("frozen")  # a stopped process hears of nothing, but the kernel ends it
    started = place.processes()
    assert len(started) == 4
    descriptors = [os.pidfd_open(pid) for pid in started]
    shown.process.kill()
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], WITHIN)[0], "a process is left behind"
        os.close(descriptor)


def test_a_reader_that_has_seen_enough_ends_the_demo(run: Callable[..., Run], place: Place) -> None:
    shown = run()
    shown.until("elected")
    assert shown.process.stdout is not None
    shown.process.stdout.close()
    assert shown.process.wait(WITHIN) == 1
    assert place.left() == []


def on_terminal(columns: int, *, until: bytes, type_in: bytes) -> tuple[int, str]:
    """Run the demo on a terminal; type something once it has printed something.

    :returns: its exit status, and all that it printed.
    """
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    # A session without a terminal gets the first one that its leader opens (tty_ioctl(4)).
    shell = ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(its), *DEMO]
    environ = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(shell, env=environ, start_new_session=True) as process:
        printed = _read(ours, lambda text: until in text)
        os.write(ours, type_in)
        printed += _read(ours, lambda _: process.poll() is not None)
    os.close(its)
    os.close(ours)
    return process.returncode, printed.decode("ascii")


def _read(terminal: int, enough: Callable[[bytes], bool]) -> bytes:
    text = b""
    while not enough(text) or select.select([terminal], [], [], 0)[0]:
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 65536)
    return text
