"""Hooks: run without a shell, one at a time; whatever they do is told, and nothing is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from zkelect.cli.looking.hook import Hook, HookNotExecutable, HookNotFound
from zkelect.cli.signals import Interrupted, Interruption

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES = {"ZKELECT_LEADER_NAME": "host-a; touch x"}


def python(code: str, *arguments: str) -> Sequence[str]:
    return [sys.executable, "-c", code, *arguments]


def test_words_are_quoted_as_for_a_shell_and_expanded_by_nobody(tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = (
        "import os, sys; told = repr(sys.argv[2:]) + os.environ['ZKELECT_LEADER_NAME']; "
        "open(sys.argv[1], 'w').write(told)"
    )
    hook = Hook.parse(f"""{sys.executable} -c "{code}" {told} 'a b' $HOME '*' `id`""")
    assert hook.run(VARIABLES) is None
    assert told.read_text("utf-8") == "['a b', '$HOME', '*', '`id`']host-a; touch x"


@pytest.mark.parametrize("text", ["", "  ", "notify 'unended"])
def test_what_is_no_command_line_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="--exec"):
        Hook.parse(text)


def test_a_program_that_is_not_there_is_told_before_anything_is_begun(tmp_path: Path) -> None:
    with pytest.raises(HookNotFound, match="no-such-program: not found") as missing:
        Hook.parse("no-such-program --loud")
    assert missing.value.exit_code == 127
    script = tmp_path / "hook"
    script.touch(mode=0o644)
    with pytest.raises(HookNotExecutable, match="not executable") as refused:
        Hook.parse(str(script))
    assert refused.value.exit_code == 126


def test_how_it_failed_is_returned() -> None:
    assert Hook(python("raise SystemExit(3)")).run({}) == f"{sys.executable}: ended with status 3"
    killed = Hook(python("import os; os.kill(os.getpid(), 9)")).run({})
    assert killed == f"{sys.executable}: was killed by SIGKILL"
    gone = Hook(["/no-such-program"]).run({})
    assert gone == "/no-such-program: could not be started: No such file or directory"


def test_its_output_is_no_data(capfd: pytest.CaptureFixture[str]) -> None:
    Hook(python("print('hello'); print(repr(__import__('sys').stdin.read()))")).run({})
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "hello\n''\n")


def test_a_signal_ends_it_and_all_that_it_has_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = """
import subprocess, sys
grandchild = "import sys, time; f = open(sys.argv[1], 'w'); f.write('x'); f.flush(); time.sleep(60)"
subprocess.run([sys.executable, "-c", grandchild, sys.argv[1]])
"""

    def interrupt() -> None:
        with pipe.open(encoding="ascii") as reader:
            reader.read(1)  # both run
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append(reader.read())  # returns when the last writer is gone

    ended: list[str] = []
    thread = threading.Thread(target=interrupt, daemon=True)
    former = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        thread.start()
        with pytest.raises(Interrupted), Interruption():
            Hook(python(code, str(pipe))).run({})
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    thread.join(30)
    assert ended == [""]
