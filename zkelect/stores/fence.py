"""The rule of every guarded store, and what it asks of a leadership: pure, no I/O.

A store keeps one *mark* for each domain: the highest token it has seen, in the same
transaction and with the same durability as the data. A new leader *claims*: it raises the
mark to its own token, before its first read. Every later write is *guarded*: it passes only
while the mark is its own token. So once a successor has claimed, nothing of an older leader
passes, whatever its clock says (M. Kleppmann, "How to do distributed locking", 2016).

The *floor* is the highest mark that this process has seen the store confirm. A mark behind
it means that the store forgot: a restore, or a fail-over to an older replica. Where a server
has an identity (its *origin*), it is kept with the mark: on another server the mark may be
an old one, whatever it says, and a claim there is refused unless the claimant says, by
``initialize=True``, that the data have been looked at. A *volatile* store can come back empty,
so that a missing mark is such a case too.

The table; the first row that fits decides:

    the mark is …                            a claim             a guarded write
    of another election                      DomainTaken         DomainTaken
    of another lineage                       LineageMismatch     LineageMismatch
    in the token's place, of another holder  TokenConflict       TokenConflict
    lost, and the claim does not initialize  FenceStateLost      FenceStateLost
    of another server, but the token itself  FenceStateLost      FenceStateLost
    behind the floor, the token above it     becomes the token   FenceStateLost
    behind the floor                         FenceStateLost      FenceStateLost
    missing                                  becomes the token   Unclaimed
    lower than the token                     becomes the token   Unclaimed
    the token itself                         stays: idempotent   passes
    higher, and from the ensemble's future   EnsembleWentBack    Fenced
    higher                                   Fenced              Fenced

*Lost* is a mark that was made on another server, or the missing mark of a volatile store.
A token that survived on another server passes nowhere, since a higher one may have been lost
there: its leader stands again, for a token above all of them.

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
    DomainTaken,
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LineageMismatch,
    Refused,
    TokenConflict,
    Unclaimed,
)
from zkelect.stores.mark import LONGEST, Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Bearer",
    "Claim",
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

_TIMEOUT_LIMIT: Final = 86_400.0


# --- who comes to the store ---------------------------------------------------------------


class Bearer(Protocol):
    """What a store asks of a leadership. All of it is local: no I/O, no waiting."""

    @property
    def token(self) -> Token:
        """The token of this term; the same one until its end and after."""

    @property
    def path(self) -> str:
        """The election's path."""

    @property
    def name(self) -> str:
        """The leader's name in it."""

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
    """One look at a store: its mark now, and the floor, which it had confirmed before.

    :ivar origin: the identity of the server that is looked at; empty when it has none.
    :ivar volatile: whether the store can come back empty.
    """

    store: str
    domain: str
    mark: Mark | None
    floor: Token | None = None
    origin: str = ""
    volatile: bool = False

    @property
    def token(self) -> Token | None:
        """The mark's token."""
        return None if self.mark is None else self.mark.token

    @property
    def forgot(self) -> bool:
        """Whether the mark is behind the floor."""
        return self.floor is not None and _behind(self.token, self.floor)

    @property
    def moved(self) -> bool:
        """Whether the mark was made on another server."""
        return self.mark is not None and self.mark.origin != self.origin

    @property
    def lost(self) -> bool:
        """Whether a higher mark may have been lost, for all that this look can tell."""
        return self.moved or (self.volatile and self.mark is None)

    def refuse(self, kind: type[Refused], token: Token, detail: str = "") -> Refused:
        """Make the refusal of this token by this store."""
        return kind(
            store=self.store,
            domain=self.domain,
            token=token,
            mark=self.token,
            holder="" if self.mark is None else self.mark.holder,
            detail=detail,
        )


@attrs.frozen(kw_only=True)
class Claim:
    """What a claimant shows and says.

    :ivar election: path of its election; empty for a bare token. :ivar holder: its name.
    :ivar zxid: the ensemble's present zxid, if the claimant can tell.
    :ivar initialize: the data have been looked at: begin anew on a store that lost its mark.
    """

    token: Token
    election: str = ""
    holder: str = ""
    zxid: int | None = None
    initialize: bool = False


def raise_mark(view: View, claim: Claim) -> Mark:
    """Judge a claim and return the new mark; equal to the old one if the claim was made before.

    :raises Refused: as the table says; the mark stays.
    """
    token = claim.token
    _compare(view, token, claim.election)
    if view.lost and not claim.initialize:
        raise _moved(view, token)
    if view.moved and view.token == token:
        raise _moved(view, token)
    if view.forgot and not _above(token, view.floor):
        raise _forgotten(view, token)
    if view.token == token and view.mark is not None:
        return view.mark
    if view.token is not None and view.token > token:
        raise _surpassed(view, claim)
    return Mark(token=token, election=_bound(view, claim), holder=claim.holder, origin=view.origin)


def guard(view: View, token: Token, *, election: str = "") -> None:
    """Judge a write: it passes only while the mark is its own token.

    :raises Refused: as the table says; nothing may be written.
    """
    _compare(view, token, election)
    if view.moved:
        raise _moved(view, token)
    if view.forgot:
        raise _forgotten(view, token)
    if view.lost:
        raise _moved(view, token)
    if view.token is None or view.token < token:
        raise view.refuse(Unclaimed, token)
    if view.token > token:
        raise view.refuse(Fenced, token)


def _compare(view: View, token: Token, election: str) -> None:
    mark = view.mark
    if mark is None:
        return
    if election and mark.election and mark.election != election[:LONGEST]:
        raise view.refuse(DomainTaken, token, f"it belongs to {mark.election}, not to {election}")
    if mark.token == token:
        return
    if mark.token.lineage != token.lineage:
        raise view.refuse(LineageMismatch, token)
    if _order(mark.token) == _order(token):
        raise view.refuse(TokenConflict, token)


def _bound(view: View, claim: Claim) -> str:
    """Return the election of the new mark: a bare token does not unbind its domain."""
    return claim.election or ("" if view.mark is None else view.mark.election)


def _surpassed(view: View, claim: Claim) -> Refused:
    mark, zxid = view.token, claim.zxid
    if mark is not None and zxid is not None and _order(mark) > (claim.token.generation, zxid):
        detail = f"the ensemble is at zxid {zxid:#018x}"
        return view.refuse(EnsembleWentBack, claim.token, detail)
    return view.refuse(Fenced, claim.token)


def _moved(view: View, token: Token) -> Refused:
    if view.mark is None:
        return view.refuse(FenceStateLost, token, "there is no mark, and this store can lose one")
    made, now = view.mark.origin or "a server unknown", view.origin or "one unknown"
    return view.refuse(FenceStateLost, token, f"the mark was made on {made}, this is {now}")


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
    :param volatile: whether the store can come back empty: then a missing mark is a lost one.
    :param lock: held around the floor; a store that threads share gives a real one.
    """

    def __init__(
        self,
        *,
        store: str,
        domain: str,
        volatile: bool = False,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.store, self.domain, self.volatile = store, valid_domain(domain), volatile
        self._lock = nullcontext() if lock is None else lock
        self._floor: Token | None = None

    @property
    def floor(self) -> Token | None:
        """The highest token that this process has seen the store confirm."""
        return self._floor

    def claim(
        self,
        mark: Mark | None,
        claimant: Claimant,
        *,
        origin: str = "",
        initialize: bool = False,
    ) -> Mark:
        """Judge a claim and return the mark to write; once that is durable, :meth:`confirm` it.

        :param mark: what the store has now. :param origin: the identity of this server.
        :param initialize: begin anew where a mark may have been lost.
        """
        with bearing(claimant) as token:
            claim = _claim_of(claimant, token, initialize=initialize)
            return raise_mark(self._look(mark, origin), claim)

    def guard(self, mark: Mark | None, claimant: Claimant, *, origin: str = "") -> None:
        """Judge a write of this claimant under this mark, on this server."""
        with bearing(claimant) as token:
            election = "" if isinstance(claimant, Token) else claimant.path
            guard(self._look(mark, origin), token, election=election)

    def confirm(self, mark: Mark) -> None:
        """Remember that the store has made this mark durable."""
        with self._lock:
            if _above(mark.token, self._floor):
                self._floor = mark.token

    def refuse(self, kind: type[Refused], claimant: Claimant, detail: str) -> Refused:
        """Make a refusal for a reason that only the store knows: busy, or not fit."""
        token = claimant if isinstance(claimant, Token) else claimant.token
        return kind(store=self.store, domain=self.domain, token=token, detail=detail)

    def _look(self, mark: Mark | None, origin: str) -> View:
        with self._lock:
            view = View(
                store=self.store,
                domain=self.domain,
                mark=mark,
                floor=self._floor,
                origin=origin,
                volatile=self.volatile,
            )
            if mark is not None and not view.forgot and not view.moved:
                self._floor = mark.token
            return view


def _claim_of(claimant: Claimant, token: Token, *, initialize: bool) -> Claim:
    if isinstance(claimant, Token):
        return Claim(token=token, initialize=initialize)
    return Claim(
        token=token,
        election=claimant.path,
        holder=claimant.name,
        zxid=claimant.zxid,
        initialize=initialize,
    )


def valid_domain(domain: str) -> str:
    """Return the domain if it is one: 1 to 255 printable characters, no space at either end.

    The domain is part of the mark's row, so that another election's token can never pass.

    :raises InvalidArgument: it is not; nothing was opened or created.
    """
    form = f"1 to {LONGEST} printable characters, no space at either end"
    if not isinstance(domain, str) or not 1 <= len(domain) <= LONGEST:
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
