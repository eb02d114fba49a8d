"""How a server would start: what its option files and its command line say."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.recipes.deadlines import left

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["is_on", "options_of", "read_start"]

# Options that say which option files are read; they come first ("Configuring MariaDB with Option
# Files").
_FILES: Final = ("--defaults-", "--no-defaults")
_MEANT: Final = {"skip_": "0", "disable_": "0", "enable_": "1"}
_OFF: Final = ("0", "off", "false")


def read_start(pid: int, deadline: float) -> dict[str, str]:
    """Return the options with which the server of this process would be started again.

    The program itself is asked what it reads in its option files.

    :raises OSError: the process or its program cannot be looked into.
    """
    given = Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")[1:]
    files = [each for each in given if each.startswith(_FILES)]
    printed = subprocess.run(
        [f"/proc/{pid}/exe", *files, "--print-defaults"],
        cwd=f"/proc/{pid}/cwd",
        capture_output=True,
        text=True,
        timeout=left(deadline),
        check=False,
    ).stdout
    return options_of([*_printed(printed), *(each for each in given if each not in files)])


def options_of(arguments: Iterable[str]) -> dict[str, str]:
    """Return options by name, with ``_``; of one that comes again the last counts.

    What may be a negation is told by both names: ``skip_slave_start`` is none, and looks like it.
    """
    found = {}
    for argument in arguments:
        name, equals, value = argument.removeprefix("--").partition("=")
        name = name.replace("-", "_").removeprefix("loose_")
        found[name] = value if equals else "1"
        for prefix, meant in _MEANT.items():
            if name.startswith(prefix):
                found[name.removeprefix(prefix)] = meant
    return found


def is_on(options: dict[str, str], name: str) -> bool:
    """Tell whether a switch is on."""
    return _says_yes(options.get(name, "0"))


def _says_yes(value: str) -> bool:
    return value.lower() not in _OFF


def _printed(text: str) -> list[str]:
    """Return the arguments in what ``--print-defaults`` prints: all on its last line."""
    lines = text.strip().splitlines()
    return [each for each in shlex.split(lines[-1]) if each.startswith("--")] if lines else []
