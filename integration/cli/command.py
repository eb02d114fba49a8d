"""``zkelect`` as a process, driven as a person or a script drives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
from election.waiting import WITHIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["NOBODYS", "Ended", "Running", "environment"]

NOBODYS: Final = "127.1.1.1"
"""Of the loopback, too; but no client of another test looks there for a server that is gone."""

PROGRAM: Final = (sys.executable, "-m", "zkelect.cli")


@attrs.frozen(kw_only=True)
class Ended:
    """What a command has left behind."""

    status: int
    out: str
    err: str


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return this process's environment without what would tell the command where to go."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ZKELECT_")}
    kept |= {"XDG_CONFIG_HOME": "/nonexistent"}
    changed = {**kept, **changes}
    return {key: value for key, value in changed.items() if value is not None}


class Running:
    """A command that runs; leave the block, and it is killed with all of its process group.

    :ivar process: with pipes for input, output and errors, in text.
    """

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str | None], **how: Any) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(env),
            **{"start_new_session": True, **how},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def line(self) -> str:
        """Wait for the next line of output."""
        assert self.process.stdout is not None
        return str(self.process.stdout.readline())

    def complaint(self) -> str:
        """Wait for the next line of errors."""
        assert self.process.stderr is not None
        return str(self.process.stderr.readline())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command alone."""
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Wait for its end, and read all that is left to read."""
        out, err = self.process.communicate(timeout=WITHIN)
        return Ended(status=self.process.returncode, out=out, err=err)

    def kill(self) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
