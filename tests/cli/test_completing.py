"""Completion: quick, and of the commands as they are listed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from zkelect.cli.commands import SECTIONS
from zkelect.cli.main import command

COMPLETE = """
import sys
from zkelect.cli import start
sys.argv[:] = ["zkelect"]
try:
    start()
finally:
    print(*sorted(name for name in sys.modules if name.startswith("zkelect.cli.")), file=sys.stderr)
    print("kazoo" in sys.modules, "rich" in sys.modules, file=sys.stderr)
"""


def test_a_tab_lists_the_commands_in_their_order_and_imports_none() -> None:
    asked = {"_ZKELECT_COMPLETE": "bash_complete", "COMP_WORDS": "zkelect ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    names = [entry.name for section in SECTIONS.values() for entry in section]
    assert done.stdout.splitlines() == [f"plain,{name}" for name in names]
    modules, libraries = done.stderr.splitlines()
    assert not {entry.module for each in SECTIONS.values() for entry in each} & {*modules.split()}
    assert libraries == "False False"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_the_command(shell: str) -> None:
    result = CliRunner().invoke(command, ["completion", shell])
    assert result.exit_code == 0
    assert f"_ZKELECT_COMPLETE={shell}_complete" in result.stdout
