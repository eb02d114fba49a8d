"""A pytest plugin that writes down how each test went: ``-p mutants.verdicts``.

The exit status tells only that something failed, not that the test that should did, by
itself, and not because a module could not be imported.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["FILE"]

FILE = "ZKELECT_VERDICTS"
"""Environment: which file to write."""

_went: dict[str, list[tuple[str, str, str]]] = {}
_broken: list[str] = []


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _broken.append(f"{report.nodeid}: {report.longreprtext[-300:]}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    told = report.longreprtext.strip().splitlines()
    why = next((line[2:].strip() for line in told if line.startswith("E ")), "")
    _went.setdefault(report.nodeid, []).append((report.when or "", report.outcome, why))


def pytest_sessionfinish() -> None:
    import zkelect

    told = {"library": str(Path(zkelect.__file__).parents[1]), "went": _went, "broken": _broken}
    Path(os.environ[FILE]).write_text(json.dumps(told), "utf-8")
