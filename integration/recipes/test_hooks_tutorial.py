"""The sample of docs/promotion_hooks.md, run as it stands there."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from recipes.hooks_stage import PAGE, command, commands_of
from recipes.test_redis_tutorial import end_all
from servers.process import home

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.testing import LocalEnsemble


@pytest.mark.timeout(300)
def test_the_tutorial_for_hooks(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    command(tmp_path)
    with ExitStack() as stack:
        lab = stack.enter_context(home("tutorial"))
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "ZKELECT_HOSTS": zookeeper.hosts,
            "TMPDIR": str(lab),
            "LC_ALL": "C",
        }
        printed = stack.enter_context((tmp_path / "printed").open("wb"))
        process = subprocess.Popen(
            ["/bin/bash", "-eux", "-o", "pipefail", "-c", "\n".join(commands_of(PAGE))],
            env=environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stack.callback(_tell, tmp_path / "printed", lab)
        stack.callback(end_all, process, lab)
        assert process.wait(timeout=240) == 0


def _tell(printed: Path, lab: Path) -> None:
    """Print what the commands and the agents have said; pytest shows it when the test fails."""
    for file in (printed, *lab.glob("*/*.log")):
        print(f"--- {file}\n{file.read_text('utf-8', 'replace')}")
