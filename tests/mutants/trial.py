"""Trials: a copy of the library, broken or not, and the tests that are run on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import attrs
from mutants.patches import ROOT, Patch
from mutants.verdicts import FILE

__all__ = ["SANE", "Trial", "library"]

SANE: Final = "tests/mutants/test_sane.py::test_every_module_can_be_imported"
"""Runs beside the named test: it passes on every mutant that is one of behaviour only."""


def library() -> Path:
    """Return the folder of the installed library, the one that is copied."""
    found = subprocess.run(
        [sys.executable, "-c", "import zkelect; print(zkelect.__path__[0])"],
        cwd=tempfile.gettempdir(),
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(found.stdout.strip())


@attrs.frozen(kw_only=True)
class Trial:
    """How some tests went on one copy of the library.

    :ivar went: by test, phase, outcome and why. :ivar broken: what could not be collected.
    :ivar output: the end of what pytest printed. :ivar seconds: it took.
    """

    went: dict[str, list[tuple[str, str, str]]]
    broken: list[str]
    output: str
    seconds: float

    @classmethod
    def run(cls, source: Path, tests: Iterable[str], patch: Patch | None = None) -> Self:
        """Copy the library, break it, and run the tests on the copy.

        :raises DoesNotApply: the patch is for other code.
        """
        with _copied(source) as copy:
            if patch is not None:
                patch.apply(copy)
            began = time.monotonic()
            done, told = _test(copy, tests)
            return cls(
                went=told.get("went", {}),
                broken=told.get("broken", ["pytest came to no end"]),
                output=(done.stdout + done.stderr)[-2000:],
                seconds=time.monotonic() - began,
            )

    def of(self, test: str) -> list[tuple[str, str, str]]:
        """Return how a test went, all its parameters together."""
        found = (
            reports
            for name, reports in self.went.items()
            if name == test or name.startswith(f"{test}[")
        )
        return [tuple(report) for reports in found for report in reports]  # type: ignore[misc]  # JSON knows no tuples

    def passed(self, test: str) -> bool:
        """Whether a test was there, and every phase of it passed."""
        reports = self.of(test)
        return bool(reports) and all(outcome == "passed" for _, outcome, _ in reports)

    def failure(self, test: str) -> str | None:
        """Return why the test failed by itself, None if it did not.

        What fails before it, or while it is cleaned up, or because the library cannot even
        be imported, is not that.
        """
        if self.broken or not self.passed(SANE):
            return None
        own = (why or "failed" for when, how, why in self.of(test) if (when, how) == _FAILED)
        return next(own, None)


_FAILED: Final = ("call", "failed")


@contextmanager
def _copied(source: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="zkelect-mutant-") as folder:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, Path(folder, source.name), ignore=ignored)
        yield Path(folder)


def _test(
    copy: Path, tests: Iterable[str]
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    told = copy / "verdicts.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(copy), str(ROOT / "tests"))),
        "PYTHONDONTWRITEBYTECODE": "1",
        FILE: str(told),
    }
    # A traceback taken of a thread that runs may crash Python, and the exploration takes its time.
    patient = ("-o", "faulthandler_timeout=890")
    options = ("-p", "mutants.verdicts", "-p", "no:cacheprovider", "-q", *patient)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", str(ROOT / "tox.ini"), *options),
            *(str(ROOT / test) for test in dict.fromkeys((*tests, SANE))),
        ],
        cwd=copy,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(told.read_text("utf-8")) if told.exists() else {}
    if found and not Path(found["library"]).samefile(copy):
        raise RuntimeError(f"the tests were run on {found['library']}, not on the copy")
    return done, found
