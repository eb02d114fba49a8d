"""docs/testing.md: each example that is a whole file is run, in the project of a stranger."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = Path(__file__).parents[1] / "docs" / "testing.md"
EXAMPLE: Final = re.compile(r"^```python\n# (test_\w+\.py)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILES: Final = dict(EXAMPLE.findall(PAGE.read_text("utf-8")))
SETTINGS: Final = "[pytest]\nfilterwarnings = error\n"


def run(directory: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_each_example_of_the_kit_is_a_file_of_its_own() -> None:
    examples = PAGE.read_text("utf-8").count("```python")
    assert len(FILES) == examples == 5


@pytest.mark.parametrize("name", FILES)
def test_an_example_passes_in_a_project_of_a_stranger(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name], "utf-8")
    (tmp_path / "pytest.ini").write_text(SETTINGS, "ascii")
    # An installed package brings its entry point; from a checkout it is named.
    installed = any(point.name == "zkelect" for point in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "zkelect.testing.fixtures")
    assert "1 passed" in run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", *plugin, name)


def test_the_example_without_pytest_needs_no_pytest(tmp_path: Path) -> None:
    name = "test_with_unittest.py"
    (tmp_path / name).write_text(
        "import sys; sys.modules['pytest'] = None\n" + FILES[name], "utf-8"
    )
    assert "OK" in run(tmp_path, "unittest", "-v", name.removesuffix(".py"))
