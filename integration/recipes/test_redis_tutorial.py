"""The tutorial of docs/promotion_redis.md, run as it stands there; only the ports are free ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from servers.packages import program
from servers.process import home

from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

COMMAND: Final = f"""#!/bin/sh\nexec {sys.executable} -m zkelect.cli "$@"\n"""
PAGE: Final = Path(__file__).parents[2] / "docs" / "promotion_redis.md"


def script() -> str:
    """Return the shell commands of the page, in their order."""
    found = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) > 5
    return "\n".join(found)


@pytest.mark.timeout(300)
def test_the_tutorial_for_redis(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    program("redis-server")
    (tmp_path / "zkelect").write_text(COMMAND)
    (tmp_path / "zkelect").chmod(0o755)
    commands = script()
    with ExitStack() as stack:
        lab = stack.enter_context(home("tutorial"))
        for number in sorted(set(re.findall(r"\b6379\d\b", commands))):
            port = Port()
            stack.callback(port.release)
            commands = commands.replace(number, str(port.number))
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "ZKELECT_HOSTS": zookeeper.hosts,
            "TMPDIR": str(lab),
            "LC_ALL": "C",
        }
        printed = stack.enter_context((tmp_path / "printed").open("wb"))
        # Into a file: the agents that a failed script leaves would hold a pipe open.
        process = subprocess.Popen(
            ["/bin/bash", "-eux", "-o", "pipefail", "-c", commands],
            env=environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stack.callback(tell, tmp_path / "printed", lab)
        stack.callback(end_all, process, lab)
        assert process.wait(timeout=240) == 0


def tell(printed: Path, lab: Path) -> None:
    """Print what the commands and the agents have said; pytest shows it when the test fails."""
    for path in (printed, *lab.glob("*/*/agent.log")):
        print(f"--- {path}\n{path.read_text('utf-8', 'replace')}")


def end_all(process: subprocess.Popen[bytes], lab: Path) -> None:
    """Kill what the script has left: its session, whose id is its pid, and the servers."""
    servers = [int(file.read_text()) for file in lab.glob("*/*/pid")]
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    for pid in pids:
        with suppress(ProcessLookupError):
            if os.getsid(pid) == process.pid or pid in servers:
                os.kill(pid, signal.SIGKILL)
    process.wait()
