"""The options that say how careful a cluster is; all its agents are given the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from zkelect.cli.durations import timed
from zkelect.recipes.choice import Policy

__all__ = ["deciding", "synchronizing"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_USUAL: Final = Policy()
_SYNCHRONOUS: Final = (
    click.option(
        "--synchronous",
        is_flag=True,
        help="Promote only a server that has every confirmed write; the primary waits for it.",
    ),
    click.option(
        "--sync-size",
        type=click.IntRange(min=1),
        default=_USUAL.sync_size,
        show_default=True,
        metavar="N",
        help="With --synchronous: for how many others the primary waits.",
    ),
)
_OPTIONS: Final = (
    click.option(
        "--lag-limit",
        type=click.IntRange(min=0),
        metavar="OFFSETS",
        help="Promote nobody who lacks more than that. (MariaDB: transactions; else bytes.)",
    ),
    click.option(
        "--min-candidates",
        type=click.IntRange(min=1),
        default=_USUAL.min_candidates,
        show_default=True,
        metavar="N",
        help="No fail-over with fewer eligible members.",
    ),
    click.option(
        "--min-seen",
        type=click.IntRange(min=1),
        metavar="N",
        help="No fail-over with fewer other members there.  [default: a majority of them]",
    ),
    timed("--patience", _USUAL.patience, "For how long a primary must be missing or failing."),
    timed("--cool-down", _USUAL.cool_down, "After a change, so long no fail-over."),
    click.option(
        "--require-fence",
        is_flag=True,
        help="No fail-over unless the old primary's server was switched off (fenced).",
    ),
)
_NAMES: Final = (
    "synchronous",
    "sync_size",
    "lag_limit",
    "min_candidates",
    "min_seen",
    "patience",
    "cool_down",
    "require_fence",
)


def deciding(function: _Function) -> _Function:
    """Give a command these options, together as its argument ``policy``.

    With those of :func:`synchronizing`, where a command has them.
    """

    @functools.wraps(function)
    def decide(*args: Any, **kwargs: Any) -> Any:
        policy = Policy(**{name: kwargs.pop(name) for name in _NAMES if name in kwargs})
        return function(*args, policy=policy, **kwargs)

    decided: _Function = _offer(_OPTIONS, decide)
    return decided


def synchronizing(function: _Function) -> _Function:
    """Give a command the options of servers whose primary can wait for others."""
    offered: _Function = _offer(_SYNCHRONOUS, function)
    return offered


def _offer(options: Sequence[Callable[[Any], Any]], function: Any) -> Any:
    for option in reversed(options):
        function = option(function)
    return function
