"""The rule of every guarded store, and what it asks of a leadership: pure, no I/O.

A store keeps one *mark* for each domain: the highest token it has seen, in the same
transaction and with the same durability as the data. A new leader *claims*: it raises the
mark to its own token, before its first read. Every later write is *guarded*: it passes only
while the mark is its own token. So once a successor has claimed, nothing of an older leader
passes, whatever its clock says (M. Kleppmann, "How to do distributed locking", 2016).

The *floor* is the highest mark that this process has seen the store confirm. A mark behind
it means that the store forgot: a restore, or a fail-over to an older replica.

The table; the first row that fits decides:

    the mark is …                            a claim             a guarded write
    of another lineage                       LineageMismatch     LineageMismatch
    in the token's place, of another holder  TokenConflict       TokenConflict
    behind the floor, the token above it     becomes the token   FenceStateLost
    behind the floor                         FenceStateLost      FenceStateLost
    missing                                  becomes the token   Unclaimed
    lower than the token                     becomes the token   Unclaimed
    the token itself                         stays: idempotent   passes
    higher, and from the ensemble's future   EnsembleWentBack    Fenced
    higher                                   Fenced              Fenced

*From the ensemble's future*: above (generation, zxid) of the ensemble at the bearer's latest
probe. Neither number ever falls in one history, so a mark above them is a relic of a history
that a backup of ZooKeeper has undone, and a new term would run into the same wall: Fenced
would make its leader stand again for ever. A new leader meets that wall at its claim. A
guarded write comes after a claim that passed, so what is higher there came later: Fenced.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import attrs

from zkelect.errors import (
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LineageMismatch,
    Refused,
    TokenConflict,
    Unclaimed,
)
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Bearer",
    "Claimant",
    "Gate",
    "View",
    "bearing",
    "guard",
    "patience",
    "present",
    "raise_mark",
    "valid_domain",
    "valid_timeout",
]

_DOMAIN_LIMIT: Final = 255
_TIMEOUT_LIMIT: Final = 86_400.0


# --- who comes to the store ---------------------------------------------------------------


class Bearer(Protocol):
    """What a store asks of a leadership. All of it is local: no I/O, no waiting."""

    @property
    def token(self) -> Token:
        """The token of this term; the same one until its end and after."""

    @property
    def zxid(self) -> int:
        """The zxid in the ensemble's latest answer to a probe of this session."""

    def check(self) -> Token:
        """Return the token, or raise what tells that the leadership is Lost."""

    def remaining(self) -> float:
        """Seconds of lease left; none left once the leadership is over."""

    def end(self, reason: str) -> None:
        """End the leadership; a second call, or one from another thread, changes nothing."""


Claimant: TypeAlias = Bearer | Token
"""A leadership, or a bare token that came over the wire: then nobody can be asked or told."""


def present(claimant: Claimant) -> Token:
    """Return the claimant's token, if it may still be shown: a lease is checked, locally.

    :raises Lost: the leadership is over, or suspended; the store was not touched.
    :raises InvalidArgument: neither a leadership nor a token.
    """
    if isinstance(claimant, Token):
        return claimant
    if not hasattr(claimant, "check"):
        raise InvalidArgument("claimant", claimant, "a Leadership or a Token (see Token.parse)")
    return claimant.check()


def patience(claimant: Claimant, timeout: float) -> float:
    """Return how many seconds to wait for the store: ``timeout`` or the lease left, if shorter."""
    if isinstance(claimant, Token):
        return timeout
    return max(0.0, min(timeout, claimant.remaining()))


@contextmanager
def bearing(claimant: Claimant) -> Iterator[Token]:
    """Lend the claimant's token to the body; if that is Fenced, the leadership ends with it."""
    token = present(claimant)
    try:
        yield token
    except Fenced:
        if not isinstance(claimant, Token):
            claimant.end("fenced")
        raise


# --- the rule -----------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class View:
    """One look at a store: its mark now, and the floor, which it had confirmed before."""

    store: str
    domain: str
    mark: Token | None
    floor: Token | None = None

    @property
    def forgot(self) -> bool:
        """Whether the mark is behind the floor."""
        return self.floor is not None and _behind(self.mark, self.floor)

    def refuse(self, kind: type[Refused], token: Token, detail: str = "") -> Refused:
        """Make the refusal of this token by this store."""
        return kind(
            store=self.store, domain=self.domain, token=token, mark=self.mark, detail=detail
        )


def raise_mark(view: View, token: Token, *, zxid: int | None = None) -> Token:
    """Judge a claim and return the new mark; equal to the old one if the claim was made before.

    :param zxid: the ensemble's present zxid, if the claimant can tell.
    :raises Refused: as the table says; the mark stays.
    """
    _compare(view, token)
    if view.forgot and not _above(token, view.floor):
        raise _forgotten(view, token)
    if view.mark is None or view.mark <= token:
        return token
    if zxid is not None and _order(view.mark) > (token.generation, zxid):
        raise view.refuse(EnsembleWentBack, token, f"the ensemble is at zxid {zxid:#018x}")
    raise view.refuse(Fenced, token)


def guard(view: View, token: Token) -> None:
    """Judge a write: it passes only while the mark is its own token.

    :raises Refused: as the table says; nothing may be written.
    """
    _compare(view, token)
    if view.forgot:
        raise _forgotten(view, token)
    if view.mark is None or view.mark < token:
        raise view.refuse(Unclaimed, token)
    if view.mark > token:
        raise view.refuse(Fenced, token)


def _compare(view: View, token: Token) -> None:
    mark = view.mark
    if mark is None or mark == token:
        return
    if mark.lineage != token.lineage:
        raise view.refuse(LineageMismatch, token)
    if _order(mark) == _order(token):
        raise view.refuse(TokenConflict, token)


def _forgotten(view: View, token: Token) -> Refused:
    found = "no mark is left" if view.mark is None else "the mark fell"
    return view.refuse(FenceStateLost, token, f"{found}, it had confirmed {view.floor}")


def _behind(mark: Token | None, floor: Token) -> bool:
    if mark is None or mark.lineage != floor.lineage:
        return True
    return mark != floor and _order(mark) <= _order(floor)


def _above(token: Token, floor: Token | None) -> bool:
    return floor is None or (token != floor and not _behind(token, floor))


def _order(token: Token) -> tuple[int, int]:
    return token.generation, token.czxid


# --- one store's gate ---------------------------------------------------------------------


class Gate:
    """Applies the rule for one domain of one store, and remembers the floor.

    The store reads its mark, asks the gate, and writes, all in one transaction.

    :param store: how refusals name the store.
    :param domain: one election on one store, as :func:`valid_domain` has it.
    :param lock: held around the floor; a store that threads share gives a real one.
    """

    def __init__(
        self, *, store: str, domain: str, lock: AbstractContextManager[object] | None = None
    ) -> None:
        self.store, self.domain = store, valid_domain(domain)
        self._lock = nullcontext() if lock is None else lock
        self._floor: Token | None = None

    @property
    def floor(self) -> Token | None:
        """The highest mark that this process has seen the store confirm."""
        return self._floor

    def claim(self, mark: Token | None, claimant: Claimant) -> Token:
        """Judge a claim and return the mark to write; once that is durable, :meth:`confirm` it."""
        with bearing(claimant) as token:
            zxid = None if isinstance(claimant, Token) else claimant.zxid
            return raise_mark(self._look(mark), token, zxid=zxid)

    def guard(self, mark: Token | None, claimant: Claimant) -> None:
        """Judge a write of this claimant under this mark."""
        with bearing(claimant) as token:
            guard(self._look(mark), token)

    def confirm(self, mark: Token) -> None:
        """Remember that the store has made this mark durable."""
        with self._lock:
            if _above(mark, self._floor):
                self._floor = mark

    def _look(self, mark: Token | None) -> View:
        with self._lock:
            view = View(store=self.store, domain=self.domain, mark=mark, floor=self._floor)
            if mark is not None and not view.forgot:
                self._floor = mark
            return view


def valid_domain(domain: str) -> str:
    """Return the domain if it is one: 1 to 255 printable characters, no space at either end.

    The domain is part of the mark's row, so that another election's token can never pass.

    :raises InvalidArgument: it is not; nothing was opened or created.
    """
    form = f"1 to {_DOMAIN_LIMIT} printable characters, no space at either end"
    if not isinstance(domain, str) or not 1 <= len(domain) <= _DOMAIN_LIMIT:
        raise InvalidArgument("domain", domain, form)
    if not domain.isprintable() or domain != domain.strip():
        raise InvalidArgument("domain", domain, form)
    return domain


def valid_timeout(timeout: float) -> float:
    """Return the timeout if it is one: more than 0 and at most 86400 seconds.

    :raises InvalidArgument: it is not.
    """
    if not isinstance(timeout, int | float) or not 0 < timeout <= _TIMEOUT_LIMIT:
        raise InvalidArgument("timeout", timeout, "seconds, more than 0 and at most 86400")
    return float(timeout)
