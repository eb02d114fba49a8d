"""The table: each case with its tests, and with what makes one of them fail."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from mutants.patches import ROOT, Patch, read_all

__all__ = ["Case", "case_of", "hazards_of", "main", "named_tests", "read_cases"]

_NUMBER: Final = re.compile(r"(?:^test|(?<=h\d\d))_h(\d\d)(?=_)")
_LEVELS: Final = (
    ("integration/chaos", "ensemble"),
    ("integration/ensembles", "ensemble"),
    ("integration/containers", "ensemble"),
    ("integration/proxy", "proxy"),
    ("integration", "integration"),
    ("tests/test_stories.py", "story"),
    ("tests", "unit"),
)


@attrs.frozen(kw_only=True)
class Case:
    """One case of the catalogue.

    :ivar part: which part of the work shows it. :ivar due: it must be shown by now.
    :ivar tests: by node id. :ivar mutants: that make one of them fail. :ivar controls: tests,
        by node id, that break the rule on purpose and assert that the check finds it.
    :ivar gone: of the controls, those that are no test any more.
    """

    number: str
    what: str
    part: int
    due: bool
    tests: tuple[str, ...]
    mutants: tuple[str, ...]
    controls: tuple[str, ...]
    gone: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """What it lacks, None when it is shown, or not due yet."""
        if self.gone:
            return f"no control is called {', '.join(self.gone)}"
        if not self.due:
            return None
        if not self.tests:
            return "no test"
        return None if self.mutants or self.controls else "nothing shows that its test can fail"


def hazards_of(test: str) -> list[str]:
    """Return the cases that a test is named after: test_h05_h06_… names two."""
    name = test.rpartition("::")[2].partition("[")[0]
    return [f"H{number}" for number in _NUMBER.findall(name)]


def named_tests(*folders: str) -> Iterator[str]:
    """Return the node ids of all tests in these folders, without importing one."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("test_*.py")):
            for name in _tests_of(file):
                yield f"{file.relative_to(ROOT).as_posix()}::{name}"


def _tests_of(file: Path) -> Iterator[str]:
    """Name a module's tests, with those of a contract that it takes over as a whole."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_"):
                yield name
            case ast.ImportFrom(module=str(module), names=[ast.alias(name="*")]):
                yield from _tests_of(_find(module))


def _find(module: str) -> Path:
    """Return a module's file: pytest's path has both folders (tox.ini)."""
    name = f"{module.replace('.', '/')}.py"
    return next(file for at in ("tests", "integration") if (file := ROOT / at / name).exists())


def read_cases() -> list[Case]:
    """Bring together the catalogue, the tests and the mutants."""
    catalogue: dict[str, Any] = tomllib.loads(
        Path(__file__).with_name("cases.toml").read_text("utf-8")
    )
    tests, patches = list(named_tests("tests", "integration")), read_all()
    return [
        case_of(number, told, tests, patches, closed=catalogue["closed"])
        for number, told in catalogue["cases"].items()
    ]


def case_of(
    number: str,
    told: Mapping[str, Any],
    tests: Sequence[str],
    patches: Sequence[Patch],
    *,
    closed: Collection[int],
) -> Case:
    """Make a case of what the catalogue tells of it, and what there is."""
    controls = tuple(told.get("controls", ()))
    return Case(
        number=number,
        what=told["what"],
        part=told["part"],
        due=told["part"] in closed,
        tests=tuple(test for test in tests if number in hazards_of(test)),
        mutants=tuple(patch.name for patch in patches if number in _proven(patch)),
        controls=controls,
        gone=tuple(control for control in controls if control not in tests),
    )


def _proven(patch: Patch) -> set[str]:
    """A mutant proves that the tests it names can fail, and no others."""
    return {number for test in patch.tests for number in hazards_of(test)}


def level_of(test: str) -> str:
    return next(level for folder, level in _LEVELS if test.startswith(folder))


def main() -> int:
    """Print the table; return the exit status."""
    cases = read_cases()
    for case in cases:
        print("\n".join(_rows(case)))
    problems = [f"{case.number}: {case.problem}" for case in cases if case.problem]
    due = [case for case in cases if case.due]
    shown = sum(case.problem is None for case in due)
    print(f"{shown} of {len(due)} cases that are due are shown and proven")
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


def _rows(case: Case) -> Iterator[str]:
    yield f"{case.number}  {case.what}"
    for test in case.tests:
        yield f"     {level_of(test):11} {test}"
    if case.mutants:
        yield f"     fails with  {', '.join(case.mutants)}"
    for control in case.controls:
        yield f"     control     {control}"
    if case.problem:
        yield f"     LACKS       {case.problem}"
    elif not case.due:
        yield f"     part {case.part}"


def unknown(tests: Sequence[str]) -> list[str]:
    """Return the numbers that tests are named after and the catalogue does not have."""
    known = {case.number for case in read_cases()}
    return sorted({number for test in tests for number in hazards_of(test)} - known)
