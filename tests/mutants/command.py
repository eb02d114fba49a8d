"""The command: try each mutant, print who was caught by whom, and who was not."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import attrs
from mutants.patches import DoesNotApply, Patch, read_all
from mutants.trial import Trial, library

__all__ = ["main"]

EXPLORATION: Final = "tests/exploration/test_exploration.py::test_two_candidates_with_every_fault"
"""Knows no case by name: what it finds, it finds by looking everywhere."""


@attrs.frozen(kw_only=True)
class Verdict:
    """What became of one mutant. ``why``: the failure that caught it, or how it survived."""

    patch: Patch
    caught: bool
    why: str
    seconds: float
    explored: bool | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 when every mutant was caught."""
    options = _parse(arguments)
    patches = [
        patch
        for patch in read_all()
        if (not options.names or patch.name in options.names)
        and options.level in ("all", patch.level)
    ]
    if unknown := set(options.names) - {patch.name for patch in patches}:
        sys.exit(f"no mutant is called {', '.join(sorted(unknown))}")
    source = library()
    if problems := _check_sound(source, patches, options.jobs):
        print("\n".join(problems))
        return 1
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = [_tell(verdict) for verdict in pool.map(partial(_try, source), patches)]
    return _summarize(verdicts)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of patch files; all if none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time")
    parser.add_argument("--level", choices=("all", "unit", "integration"), default="all")
    return parser.parse_args(arguments)


def _check_sound(source: Path, patches: Sequence[Patch], jobs: int) -> list[str]:
    """Every named test must be there, and pass while nothing is broken."""
    by_level = [
        dict.fromkeys(test for patch in patches if patch.level == level for test in _tests(patch))
        for level in ("unit", "integration")
    ]
    groups = [list(tests) for tests in by_level if tests]
    with ThreadPoolExecutor(jobs) as pool:
        trials = [*pool.map(partial(Trial.run, source), groups)]
    return [
        f"{test}: does not pass while nothing is broken\n{trial.output}"
        for trial, tests in zip(trials, groups, strict=True)
        for test in tests
        if trial.broken or not trial.passed(test)
    ]


def _tests(patch: Patch) -> tuple[str, ...]:
    return (*patch.tests, *((EXPLORATION,) if "exploration" in patch.also else ()))


def _try(source: Path, patch: Patch) -> Verdict:
    try:
        trial = Trial.run(source, _tests(patch), patch)
    except DoesNotApply as error:
        return Verdict(patch=patch, caught=False, why=f"does not apply: {error}", seconds=0.0)
    found = [trial.failure(test) for test in _tests(patch)]
    explored = found[-1] is not None if "exploration" in patch.also else None
    missed = [test for test, why in zip(_tests(patch), found, strict=True) if why is None]
    return Verdict(
        patch=patch,
        caught=not missed,
        why=f"not by {', '.join(missed)}\n{trial.output}" if missed else found[0] or "",
        seconds=trial.seconds,
        explored=explored,
    )


def _tell(verdict: Verdict) -> Verdict:
    patch = verdict.patch
    how = "caught" if verdict.caught else "SURVIVES"
    beside = " and by the exploration alone" if verdict.explored else ""
    print(f"{how:8} {patch.name:34} {patch.target:38} {verdict.seconds:5.1f} s")
    print(f"         {patch.title}")
    print(f"         by {', '.join(patch.tests)}{beside}")
    print(f"         {verdict.why}", flush=True)
    return verdict


def _summarize(verdicts: Sequence[Verdict]) -> int:
    print(*_totals(verdicts), sep="\n")
    survivors = [verdict.patch.name for verdict in verdicts if not verdict.caught]
    for name in survivors:
        print(f"survives: {name}")
    return 1 if survivors else 0


def _totals(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for part in sorted({verdict.patch.part for verdict in verdicts}):
        those = [verdict for verdict in verdicts if verdict.patch.part == part]
        yield f"{part}: {sum(verdict.caught for verdict in those)}/{len(those)}"
    core = [verdict for verdict in verdicts if verdict.patch.part == "core"]
    explored = sum(verdict.explored is True for verdict in core)
    yield f"of the core's {len(core)}, {explored} by the exhaustive exploration alone"
    yield f"caught {sum(verdict.caught for verdict in verdicts)}/{len(verdicts)}"
