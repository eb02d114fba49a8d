"""The pytest fixtures: found by their entry point, and by nobody who has no pytest."""

from __future__ import annotations

import configparser
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

USERS_TEST = """
import zkelect

def test_of_a_user(fake_ensemble: zkelect.testing.FakeEnsemble) -> None:
    session = fake_ensemble.connect()
    election = zkelect.Election(session, "/jobs")
    election.start()
    fake_ensemble.settle()
    assert election.phase == "leading"
"""


def run(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_entry_point_names_the_fixtures() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", "utf-8")
    name, _, module = config["options.entry_points"]["pytest11"].strip().partition(" = ")
    assert name == "zkelect"
    assert {"zookeeper", "fault_proxy", "fake_ensemble"} <= set(import_module(module).__all__)


def test_a_test_of_a_user_asks_for_them_by_name(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(USERS_TEST, "utf-8")
    # An installed package brings its entry point; from a checkout it is named.
    plugin = () if installed() else ("-p", "zkelect.testing.fixtures")
    told = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, cwd=tmp_path)
    assert "1 passed" in told
    listed = run("-m", "pytest", "--fixtures", "-q", *plugin, cwd=tmp_path)
    for fixture in ("zookeeper", "fault_proxy", "fake_ensemble"):
        assert f"{fixture} " in listed or f"{fixture}\n" in listed


def installed() -> bool:
    from importlib.metadata import entry_points

    return any(point.name == "zkelect" for point in entry_points(group="pytest11"))


@pytest.mark.parametrize("module", ["zkelect", "zkelect.testing", "zkelect.testing.fake"])
def test_without_pytest_everything_else_is_there(module: str, tmp_path: Path) -> None:
    program = f"import sys; sys.modules['pytest'] = None; import {module} as m; print(dir(m))"
    run("-c", program, cwd=tmp_path)
