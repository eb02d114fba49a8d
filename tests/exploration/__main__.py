"""``python tests/exploration``: search as far as you like, and be told of what breaks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from exploration.controls import CONTROLS, broken
from exploration.model import FAULTS
from exploration.promises import PROMISES
from exploration.search import Limits, Report, Violation, search
from exploration.transcript import tell


def main() -> int:
    given = _parser().parse_args()
    limits = Limits(
        candidates=given.candidates,
        worlds=given.states,
        seconds=None if given.minutes is None else given.minutes * 60,
        faults=given.faults,
        campaigns=given.campaigns,
        kinds=frozenset(given.only or FAULTS) - {*given.without},
    )
    _introduce(limits)
    with broken(CONTROLS[given.control]):
        return _search(limits)


def _search(limits: Limits) -> int:
    try:
        report = search(limits, progress=_show)
    except Violation as violation:
        print(tell(violation, limits.candidates))
        return 1
    print(f"no promise is broken: {report}")
    return 0


def _introduce(limits: Limits) -> None:
    print(f"{limits.candidates} candidates, {limits.campaigns} campaigns each")
    print(f"at most {limits.faults} faults on one way, of {len(limits.kinds)} kinds")
    print("judged at every transition, and of the future of every world:")
    for name, promise in PROMISES.items():
        print(f"  {name}: {promise}")


def _show(report: Report) -> None:
    print(report, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python tests/exploration", description=__doc__)
    parser.add_argument("--candidates", type=int, default=2, choices=(1, 2, 3, 4))
    parser.add_argument("--states", type=int, default=200_000, help="stop after so many")
    parser.add_argument("--minutes", type=float, help="or after so many minutes")
    parser.add_argument("--faults", type=int, default=3, help="so many on one way at most")
    parser.add_argument("--campaigns", type=int, default=2, help="of each candidate")
    for name, kinds in (("--only", "these kinds of faults"), ("--without", "all but these")):
        parser.add_argument(name, nargs="+", default=[], choices=FAULTS, metavar="F", help=kinds)
    parser.add_argument("--control", default="none", choices=CONTROLS, help="a broken machine")
    parser.epilog = f"faults: {'; '.join(FAULTS)}"
    return parser


if __name__ == "__main__":
    sys.exit(main())
