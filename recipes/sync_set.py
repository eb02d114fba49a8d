"""Which members a primary waits for, and which of them are recorded as having all it acknowledged.

Pure. What is recorded decides who may win, so at every instant, also when the agent dies between
two steps, it holds: **whoever is recorded has every acknowledged write, and every later one waits
for it.** So a member is required before it is recorded, and struck off before it is no longer
required.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

__all__ = ["Record", "Require", "Step", "next_step"]


@attrs.frozen
class Require:
    """Let the server wait for these from now on."""

    names: frozenset[str]


@attrs.frozen
class Record:
    """Write into ZooKeeper that these have everything."""

    names: frozenset[str]


Step = Require | Record


def next_step(
    *,
    recorded: Collection[str],
    required: Collection[str] | None,
    in_step: Collection[str],
    size: int,
) -> Step | None:
    """Return what to do next, None when all is as it should be.

    :param recorded: who is, in ZooKeeper. :param required: for whom the server waits; None: we do
        not know, having been started anew.
    :param in_step: who is attached and had, after ``required`` was asked for, everything that had
        been acknowledged.
    :param size: how many there should be; at least 1.
    """
    recorded, in_step = frozenset(recorded), frozenset(in_step)
    if required is None:
        return Require(recorded)
    wanted = _wanted(recorded, frozenset(required), in_step, size)
    if not recorded <= wanted:
        return Record(recorded & wanted)
    if frozenset(required) != wanted:
        return Require(wanted)
    return Record(wanted) if recorded != wanted else None


def _wanted(
    recorded: frozenset[str], required: frozenset[str], in_step: frozenset[str], size: int
) -> frozenset[str]:
    """Keep whom we have; nobody is exchanged for another as long as it is in step."""
    order = [*sorted(recorded & in_step), *sorted(required & in_step), *sorted(in_step)]
    return frozenset(list(dict.fromkeys(order))[:size])
