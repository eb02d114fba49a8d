"""Samples of one run, and rows of the table they are printed in."""

from __future__ import annotations

import statistics
from typing import Final, Self

import attrs

__all__ = ["HEADINGS", "Row", "Samples"]

HEADINGS: Final = ("figure", "median (spread)", "beside", "ratio (spread)", "target")


@attrs.frozen
class Samples:
    """One quantity, measured several times in one run."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, *values: float) -> Self:
        return cls(values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def over(self, other: Samples) -> Samples:
        """Return the ratios, pair by pair: each two were measured side by side."""
        return Samples(
            tuple(mine / theirs for mine, theirs in zip(self.values, other.values, strict=True))
        )

    def told(self, unit: str = "") -> str:
        """Return the median, and the least and greatest where they differ from it."""
        low, high = min(self.values), max(self.values)
        spread = "" if low == high else f" ({_short(low)} … {_short(high)})"
        return f"{_short(self.median)} {unit}".rstrip() + spread


def _short(value: float) -> str:
    """Three digits are more than one run can tell."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@attrs.frozen(kw_only=True)
class Row:
    """One figure of ours, maybe beside another one of the same run.

    :ivar note: lines to print below it.
    """

    figure: str
    ours: Samples
    unit: str = ""
    beside: Samples | None = None
    beside_what: str = ""
    target: str = ""
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the row's text, cell by cell, in the order of the headings."""
        if self.beside is None:
            return self.figure, self.ours.told(self.unit), "", "", self.target
        return (
            self.figure,
            self.ours.told(self.unit),
            f"{self.beside_what} {_short(self.beside.median)} {self.unit}".rstrip(),
            self.ours.over(self.beside).told(),
            self.target,
        )
