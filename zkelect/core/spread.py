"""Which worker an election belongs to, by rendezvous hashing: no coordinator, no table.

Each worker draws a weight for each election from the two names alone; of the workers that
stand, the one with the highest weight should lead. So each of n workers has 1/n of the
elections, and when one comes or goes only its own move (Thaler and Ravishankar, "Using
name-based mappings to increase hit rates", 1998). Nobody computes the weight of another
one: candidates tell theirs as their priority.
"""

from __future__ import annotations

import hashlib

from zkelect.core.znodes import HIGHEST_PRIORITY

__all__ = ["weigh"]


def weigh(worker: str, election: str) -> int:
    """Return the weight of a worker for an election: a priority, from 0 to 4095.

    Two workers tie now and then; nothing moves then.

    :param worker: its name, any text. :param election: its name, which cannot hold the
        NUL that parts the two: ZooKeeper does not allow it in a path.
    """
    digest = hashlib.sha256(f"{election}\0{worker}".encode()).digest()
    return int.from_bytes(digest[:2]) & HIGHEST_PRIORITY
