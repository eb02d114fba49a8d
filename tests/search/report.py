"""Many histories at once, and what they found in a table."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final

import attrs

from search.history import Verdict, judge
from search.scenario import Question

__all__ = ["Findings", "main", "search"]

_USAGE: Final = "usage: python tests/search RUNS [FIRST_SEED] [KEY=VALUE ...]"
_CHUNK: Final = 100


@attrs.define
class Worst:
    """What was found of one rule.

    :ivar violations: histories in which it held a session to be safe too long; ``excused``
        of them lie outside of what is assumed: the client was never told of a smaller timeout.
    """

    violations: int = 0
    excused: int = 0
    slack: float = math.inf
    seed: int | None = None

    def add(self, slack: float, verdict: Verdict) -> None:
        """Add one history."""
        self.violations += slack < 0
        self.excused += slack < 0 and verdict.unheard
        if slack < self.slack:
            self.slack, self.seed = slack, verdict.seed


@attrs.define
class Findings:
    """What a search has found."""

    runs: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    rules: dict[str, Worst] = attrs.field(factory=dict)
    gap: Worst = attrs.field(factory=Worst)
    left: Worst = attrs.field(factory=Worst)

    def add(self, verdict: Verdict) -> None:
        """Add one history."""
        self.runs += 1
        self.counts["expired"] += verdict.expired
        self.counts["leader changes"] += verdict.leaders - 1
        self.counts["probes"] += verdict.probes
        self.counts["handovers"] += verdict.handovers
        self.gap.add(verdict.gap, verdict)
        self.left.add(verdict.left, verdict)
        for name, slack in verdict.slacks.items():
            self.rules.setdefault(name, Worst()).add(slack, verdict)

    def lines(self) -> Iterator[str]:
        """Yield the table."""
        counts = self.counts
        yield (
            f"{self.runs} runs, {counts['expired']} sessions expired, "
            f"{counts['leader changes']} changes of the ensemble leader, {counts['probes']} probes"
        )
        yield (
            f"{counts['handovers']} grants after the leader's session had expired: least gap "
            f"{self.gap.slack:.3f} s (seed {self.gap.seed}); after it had left "
            f"{self.left.slack:.4f} s (seed {self.left.seed})"
        )
        yield f"{'rule':<20}{'violations':>11}{'excused':>9}{'least slack':>13}  seed"
        for name, worst in self.rules.items():
            yield (
                f"{name:<20}{worst.violations:>11}{worst.excused:>9}"
                f"{worst.slack:>12.3f}s  {worst.seed}"
            )


def search(seeds: Iterable[int], question: Question, *, workers: int | None = None) -> Findings:
    """Judge the history of every seed. The order in which they end makes no difference.

    :param workers: how many processes to use; as many as there are processors when None.
    """
    findings = Findings()
    # Not a fork: whoever calls may have threads.
    with ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn")) as pool:
        for verdict in pool.map(partial(judge, question=question), seeds, chunksize=_CHUNK):
            findings.add(verdict)
    return findings


def main(arguments: Sequence[str] | None = None) -> None:
    """Search as the command line says, and print what was found."""
    try:
        runs, first, question = _read(sys.argv[1:] if arguments is None else arguments)
    except (TypeError, ValueError) as error:
        sys.exit(f"{error}\n{_USAGE}\nkeys: {', '.join(attrs.fields_dict(Question))}")
    print(question)
    print("\n".join(search(range(first, first + runs), question).lines()))


def _read(arguments: Sequence[str]) -> tuple[int, int, Question]:
    numbers = [int(word) for word in arguments if "=" not in word]
    pairs = dict(word.split("=", 1) for word in arguments if "=" in word)
    if not 1 <= len(numbers) <= 2:
        raise ValueError("how many runs?")
    known = attrs.fields_dict(Question)
    if unknown := set(pairs) - set(known):
        raise ValueError(f"no such key: {', '.join(sorted(unknown))}")
    rate = float(pairs.pop("rate", Question().rate))
    flags = {key: int(value) for key, value in pairs.items()}
    return numbers[0], numbers[1] if len(numbers) > 1 else 0, Question(rate=rate, **flags)
