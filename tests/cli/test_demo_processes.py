"""The demo's candidate processes and its stage, with small programs in the candidates' place."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

import zkelect
from zkelect.cli.demo import stage as demo_stage
from zkelect.cli.demo.event import Event
from zkelect.cli.demo.processes import Candidates
from zkelect.cli.demo.stage import DemoFailed, Stage
from zkelect.cli.signals import Interrupted, Interruption
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Says hello, then repeats each order as an event.
ECHO = """
    import json, os, sys
    def tell(kind, **facts):
        print(json.dumps({"event": kind, "at": 1.0, **facts}), flush=True)
    tell("hello", arguments=sys.argv[1:], session=os.getsid(0), safe=sys.path[0])
    for line in sys.stdin:
        tell(line.strip(), token=TOKEN, lease=1.0, reason="lapsed")
"""
IMPORTING = """
    import json, only_here, zkelect
    print(json.dumps({"event": zkelect.__file__, "at": 0}))
"""
# Says goodbye, and is killed in the middle of the next line.
CUT_SHORT = """
    print('{"event": "bye", "at": 0}')
    print('{"event": "cut', end="")
    exit(3)
"""
TOKEN = str(Token.issue(lineage="0" * 16, generation=1, czxid=5, session_id=5))
LATER = str(Token.issue(lineage="0" * 16, generation=1, czxid=6, session_id=6))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Candidates]]:
    """Start candidates that run this program."""
    with ExitStack() as stack:

        def begin(program: str = ECHO, *names: str) -> Candidates:
            source = textwrap.dedent(program).replace("TOKEN", repr(TOKEN))
            (tmp_path / "program.py").write_text(source, "utf-8")
            candidates = Candidates(
                names or ("a",),
                program=[str(tmp_path / "program.py")],
                hosts="h:1",
                log=tmp_path / "log.sqlite",
            )
            return stack.enter_context(candidates)

        yield begin


def hear(candidates: Candidates) -> Event:
    event = candidates.hear(30.0)
    assert event is not None
    return event


def state(pid: int) -> str:
    """Return the kernel's letter for a process: T stopped, Z ended."""
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]


# --- one process --------------------------------------------------------------------------


def test_a_candidate_is_told_its_part_and_hears_no_ctrl_c(
    start: Callable[..., Candidates], tmp_path: Path
) -> None:
    candidates = start()
    hello = hear(candidates)
    assert hello["arguments"] == ["h:1", "a", str(tmp_path / "log.sqlite")]
    assert hello["session"] == candidates["a"].pid != os.getsid(0)


def test_a_candidate_imports_what_this_process_does(
    start: Callable[..., Candidates], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what lies in the current folder, and also what is on a path of ours alone."""
    (tmp_path / "zkelect.py").write_text("raise SystemExit(3)", "utf-8")
    monkeypatch.chdir(tmp_path)
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "only_here.py").write_text("", "utf-8")
    monkeypatch.syspath_prepend(ours)
    assert hear(start(IMPORTING)).kind == zkelect.__file__


def test_an_order_is_heard_and_answered(start: Callable[..., Candidates]) -> None:
    candidates = start()
    hear(candidates)
    candidates["a"].order("stand")
    told = hear(candidates)
    assert (told.name, told.kind, told["reason"]) == ("a", "stand", "lapsed")


def test_a_frozen_candidate_stands_still_until_it_is_woken(
    start: Callable[..., Candidates],
) -> None:
    candidates = start()
    hear(candidates)
    process = candidates["a"]
    process.freeze()
    assert state(process.pid) == "T"
    process.order("stand")
    process.wake()
    assert hear(candidates).kind == "stand"


def test_the_end_of_a_candidate_is_heard_after_all_that_it_told(
    start: Callable[..., Candidates],
) -> None:
    candidates = start(CUT_SHORT)
    assert hear(candidates).kind == "bye"
    ended = hear(candidates)
    assert (ended.kind, ended["status"]) == ("ended", 3)


def test_a_dead_candidate_can_be_given_orders_and_signals(
    start: Callable[..., Candidates],
) -> None:
    candidates = start("")
    assert hear(candidates).kind == "ended"
    process = candidates["a"]
    process.order("stand")
    process.freeze()
    process.wake()
    process.kill()


def test_what_a_candidate_logs_is_kept_apart(
    start: Callable[..., Candidates], tmp_path: Path
) -> None:
    candidates = start("import sys; sys.stderr.write('trouble')")
    hear(candidates)
    assert candidates["a"].log_path == tmp_path / "a.log"
    assert candidates["a"].log_path.read_text("utf-8") == "trouble"


def test_all_candidates_are_gone_at_the_end_the_frozen_ones_too(
    start: Callable[..., Candidates],
) -> None:
    with start(ECHO, "a", "b") as candidates:
        hear(candidates), hear(candidates)
        candidates["b"].freeze()
        pids = [process.pid for process in candidates.values()]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_candidates_die_with_the_demo_however_it_dies(tmp_path: Path) -> None:
    """SIGKILL of the demo, while a candidate is frozen: the kernel ends it."""
    program = tmp_path / "program.py"
    program.write_text('print(\'{"event": "hello", "at": 0}\', flush=True); input()', "utf-8")
    parent = f"""
        import pathlib
        from zkelect.cli.demo.processes import Candidates
        log = pathlib.Path({str(tmp_path)!r}) / "log"
        candidates = Candidates(["a"], program=[{str(program)!r}], hosts="", log=log)
        candidates.hear(30)
        candidates["a"].freeze()
        print(candidates["a"].pid, flush=True)
        input()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        candidate = os.pidfd_open(int(demo.stdout.readline()))
        try:
            demo.kill()
            assert demo.wait() == -signal.SIGKILL
            assert ends(candidate)
        finally:
            os.close(candidate)


def ends(pidfd: int) -> bool:
    """Whether a process that is not our child ends; a pidfd is readable then."""
    return bool(select.select([pidfd], [], [], 30.0)[0])


# --- the stage ----------------------------------------------------------------------------


@attrs.define
class Server:
    """What the stage looks at of a server."""

    running: bool = True
    address: str = "127.0.0.1:1"
    log_path: Path = Path("server.log")


class Silent:
    """A screen that only remembers."""

    def __init__(self) -> None:
        self.shown: list[Event] = []

    def show(self, event: Event) -> None:
        self.shown.append(event)

    def close(self) -> None: ...


def stage(candidates: Candidates, server: Any = None) -> Stage:
    servers = [Server() if server is None else server]
    return Stage(
        candidates=candidates, servers=servers, screen=Silent(), interruption=Interruption()
    )


def happened(kind: str, name: str, token: str = TOKEN, **facts: Any) -> Event:
    return Event(kind=kind, at=1.0, name=name, facts={"token": token, "lease": 1.0, **facts})


def test_what_is_told_is_kept_and_shown(start: Callable[..., Candidates]) -> None:
    screen = Silent()
    there = Stage(candidates=start(), servers=[], screen=screen, interruption=Interruption())
    there.wait("a", "hello")
    there.tell("act_began", act=1)
    assert [event.kind for event in there.events] == ["hello", "act_began"]
    assert screen.shown == there.events


def test_all_candidates_are_waited_for_in_whatever_order_they_tell(
    start: Callable[..., Candidates],
) -> None:
    there = stage(start(ECHO, "a", "b", "c"))
    there.wait_all("hello")
    there.wait_all("hello")  # it has been told already
    assert {event.name for event in there.events} == {"a", "b", "c"}


def test_a_server_that_ends_ends_the_demo(start: Callable[..., Candidates]) -> None:
    server = Server()
    there = stage(start(), server)
    there.wait("a", "hello")
    server.running = False
    with pytest.raises(DemoFailed, match=r"127\.0\.0\.1:1 has ended; its log is server\.log"):
        there.wait("a", "never")


@pytest.mark.parametrize(("program", "status"), [("exit(3)", 3), ("", 0)])
def test_a_candidate_that_ends_by_itself_ends_the_demo(
    program: str, status: int, start: Callable[..., Candidates]
) -> None:
    there = stage(start(program))
    with pytest.raises(DemoFailed, match=rf"candidate a .* \(exit status {status}\); its log is"):
        there.wait("a", "hello")


def test_a_candidate_may_end_when_it_was_dismissed(start: Callable[..., Candidates]) -> None:
    there = stage(start("input()", "a", "b"))
    there.dismiss("a")
    assert there.present == {"b"}


def test_a_dismissed_candidate_must_end_well(start: Callable[..., Candidates]) -> None:
    there = stage(start("input(); exit(3)"))
    with pytest.raises(DemoFailed, match="exit status 3"):
        there.dismiss("a")


def test_a_killed_candidate_ends_as_it_must(start: Callable[..., Candidates]) -> None:
    there = stage(start())
    there.wait("a", "hello")
    there.kill("a")
    there.wait("a", "ended")
    assert there.present == set()


def test_a_leader_that_loses_by_itself_ends_the_act(start: Callable[..., Candidates]) -> None:
    candidates = start()
    candidates["a"].order("lost")
    with pytest.raises(DemoFailed, match=r"a lost its leadership by itself \(lapsed\)"):
        stage(candidates).wait("a", "resigned")


class Interrupting(Interruption):
    """As if a signal had come while it was deferred."""

    def check(self) -> None:
        raise Interrupted(signal.SIGINT)


def test_a_signal_is_heeded_while_it_hears(start: Callable[..., Candidates]) -> None:
    there = Stage(candidates=start(), servers=[], screen=Silent(), interruption=Interrupting())
    with pytest.raises(Interrupted):
        there.wait("a", "never")


def test_what_does_not_happen_in_time_is_told(
    start: Callable[..., Candidates], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_stage, "_WITHIN", 0.0)
    there = stage(start())
    with pytest.raises(DemoFailed, match="in vain for a: resigned or held"):
        there.wait("a", "resigned", "held")
    with pytest.raises(DemoFailed, match="in vain for all candidates: connected"):
        there.wait_all("connected")
    with pytest.raises(DemoFailed, match="in vain for a leader"):
        there.wait_leader()


def test_the_leader_is_who_was_elected_last_and_has_not_ended(
    start: Callable[..., Candidates],
) -> None:
    there = stage(start())
    there.note(happened("elected", "a"))
    assert there.wait_leader().name == "a"
    there.note(happened("committed", "a", row=1))
    assert there.wait_leader(rows=1).rows == 1
    there.note(happened("elected", "b", LATER))
    there.note(happened("lost", "a"))  # late, and of a term that is over
    assert there.wait_leader(other_than="a").name == "b"
    there.note(happened("resigned", "b", LATER))
    assert there.reign is None


def test_what_was_told_before_the_end_is_not_lost(start: Callable[..., Candidates]) -> None:
    with start() as candidates:
        there = stage(candidates)
        there.wait("a", "hello")
        candidates["a"].order("committed")
        there.kill("a")
    there.drain()
    assert there.events[-1].kind == "ended"
