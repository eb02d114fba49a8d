"""A guarded store knows better: somebody newer has been there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.errors.root import ZkelectError

if TYPE_CHECKING:
    from zkelect.token import Token

__all__ = [
    "DomainTaken",
    "EnsembleWentBack",
    "FenceStateLost",
    "Fenced",
    "LineageMismatch",
    "Refused",
    "StoreBusy",
    "TokenConflict",
    "Unclaimed",
    "UnfitStore",
]


class Refused(ZkelectError):
    """A guarded store did not let the write pass; nothing was written.

    :ivar store: which store. :ivar domain: the fenced domain.
    :ivar token: ours. :ivar mark: the highest token the store has seen, or None.
    :ivar holder: the name of who claimed with it, empty when it is not known.
    :ivar detail: what else the store tells, in words.
    """

    advice = ""

    def __init__(
        self,
        *,
        store: str,
        domain: str,
        token: Token | None = None,
        mark: Token | None = None,
        holder: str = "",
        detail: str = "",
    ) -> None:
        self.store = store
        self.domain = domain
        self.token = token
        self.mark = mark
        self.holder = holder
        self.detail = detail
        whose = f" of {holder!r}" if holder else ""
        held = f"; the mark is {mark}{whose}" if mark is not None else ""
        ours = f" refused {token}" if token is not None else ""
        why = f": {detail}" if detail else ""
        super().__init__(f"{store} [{domain}]{ours}{held}{why}. {self.advice}".strip())


class Fenced(Refused):
    """A newer leader has claimed the domain: final for this term, never retried."""

    advice = "A newer leader has claimed this domain; stop, and campaign again"


class Unclaimed(Refused):
    """This leadership has not claimed the domain: claim before the first read or write."""

    advice = "Call claim(leadership) once per term, before the first read"


class FenceStateLost(Refused):
    """The store forgot a mark it had confirmed: a failover or restore swallowed it."""

    advice = (
        "The store was restored, failed over or emptied, so a higher mark may be lost, and data "
        "with it; check the data, then claim in a new term with initialize=True"
    )


class LineageMismatch(Refused):
    """The token comes from another ensemble, or from one that was wiped."""

    advice = (
        "Tokens of two lineages cannot be compared. If the old ensemble is gone for good, "
        "an operator runs adopt"
    )


class DomainTaken(Refused):
    """The domain belongs to another election: one domain is one election on one store."""

    advice = "Give each election a domain of its own"


class UnfitStore(Refused):
    """The store, as it is set up, cannot keep the promise; found by looking, at the claim."""

    advice = "Nothing was claimed or written; change the setup"


class TokenConflict(Refused):
    """Two holders with one token: the ensemble's history was changed under us."""

    advice = "One czxid cannot belong to two sessions; check for a restored or cloned ensemble"


class EnsembleWentBack(Refused):
    """The mark is from the ensemble's future: ZooKeeper was restored from a backup."""

    advice = (
        "The mark is above the ensemble's present zxid, so ZooKeeper was restored from a "
        "backup; an operator runs adopt to raise the generation"
    )


class StoreBusy(Refused):
    """Somebody else's open transaction holds the store; the claim gave up in time."""

    advice = "End the process that holds the store, or claim again"
