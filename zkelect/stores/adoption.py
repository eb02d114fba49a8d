"""What an operator does when ZooKeeper has lost the history that the stores remember."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from zkelect.errors import DomainTaken, InvalidArgument
from zkelect.stores.mark import LONGEST, Mark

if TYPE_CHECKING:
    from zkelect.token import Token

__all__ = ["Adopter", "Marked", "adopt"]


class Marked(Protocol):
    """A guarded store whose mark can be asked."""

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed."""


class Adopter(Protocol):
    """An election that can continue another history."""

    @property
    def path(self) -> str:
        """The election's path."""

    def adopt(self, *marks: Token, why: str, by: str | None, timeout: float) -> int:
        """Put the tokens of later leaders above these marks; return the new generation."""


def adopt(
    election: Adopter,
    *stores: Marked | Mark,
    why: str = "",
    by: str | None = None,
    timeout: float = 10.0,
) -> int:
    """Let this election continue the history that the stores remember.

    Needed once after ZooKeeper was wiped, replaced or restored: until then every store refuses
    the new leaders (LineageMismatch, EnsembleWentBack). It writes to ZooKeeper alone, no store
    is changed: the next leader's token has the stores' lineage and a higher generation.

    :param election: whose candidates were refused; nobody may lead now.
    :param stores: all the guarded stores of this election, or their marks.
    :param why: for people, in the election's history.
    :param by: who adopts; user and host of this process when None.
    :param timeout: seconds to wait for each answer of ZooKeeper.
    :returns: the new generation.
    :raises DomainTaken: a store's domain belongs to another election.
    :raises InvalidArgument: no store, or none with a mark: then there is nothing to adopt.
    :raises LeaderPresent, NothingToAdopt, LineageMismatch, Unreachable: as
        :meth:`zkelect.Election.adopt` says.
    """
    marks = [store if isinstance(store, Mark) else store.status() for store in stores]
    kept = [mark for mark in marks if mark is not None]
    if not kept:
        raise InvalidArgument("stores", stores, "at least one store that has a mark")
    for mark in kept:
        _check_election(election, mark)
    return election.adopt(*(mark.token for mark in kept), why=why, by=by, timeout=timeout)


def _check_election(election: Adopter, mark: Mark) -> None:
    if mark.election and mark.election != election.path[:LONGEST]:
        raise DomainTaken(
            store="adopt",
            domain=election.path,
            mark=mark.token,
            holder=mark.holder,
            detail=f"this mark belongs to {mark.election}",
        )
