"""The command: run, judge, print; controls first, so that a checker that is blind is told."""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from chaos import history
from chaos.checker import check
from chaos.controls import CONTROLS, TRIES, broken
from chaos.director import conduct
from chaos.evidence import collect
from chaos.faults import FAULTS
from chaos.figures import measure
from chaos.judging import Verdict
from chaos.plan import steps
from chaos.report import markdown, table
from chaos.roles import ROLES, play
from chaos.stage import SESSION_TIMEOUT, TICK_TIME, Setting, Stage
from chaos.stores import SMALL, STORES
from zkelect.testing import NamespaceEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

_SERVERS: Final = 3
_HURRIED: Final = 3.0
"""Minutes below which a run shows each kind of fault once, in a hurry."""

_INTERRUPTED: Final = 130
_QUICK_TO_START: Final = {"initLimit": "20"}
"""Ticks, 4 s. A server that believes itself elected waits so long for those that follow another."""

_IGNORED: Final = shutil.ignore_patterns("snapshot.*")


def main() -> int:
    """Do what was asked for; return the exit status."""
    if sys.argv[1:2] and sys.argv[1] in ROLES:
        play(sys.argv[1], json.loads(sys.argv[2]))
        return 0
    asked = _parser().parse_args()
    try:
        return _judge_again(asked.judge) if asked.judge is not None else _run_all(asked)
    except KeyboardInterrupt:
        print("interrupted: nothing is judged")
        return _INTERRUPTED


def _run_all(asked: argparse.Namespace) -> int:
    """Run the controls and the run, on the same servers."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # the operator's lost connections
    with NamespaceEnsemble(_SERVERS, tick_time=TICK_TIME, config=_QUICK_TO_START) as ensemble:
        blind = [] if asked.no_controls else _run_controls(ensemble, asked.stores)
        verdict = _run(ensemble, asked)
    for name in blind:
        print(f"the control {name!r} was not found out: the checker is blind to it")
    return 0 if verdict is Verdict.VALID and not blind else 1


# --- the run ------------------------------------------------------------------------------


def _run(ensemble: NamespaceEnsemble, asked: argparse.Namespace) -> Verdict:
    hurried = asked.minutes < _HURRIED
    plan = steps(
        asked.seed,
        list(FAULTS),
        shortest=0.1 * SESSION_TIMEOUT,
        longest=(1.5 if hurried else 3.0) * SESSION_TIMEOUT,
        hurried=hurried,
    )
    print(f"\nseed {asked.seed}, {asked.minutes:g} minutes, stores {', '.join(asked.stores)}")
    with _folder(asked.directory) as directory:
        setting = Setting(
            directory=directory, path="/chaos/run", seed=asked.seed, stores=asked.stores
        )
        with Stage(ensemble, setting) as stage:
            conduct(stage, plan, seconds=60 * asked.minutes, kinds=list(FAULTS))
            _collect(ensemble, stage)
        verdict = _judge(directory, _about(asked))
        if verdict is Verdict.VALID and asked.directory is None:
            shutil.rmtree(directory)
        if verdict is not Verdict.VALID:
            shutil.copytree(ensemble.directory, directory / "zookeeper", ignore=_IGNORED)
    return verdict


def _collect(ensemble: NamespaceEnsemble, stage: Stage) -> None:
    setting = stage.setting
    data = sorted(ensemble.directory.glob("server-*/data"))
    collect(setting.directory, setting.path, stage.stores, data)


def _judge(directory: Path, about: dict[str, str]) -> Verdict:
    evidence = history.read(directory)
    judgement, figures = check(evidence), measure(evidence)
    print(table(judgement, figures))
    print(f"\n{markdown(judgement, figures, about)}\n", flush=True)
    return judgement.verdict


def _judge_again(directory: Path) -> int:
    """Judge the evidence of an earlier run."""
    return 0 if _judge(directory, {}) is Verdict.VALID else 1


def _about(asked: argparse.Namespace) -> dict[str, str]:
    command = ["python", "integration/chaos", "--seed", str(asked.seed)]
    command += ["--minutes", f"{asked.minutes:g}", "--stores", ",".join(asked.stores)]
    return {"commit": _commit(), "command": f"`{' '.join(command)}`"}


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


# --- the controls -------------------------------------------------------------------------


def _run_controls(ensemble: NamespaceEnsemble, stores: Sequence[str]) -> list[str]:
    """Run each control until it is found out; return those that were not."""
    return [name for name in CONTROLS if not _is_found_out(ensemble, name, stores)]


def _is_found_out(ensemble: NamespaceEnsemble, name: str, stores: Sequence[str]) -> bool:
    for number in range(1, TRIES + 1):
        print(f"\ncontrol: {name}, try {number}")
        found = _run_control(ensemble, name, stores, number)
        if found:
            print(f"found out by {', '.join(sorted(found))}, as it must be", flush=True)
            return True
    return False


def _run_control(
    ensemble: NamespaceEnsemble, name: str, stores: Sequence[str], number: int
) -> frozenset[str]:
    """Run it once; return by which of its promises it was found out."""
    control = CONTROLS[name]
    with _folder(None) as directory:
        setting = Setting(
            directory=directory,
            path=f"/chaos/{name.replace(' ', '-')}-{number}",
            seed=control.seed + number - 1,
            stores=stores,
            candidates=3,
            habits=dict(control.habits),
        )
        with broken(name), Stage(ensemble, setting) as stage:
            conduct(stage, control.steps)
            _collect(ensemble, stage)
        found = check(history.read(directory)).broken & control.found_by
        if found:
            shutil.rmtree(directory)
    return found


# --- folders and arguments ----------------------------------------------------------------


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """Lend an empty folder; one that is still there at the end is named."""
    if given is not None:
        given.mkdir(parents=True)
    directory = Path(tempfile.mkdtemp(prefix="zkelect-chaos-")) if given is None else given
    try:
        yield directory
    except KeyboardInterrupt:
        shutil.rmtree(directory)
        raise
    finally:
        if directory.exists():
            print(f"the evidence is in {directory}; --judge {directory} judges it again")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python integration/chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the schedule and all dice (1)")
    parser.add_argument("--minutes", type=float, default=1.5, help="so long, at least (1.5)")
    parser.add_argument(
        "--stores",
        type=_stores,
        default=SMALL,
        help=f"of {','.join(STORES)}, or all ({','.join(SMALL)})",
    )
    parser.add_argument("--directory", type=Path, help="new folder for the evidence, kept")
    parser.add_argument("--no-controls", action="store_true", help="only the run")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="judge kept evidence again")
    return parser


def _stores(names: str) -> list[str]:
    chosen = list(STORES) if names == "all" else names.split(",")
    if unknown := set(chosen) - set(STORES):
        raise argparse.ArgumentTypeError(f"no such store: {', '.join(sorted(unknown))}")
    return chosen
