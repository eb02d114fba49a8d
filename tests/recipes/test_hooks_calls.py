"""Hooks that run: small shell scripts, called as the engine calls them; there is no server."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

import zkelect
from zkelect.recipes.clock import now
from zkelect.recipes.hooks import HookedServer, HookFailed, HookMissing, Hooks, Order, Verb, tree
from zkelect.recipes.hooks.answer import Said
from zkelect.recipes.hooks.closing import describe, strike, target_of
from zkelect.recipes.hooks.order import REQUIRED
from zkelect.recipes.member import Answer, Member, Role
from zkelect.recipes.position import Branch, Position
from zkelect.recipes.resource import NeedsRebuild, NotNow, Resource, SynchronousResource, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

A, B = Member(name="a"), Member(name="b")
POSITION = Position((Branch("one"),), 14)
TELL = 'echo \'{"role": "replica", "position": "one@0:14"}\''
WITHIN = 30.0


def soon() -> float:
    """Return a deadline that is only there so that a test ends."""
    return now() + WITHIN


def write(file: Path, script: str) -> None:
    """Put it there in one piece: it may be called meanwhile."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(f"#!/bin/sh\n{script}\n")
    new.chmod(0o755)
    new.replace(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Lend a folder with the hooks that there must be; they answer and do nothing."""
    made = tmp_path / "hooks"
    made.mkdir()
    for verb in REQUIRED:
        write(made / verb, "echo '{}'")
    write(made / "position", TELL)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[HookedServer]:
    made = HookedServer(A, Hooks(folder))
    yield made
    made.close()


def ask(path: Path, verb: Verb = Verb.OPEN, deadline: float | None = None) -> Said:
    order = Order(verb=verb, member=A)
    return Hooks(path).ask(Said, order, soon() if deadline is None else deadline)


# --- calling -------------------------------------------------------------------------------------


def test_it_is_a_resource_and_none_that_can_wait_for_others(server: HookedServer) -> None:
    assert isinstance(server, Resource)
    assert not isinstance(server, SynchronousResource)


def test_the_order_is_on_the_input_and_the_verb_in_the_environment(
    folder: Path, tmp_path: Path
) -> None:
    script = f'cat > {tmp_path}/told; echo "$ZKELECT_VERB $0 $# $PWD" > {tmp_path}/who; echo "{{}}"'
    write(folder / "open", script)
    ask(folder)
    assert '"verb": "open"' in (tmp_path / "told").read_text()
    assert (tmp_path / "who").read_text() == f"open {folder}/open 0 /\n"


def test_one_program_gets_the_verb_as_its_argument(tmp_path: Path) -> None:
    write(tmp_path / "all", 'case $1 in open) echo "{}";; *) exit 64;; esac')
    assert ask(tmp_path / "all") == Said()
    with pytest.raises(HookMissing):
        ask(tmp_path / "all", Verb.CATCH_UP)


def test_a_server_that_a_hook_starts_is_not_waited_for(folder: Path, tmp_path: Path) -> None:
    """It has the hook's output open as long as it lives."""
    write(folder / "open", f"setsid sleep 60 & echo $! > {tmp_path}/pid; echo '{{}}'")
    before = now()
    ask(folder)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert now() - before < WITHIN


def test_a_hook_that_reads_nothing_and_says_much(folder: Path) -> None:
    write(folder / "open", "yes complaint | head -c 3000000 >&2; exit 1")
    with pytest.raises(HookFailed, match="complaint"):
        ask(folder)


def test_a_hook_is_called_when_nothing_can_be_written_to_a_disk(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    assert ask(folder) == Said()


# --- what cannot be called ---------------------------------------------------------------------


def test_what_is_missing_is_missing(folder: Path) -> None:
    with pytest.raises(HookMissing, match=r"the hook claim is not there"):
        ask(folder, Verb.CLAIM)


def test_a_folder_that_is_not_mounted_is_no_sign_that_a_hook_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(HookFailed) as raised:
            ask(path, Verb.FENCE)
        assert not isinstance(raised.value, HookMissing)


def test_one_that_cannot_be_run_is_not_missing(folder: Path) -> None:
    """An interpreter that is not there is told by the same error as a file that is not."""
    for text, mode in (("#!/nonexistent/sh\n", 0o755), ("nothing", 0o755), ("#!/bin/sh\n", 0o644)):
        (folder / "fence").write_text(text)
        (folder / "fence").chmod(mode)
        with pytest.raises(HookFailed, match="cannot be run") as raised:
            ask(folder, Verb.FENCE)
        assert not isinstance(raised.value, HookMissing)


def test_none_is_called_when_its_time_is_over(folder: Path, tmp_path: Path) -> None:
    write(folder / "open", f"touch {tmp_path}/touched; echo '{{}}'")
    with pytest.raises(NotNow):
        ask(folder, deadline=now())
    assert not (tmp_path / "touched").exists()


# --- killed at the deadline ------------------------------------------------------------------


def ended(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] in "ZX"


def hang(folder: Path, pid: Path) -> int:
    """Have the hook killed, but not before it has told a process; return that one."""
    seconds = 0.25
    while not pid.exists():
        seconds *= 2
        with pytest.raises(HookFailed, match="did not end in time, and was killed"):
            ask(folder, deadline=now() + seconds)
        assert seconds < WITHIN
    return int(pid.read_text())


def until(condition: Callable[[], bool]) -> None:
    deadline = soon()
    while not condition():
        assert now() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("way", ["{}", "setsid -w {}", "exec timeout 60 {}", "({} &); sleep 60"])
def test_a_hook_that_hangs_is_killed_with_all_that_came_of_it(
    folder: Path, tmp_path: Path, way: str
) -> None:
    """Also what has a session, or a process group, of its own, or has lost its parent."""
    inner = f'sh -c "sleep 60 & echo \\$! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"'
    write(folder / "open", f"trap '' TERM; {way.format(inner)}")
    assert ended(hang(folder, tmp_path / "pid"))


def test_a_daemon_that_it_started_stays(folder: Path, tmp_path: Path) -> None:
    """The very server it looks after: it has left the session, and its parent is gone."""
    daemon = f"(setsid sleep 60 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid)"
    write(folder / "open", f"{daemon}; sleep 60")
    pid = hang(folder, tmp_path / "pid")
    try:
        assert not ended(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def pid_of(handle: int) -> int:
    lines = Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["Pid"])


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Lend a file: the process that it names is another user's as long as the test runs."""
    named = tmp_path / "foreign"
    send = signal.pidfd_send_signal

    def refuse(handle: int, number: int) -> None:
        if named.exists() and pid_of(handle) == int(named.read_text()):
            raise PermissionError
        send(handle, number)

    with monkeypatch.context() as patched:
        patched.setattr(signal, "pidfd_send_signal", refuse)
        yield named
    if named.exists():
        os.kill(int(named.read_text()), signal.SIGKILL)
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # one that goes on was not waited for


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60", id="the hook itself"),
        pytest.param("sleep 60 & echo $! > {0}.new; mv {0}.new {0}; wait", id="below a shell"),
    ],
)
def test_what_runs_as_another_user_is_told_and_not_waited_for(
    folder: Path, foreign: Path, script: str
) -> None:
    write(folder / "open", script.format(foreign))
    deadline, seconds, told = now(), 0.1, ""
    while not foreign.exists():
        seconds *= 2
        assert seconds < WITHIN
        deadline = now() + seconds
        with pytest.raises(HookFailed, match="did not end in time") as raised:
            ask(folder, deadline=deadline)
        told = str(raised.value)
    assert now() < deadline + WITHIN / 2
    assert "was killed" not in told
    assert f"goes on: pid {foreign.read_text().strip()} is another user's; run the" in told


def test_one_of_another_user_that_makes_more_and_more_does_not_keep_us(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    born: list[subprocess.Popen[bytes]] = []

    def look(_: int) -> set[int]:
        assert len(born) < 9
        born.append(subprocess.Popen(["/bin/sleep", "60"]))
        return {each.pid for each in born}

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(tree, "_members", look)
    with monkeypatch.context() as patched:
        patched.setattr(signal, "pidfd_send_signal", refuse)
        try:
            assert tree.kill(0)
        finally:
            for each in born:
                each.kill()
                each.wait()


# --- the server's verbs ------------------------------------------------------------------------


def test_what_there_must_be_is_looked_for_at_the_start(folder: Path, server: HookedServer) -> None:
    server.check()
    (folder / "freeze").unlink()
    (folder / "close").chmod(0o644)
    with pytest.raises(Unfit, match=r"has no executables close, freeze: write them, and chmod \+x"):
        server.check()


def test_a_path_that_is_neither_folder_nor_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    for name in ("notes", "nowhere"):
        with pytest.raises(Unfit, match="no folder of hooks, and no executable"):
            HookedServer(A, Hooks(tmp_path / name)).check()


@pytest.mark.parametrize("script", ["echo too old >&2; exit 1", "echo too old >&2; exit 75"])
def test_check_says_what_to_change(folder: Path, server: HookedServer, script: str) -> None:
    write(folder / "check", script)
    with pytest.raises(Unfit, match="too old"):
        server.check()


def test_what_it_observes(server: HookedServer) -> None:
    seen = server.observe()
    assert (seen.role, seen.position, seen.healthy) == (Role.REPLICA, POSITION, True)


@pytest.mark.parametrize("script", ["exit 75", "exit 1", "echo done", "rm $0; exit 1", "sleep 60"])
def test_a_server_of_which_nothing_is_told_is_not_well(folder: Path, script: str) -> None:
    write(folder / "position", script)
    seen = HookedServer(A, Hooks(folder), look_timeout=0.3).observe()
    assert (seen.role, seen.healthy) == (Role.UNKNOWN, False)
    assert "the hook position" in seen.detail


def test_a_position_that_is_not_told_is_asked_for(folder: Path, server: HookedServer) -> None:
    assert server.freeze(None, soon()) == POSITION
    assert server.promote(soon()) == POSITION
    assert server.open(soon()) == POSITION
    assert server.catch_up(soon()) == POSITION  # there is no such hook
    assert server.demote(planned=True, deadline=soon()) == POSITION
    assert server.demote(planned=False, deadline=soon()) is None  # there is no time for it
    write(folder / "position", 'echo \'{"role": "replica"}\'')
    with pytest.raises(HookFailed, match="told no position"):
        server.freeze(None, soon())


def test_a_position_that_is_told_is_taken(folder: Path, server: HookedServer) -> None:
    write(folder / "demote", 'echo \'{"position": "one@0:15"}\'')
    told = server.demote(planned=False, deadline=soon())
    assert str(told) == "one@0:15"


def test_a_promotion_is_looked_at_whatever_it_said(folder: Path, server: HookedServer) -> None:
    with pytest.raises(HookFailed, match="ended well, and the server is replica"):
        server.verify(soon())
    write(folder / "position", TELL.replace("replica", "primary"))
    assert server.verify(soon()) == POSITION


def test_h82_one_that_cannot_follow_needs_a_rebuild(folder: Path, server: HookedServer) -> None:
    server.follow(B, None, soon())
    write(folder / "follow", 'echo \'{"rebuild": "its log was cut"}\'')
    with pytest.raises(NeedsRebuild, match="its log was cut"):
        server.follow(B, None, soon())


@pytest.mark.parametrize("verb", ["reach", "fence"])
@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ('echo \'{"answer": "yes"}\'', Answer.YES),
        ('echo \'{"answer": "no"}\'', Answer.NO),
        ('echo \'{"answer": "unknown"}\'', Answer.UNKNOWN),
        ("echo '{}'", Answer.UNKNOWN),
        ("exit 1", Answer.UNKNOWN),
        ("exit 64", Answer.UNKNOWN),
        ("exit 75", Answer.UNKNOWN),
        ("true", Answer.UNKNOWN),
        ("sleep 60", Answer.UNKNOWN),
    ],
)
def test_h81_only_what_was_said_is_known_of_another_member(
    folder: Path, verb: str, script: str, answer: Answer
) -> None:
    write(folder / verb, script)
    server = HookedServer(A, Hooks(folder), look_timeout=0.5)
    found = server.reach(B) if verb == "reach" else server.fence(B, now() + 0.5)
    assert found is answer


def test_without_such_hooks_there_is_no_fence_and_nobody_can_tell(server: HookedServer) -> None:
    assert server.fence(B, soon()) is Answer.NO
    assert server.reach(B) is Answer.UNKNOWN


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_the_time_for_a_look_is_some(folder: Path, seconds: float) -> None:
    with pytest.raises(zkelect.InvalidArgument):
        HookedServer(A, Hooks(folder), look_timeout=seconds)


# --- the dead-man ------------------------------------------------------------------------------


def test_close_is_called_at_the_deadline_by_another_process(
    folder: Path, tmp_path: Path, server: HookedServer
) -> None:
    done = tmp_path / "done"
    write(
        folder / "close", f"echo $PPID $ZKELECT_VERB > {done}.new; mv {done}.new {done}; echo {{}}"
    )
    server.check()
    server.arm(now() + 0.1)
    until(done.exists)
    caller, verb = done.read_text().split()
    assert (int(caller) != os.getpid(), verb) == (True, "close")


def test_one_that_is_taken_back_is_not(folder: Path, tmp_path: Path, server: HookedServer) -> None:
    """The watcher takes orders in turn: when the second has come, the first was taken back."""
    done = tmp_path / "done"
    done.touch()
    write(folder / "close", f"echo closed >> {done}; echo '{{}}'")
    server.check()
    server.arm(soon())
    server.disarm()
    server.arm(now() + 0.05)
    until(lambda: done.read_text() != "")
    assert done.read_text() == "closed\n"


@pytest.mark.parametrize("verb", ["promote", "open"])
def test_a_hook_under_way_to_a_primary_is_killed_before_close(
    folder: Path, tmp_path: Path, server: HookedServer, verb: str
) -> None:
    """Else it would open what was just closed: an agent that hangs kills no hook."""
    begun, order = tmp_path / "begun", tmp_path / "order"
    write(folder / verb, f"trap 'echo ended >> {order}' EXIT; touch {begun}; sleep 60; true")
    write(folder / "close", f"echo close >> {order}.new; mv {order}.new {order}; echo '{{}}'")
    server.check()
    failed: list[HookFailed] = []

    def act() -> None:
        try:
            getattr(server, verb)(soon())
        except HookFailed as error:
            failed.append(error)

    server.arm(soon())
    acting = threading.Thread(target=act)
    acting.start()
    until(begun.exists)
    server.arm(now())
    acting.join(WITHIN / 2)
    until(order.exists)
    assert order.read_text() == "close\n"
    assert "was killed by signal 9" in str(failed[0])


def test_a_close_that_fails_is_called_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "count"
    write(folder / "close", f"echo >> {count}; test $(wc -l < {count}) = 3 && echo '{{}}'")
    watch(monkeypatch, folder)
    strike(target_of("", ""))
    assert len(count.read_text()) == 3


def watch(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make this the process that strikes."""
    for name, value in describe(Hooks(folder), A).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("error", [OSError("too many open files"), RuntimeError("odd")])
def test_whatever_is_in_the_way_of_a_close_it_is_called_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    watch(monkeypatch, folder)
    asked: list[str] = []

    def fail(*_: object) -> None:
        asked.append("")
        if len(asked) < 3:
            raise error

    monkeypatch.setattr(Hooks, "ask", fail)
    strike(target_of("", ""))
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("spared", "told"),
    [
        (None, "may go on: too many open files"),
        ({7, 5}, "goes on beside close: pid 5, pid 7 are another user's"),
    ],
)
def test_a_hook_under_way_that_cannot_be_killed_does_not_keep_it_from_closing(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    spared: set[int] | None,
    told: str,
) -> None:
    def kill_run(_: str) -> set[int]:
        if spared is None:
            raise OSError("too many open files")
        return spared

    watch(monkeypatch, folder)
    write(folder / "close", f"touch {tmp_path}/done; echo '{{}}'")
    monkeypatch.setattr(tree, "kill_run", kill_run)
    strike(target_of("", "1/1"))
    assert (tmp_path / "done").exists()
    assert told in capfd.readouterr().err


@pytest.fixture
def unheard() -> Iterator[tuple[IO[str], int]]:
    """Lend a pipe to write messages to, and its other end."""
    reader, writer = os.pipe()
    told = os.fdopen(writer, "w", buffering=1)
    yield told, reader
    with suppress(OSError):
        os.close(reader)
    with suppress(OSError):
        told.close()


@pytest.mark.parametrize("full", [False, True], ids=["broken", "full"])
def test_a_close_that_fails_is_called_again_when_nobody_hears_that(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unheard: tuple[IO[str], int],
    *,
    full: bool,
) -> None:
    told, reader = unheard
    if full:
        os.set_blocking(told.fileno(), False)
        with suppress(BlockingIOError):
            while True:
                os.write(told.fileno(), b"x" * 4096)
        os.set_blocking(told.fileno(), True)
    else:
        os.close(reader)
    count = tmp_path / "count"
    write(folder / "close", f"echo >> {count}; test $(wc -l < {count}) = 3 && echo '{{}}'")
    watch(monkeypatch, folder)
    monkeypatch.setattr(sys, "stderr", told)
    strike(target_of("", ""))
    assert len(count.read_text()) == 3


def test_the_token_goes_with_the_leadership(
    folder: Path, tmp_path: Path, server: HookedServer
) -> None:
    write(folder / "claim", f'echo "claim $ZKELECT_TOKEN" >> {tmp_path}/told; echo "{{}}"')
    write(folder / "demote", f'echo "demote $ZKELECT_TOKEN" >> {tmp_path}/told; echo "{{}}"')

    class Leadership:
        deadline = soon()

        def check(self) -> str:
            return "0007"

    server.claim(Leadership())  # type: ignore[arg-type]  # as much of one as it needs
    server.demote(planned=False, deadline=soon())
    server.disarm()
    server.demote(planned=False, deadline=soon())
    assert (tmp_path / "told").read_text().splitlines() == ["claim 0007", "demote 0007", "demote "]
