"""Runs the tutorials of the docs as they stand there; only the ports are free ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from recipes.reaper import reaping
from recipes.undertaker import Undertaker
from servers.process import home

from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zkelect.testing import LocalEnsemble

__all__ = ["commands_of", "free_ports", "run_tutorial"]

_COMMAND: Final = f"""#!/bin/sh\nexec {sys.executable} -m zkelect.cli "$@"\n"""
_WITHIN: Final = 240.0
"""Seconds: an outer bound."""
_PID_FILES: Final = ("*/*/postmaster.pid", "*/*/pid", "*/*/*.pid", "*/*.pid")
_LOGS: Final = ("printed", "*.agent", "*.log")


def commands_of(page: Path, heading: str = "") -> list[str]:
    """Return the blocks of shell commands of a page in their order, or those of one section."""
    text = page.read_text("utf-8")
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(found) > 5
    return found


@contextmanager
def free_ports(script: str, pattern: str) -> Iterator[str]:
    """Return the script with a free port for each that the pattern finds."""
    with ExitStack() as stack:
        for number in sorted(set(re.findall(pattern, script))):
            port = Port()
            stack.callback(port.release)
            script = script.replace(number, str(port.number))
        yield script


def run_tutorial(script: str, zookeeper: LocalEnsemble, tools: Path, *, account: str = "") -> None:
    """Run it to its good end; what it has started ends with it in any case.

    :param tools: a folder, into which a ``zkelect`` is put that is the one under test.
    :param account: whose the folder of its servers is, when we are root.
    """
    (tools / "zkelect").write_text(_COMMAND)
    (tools / "zkelect").chmod(0o755)
    with (
        home("tutorial", account) as lab,
        _told(lab),
        reaping(lab),
        Undertaker(lambda: _servers(lab), pause=0.2),
    ):
        environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "ZKELECT_HOSTS": zookeeper.hosts,
            "TMPDIR": str(lab),
            "LC_ALL": "C",
        }
        # Into a file: the agents that a failed script leaves would hold a pipe open.
        with (lab / "printed").open("wb") as printed:
            done = subprocess.run(
                ["/bin/bash", "-eux", "-o", "pipefail", "-c", script],
                env=environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                timeout=_WITHIN,
                check=False,
            )
        assert done.returncode == 0


def _servers(lab: Path) -> Iterator[int]:
    """Yield the first process of each server, as it has written it down."""
    for file in (file for pattern in _PID_FILES for file in lab.glob(pattern)):
        with suppress(OSError, ValueError, IndexError):  # it is being written, or goes
            yield int(file.read_text().split()[0])


@contextmanager
def _told(lab: Path) -> Iterator[None]:
    """Print what the commands, the agents and the servers have said, if it fails."""
    try:
        yield
    except BaseException:
        for file in (file for pattern in _LOGS for file in lab.rglob(pattern)):
            print(f"--- {file}\n{file.read_text('utf-8', 'replace')}")
        raise
