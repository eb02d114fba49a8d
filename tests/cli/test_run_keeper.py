"""The keeper by itself: a process that is given orders, with commands of the system's."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, Self

import pytest

from zkelect.cli.run import keeper
from zkelect.cli.run.keeper.kernel import Alarm, boottime
from zkelect.cli.run.keeper.messages import (
    Cause,
    Channel,
    Dead,
    End,
    Ending,
    Hold,
    Message,
    Pass,
    Ready,
    Refused,
    Start,
    Started,
)

WITHIN: Final = 10.0
"""Seconds: an outer bound against a hang, never a measure."""

LONG: Final = 600.0
LONGER: Final = 2 * LONG
DEAF: Final = "trap '' TERM; echo up; for i in $(seq 60); do sleep 1; done"
"""Ends by itself at last, when a keeper that is broken on purpose has left it behind."""


class Keeper:
    """A keeper as a process, and the elector's end of its socket."""

    def __init__(self, folder: Path, *command: str) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = str(Path(keeper.__file__).parent)
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", program, str(its.fileno()), str(folder), *command],
                pass_fds=[its.fileno()],
                stdout=subprocess.PIPE,
                text=True,
            )
        self.channel = Channel(ours)

    def __enter__(self) -> Self:
        assert isinstance(self.hear(), Ready)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.leave()
        finally:
            self.process.kill()  # one that is broken on purpose; its command goes with it
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def hear(self) -> Message | None:
        """Wait for the next message; None: it has ended."""
        ready, _, _ = select.select([self.channel], [], [], WITHIN)
        assert ready, "the keeper says nothing"
        return self.channel.receive()

    def start(self, deadline: float, *, grace: float = 0.0, **env: str) -> None:
        self.channel.send(Start(env, deadline, grace))

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def leave(self) -> str:
        """End as the elector does, by whatever cause; the keeper must end then, too.

        :returns: what the command has said since it was read last.
        """
        self.channel.close()
        assert self.process.wait(WITHIN) == 0
        assert self.process.stdout is not None
        if self.process.stdout.closed:
            return ""
        with self.process.stdout as out:
            return _read_to_the_end(out)


def _read_to_the_end(out: IO[str]) -> str:
    """Read until nobody is left who could write."""
    os.set_blocking(out.fileno(), False)
    hung_up = select.poll()
    hung_up.register(out, 0)  # POLLHUP is always told
    assert hung_up.poll(WITHIN * 1000), "somebody that came of the command lives on"
    return out.read()


Begin = Callable[..., Keeper]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    folder = tmp_path / "folder"
    folder.mkdir()
    with ExitStack() as stack:
        yield lambda *command: stack.enter_context(Keeper(folder, *command))
    assert not folder.exists()


def test_it_loads_nothing_but_the_standard_library() -> None:
    script = (
        f"import sys; sys.argv = ['k']; sys.path.insert(0, {str(Path(keeper.__file__).parent)!r})"
    )
    script += (
        "; import runpy; runpy.run_path(sys.path[0] + '/__main__.py')['_import_bare']()"
        "; import zkelect.cli.run.keeper.keeper"
        "; print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() in (["__main__", "zkelect"], ["zkelect", "__main__"], ["zkelect"])


def test_a_command_that_ends_by_itself(begin: Begin) -> None:
    run = begin("sh", "-c", "exit $STATUS")
    for status in 3, 0:  # one keeper for all terms
        run.start(boottime() + LONG, STATUS=str(status))
        assert isinstance(run.hear(), Started)
        assert run.hear() == Ending(Cause.EXITED, status)
        assert run.hear() == Dead()


def test_h70_what_it_leaves_behind_is_ended_too(begin: Begin) -> None:
    run = begin("sh", "-c", '(setsid sh -c "$0" &) ; read x < /dev/null', DEAF)
    run.start(boottime() + LONG, grace=0.1)
    assert isinstance(run.hear(), Started)
    assert isinstance(run.hear(), Ending)
    assert run.hear() == Dead()
    run.leave()


@pytest.mark.parametrize(
    ("command", "number"),
    [("no-such-program", errno.ENOENT), ("/etc/passwd", errno.EACCES), ("/etc", errno.EACCES)],
)
def test_a_command_that_cannot_be_executed(begin: Begin, command: str, number: int) -> None:
    run = begin(command)
    run.start(boottime() + LONG)
    told = {run.hear(), run.hear()}
    assert told == {Refused(number), Ending(Cause.EXITED, 127)}
    assert run.hear() == Dead()


def test_h70_the_end_of_the_elector_is_the_end_of_all(begin: Begin) -> None:
    run = begin("sh", "-c", DEAF)
    run.start(boottime() + LONGER, grace=LONG)
    assert run.read() == "up\n"
    run.leave()


def test_an_end_at_once_does_not_ask(begin: Begin) -> None:
    run = begin("sh", "-c", "trap 'echo asked' TERM; echo up; for i in $(seq 60); do sleep 1; done")
    run.start(boottime() + LONGER, grace=LONG)
    assert run.read() == "up\n"
    run.channel.send(End(at_once=True))
    told = [run.hear()]
    while told[-1] != Dead():
        told.append(run.hear())
    assert Ending(Cause.ORDERED) in told
    assert run.leave() == ""


def test_an_end_asks_first(begin: Begin) -> None:
    run = begin(
        "sh",
        "-c",
        "trap 'echo asked; exit' TERM; echo up; for i in $(seq 6000); do sleep 0.01; done",
    )
    run.start(boottime() + LONGER, grace=LONG)
    assert run.read() == "up\n"
    run.channel.send(End(at_once=False))
    assert run.read() == "asked\n"


def test_one_that_is_stopped_is_asked_too(begin: Begin) -> None:
    run = begin("sh", "-c", "trap 'echo asked; exit' TERM; echo up; kill -STOP $$")
    run.start(boottime() + LONGER, grace=LONG)
    assert run.read() == "up\n"
    run.channel.send(End(at_once=False))
    assert run.read() == "asked\n"


def test_a_renewal_in_time_lets_it_live(begin: Begin) -> None:
    run = begin("sleep", "600")
    first = boottime() + 0.5
    run.start(first)
    assert isinstance(run.hear(), Started)
    run.channel.send(Hold(boottime() + LONG))
    alarm = Alarm()
    alarm.set(first + 0.1)
    files = [alarm.descriptor, run.channel.fileno()]
    assert select.select(files, [], [], WITHIN)[0] == [alarm.descriptor]
    assert not select.select([run.channel], [], [], 0)[0]


def test_without_one_it_is_dead_by_the_deadline(begin: Begin) -> None:
    run = begin("sh", "-c", DEAF)
    run.start(boottime() + 0.5, grace=0.2)
    assert isinstance(run.hear(), Started)
    assert run.hear() == Ending(Cause.LATE)
    assert run.hear() == Dead()


def test_h72_what_is_over_is_not_even_started(begin: Begin) -> None:
    run = begin("sh", "-c", "echo started")
    run.start(boottime() - 1.0)
    assert (run.hear(), run.hear()) == (Ending(Cause.LATE), Dead())


def test_a_signal_is_passed_on_to_all(begin: Begin) -> None:
    one = "trap 'echo heard' HUP; echo up; for i in $(seq 6000); do sleep 0.01; done"
    run = begin("sh", "-c", f'sh -c "$0" & {one}', one)
    run.start(boottime() + LONG)
    assert (run.read(), run.read()) == ("up\n", "up\n")
    run.channel.send(Pass(signal.SIGHUP, typed=False))
    assert (run.read(), run.read()) == ("heard\n", "heard\n")


def test_h70_what_is_meant_for_others_does_not_end_it(begin: Begin) -> None:
    run = begin("sh", "-c", "exit 5")
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP:
        run.process.send_signal(number)
    run.start(boottime() + LONG)
    assert isinstance(run.hear(), Started)
    run.leave()


def test_an_alarm_is_due_when_its_instant_has_come() -> None:
    alarm = Alarm()
    alarm.set(boottime() + LONG)
    assert not select.select([alarm.descriptor], [], [], 0)[0]
    alarm.set(boottime() - 1)
    assert select.select([alarm.descriptor], [], [], WITHIN)[0]
    alarm.set(None)
    assert not select.select([alarm.descriptor], [], [], 0)[0]
