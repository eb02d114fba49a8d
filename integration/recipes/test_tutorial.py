"""The tutorials of docs/promotion.md, run as they stand there; only the ports are free ones."""

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
from servers.packages import install
from servers.process import home

from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[2] / "docs" / "promotion.md"
COMMAND: Final = f"""#!/bin/sh\nexec {sys.executable} -m zkelect.cli "$@"\n"""


def commands(heading: str) -> str:
    """Return the shell commands under a heading, in their order."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}")[2].partition("\n## ")[0]
    found = re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert found
    return "\n".join(found)


def with_free_ports(script: str, ports: list[Port]) -> str:
    numbers = sorted(set(re.findall(r"\b543\d\d\b", script)))
    for number, port in zip(numbers, ports, strict=True):
        script = script.replace(number, str(port.number))
    return script


@pytest.mark.timeout(300)
def test_the_tutorial_for_postgresql(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    install("postgresql-15")
    (tmp_path / "zkelect").write_text(COMMAND)
    (tmp_path / "zkelect").chmod(0o755)
    with ExitStack() as stack:
        lab = stack.enter_context(home("tutorial", "postgres"))
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "ZKELECT_HOSTS": zookeeper.hosts,
            "TMPDIR": str(lab),
            "LC_ALL": "C",
        }
        ports = [Port() for _ in range(3)]
        for port in ports:
            stack.callback(port.release)
        script = with_free_ports(commands("Tutorial: three servers on one machine"), ports)
        printed = stack.enter_context((tmp_path / "printed").open("w+"))
        process = subprocess.Popen(
            ["/bin/bash", "-eux", "-o", "pipefail", "-c", script],
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
    for path in (printed, *lab.glob("*/*.agent")):
        print(f"--- {path.name}\n{path.read_text('utf-8', 'replace')}")


def end_all(process: subprocess.Popen[bytes], lab: Path) -> None:
    """Kill what the script has left: its session, whose id is its pid, and the servers."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    servers = [int(file.read_text().split()[0]) for file in lab.glob("*/*/postmaster.pid")]
    for pid in pids:
        with suppress(ProcessLookupError):
            if os.getsid(pid) == process.pid or pid in servers:
                os.kill(pid, signal.SIGKILL)
    process.wait()
