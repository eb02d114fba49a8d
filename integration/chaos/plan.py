"""The schedule of faults: from the seed alone, keyed to numbers of guarded operations.

The same seed gives the same faults, for the same seconds, each after the same number of
operations since the one before; who leads then is up to the run. Every kind comes once
before any comes twice.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Step", "steps"]

_TWO_AT_ONCE: Final = 0.2
_OPERATIONS: Final = (16, 60)
"""About two to six seconds' worth, from the end of a fault to the next one."""
_LONGEST_GAP: Final = 6.0


@attrs.frozen(kw_only=True)
class Step:
    """One fault, or two at once.

    :ivar operations: how many after the last step; or ``patience`` seconds, if fewer come.
    :ivar kinds: names in ``chaos.faults``. :ivar seconds: how long it lasts.
    :ivar choice: seed of what is left to choose, such as which follower.
    """

    operations: int
    patience: float
    kinds: tuple[str, ...]
    seconds: float
    choice: str


def steps(
    seed: int, kinds: Sequence[str], *, shortest: float, longest: float, hurried: bool = False
) -> Iterator[Step]:
    """Return the endless schedule.

    :param seed: of everything. :param kinds: of faults to choose from.
    :param shortest, longest: seconds that a fault may last.
    :param hurried: the shortest gap each time, for a run that has to show each kind soon.
    """
    dice = random.Random(seed)
    bag = _bag(dice, kinds)
    for number in itertools.count(1):
        pair = (next(bag), next(bag)) if dice.random() < _TWO_AT_ONCE else (next(bag),)
        drawn = dice.randint(*_OPERATIONS)
        operations = _OPERATIONS[0] if hurried else drawn
        yield Step(
            operations=operations,
            patience=_LONGEST_GAP * operations / _OPERATIONS[1] + 1.0,
            kinds=tuple(dict.fromkeys(pair)),
            seconds=dice.uniform(shortest, longest),
            choice=f"{seed} {number}",
        )


def _bag(dice: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    while True:
        yield from dice.sample(kinds, len(kinds))
