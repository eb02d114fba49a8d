"""A refusal on the wire: RFC 9457 problem details, written by the service, read by the leader."""

from __future__ import annotations

import json
from typing import Final, Self

import attrs

from zkelect.errors import (
    DomainTaken,
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LineageMismatch,
    Refused,
    RequestFailed,
    StoreBusy,
    TokenConflict,
    Unclaimed,
    UnfitStore,
    Unreachable,
    ZkelectError,
)
from zkelect.stores.http_header import HEADER
from zkelect.token import Token

__all__ = ["MEDIA_TYPE", "STATUSES", "Problem"]

MEDIA_TYPE: Final = "application/problem+json"

_PREFIX: Final = "urn:zkelect:problem:"
_MISSING, _MALFORMED, _UNREACHABLE = "token-missing", "token-malformed", "store-unreachable"
_KINDS: Final[dict[str, tuple[type[Refused], int, str]]] = {
    "fenced": (Fenced, 412, "A newer leader has claimed this domain"),
    "unclaimed": (Unclaimed, 412, "This token has not claimed the domain"),
    "fence-state-lost": (FenceStateLost, 412, "The store has lost a mark that it had confirmed"),
    "lineage-mismatch": (LineageMismatch, 412, "The token comes from another ensemble"),
    "domain-taken": (DomainTaken, 412, "The domain belongs to another election"),
    "unfit-store": (UnfitStore, 412, "The store, as it is set up, cannot keep the promise"),
    "token-conflict": (TokenConflict, 412, "Two holders have one token"),
    "ensemble-went-back": (EnsembleWentBack, 412, "The mark is from the ensemble's future"),
    "store-busy": (StoreBusy, 503, "Somebody else's open transaction holds the store"),
    "refused": (Refused, 412, "The store refused the token"),
}

STATUSES: Final = {400, 412, 428, 503}
"""The status codes that a problem of ours may come with."""


@attrs.frozen(kw_only=True)
class Problem:
    """Why a request was refused before its handler ran.

    :ivar kind: the last part of the type's URN. :ivar status: the HTTP status code.
    :ivar title: the kind in words. :ivar detail: this case in words.
    :ivar token: the token that came, as text; empty if none did. :ivar mark: likewise.
    """

    kind: str
    status: int
    title: str
    detail: str
    store: str = ""
    domain: str = ""
    token: str = ""
    mark: str = ""
    holder: str = ""

    @classmethod
    def of(cls, error: ZkelectError) -> Self:
        """Describe what kept a request from its handler.

        Of a store that failed only the fact is told: its own words, which may hold addresses
        and names, are for the service's log.
        """
        if isinstance(error, Refused):
            return cls._of_refusal(error)
        if isinstance(error, Unreachable):
            detail = "The store of the marks could not be asked; the request was not begun"
            return cls(kind=_UNREACHABLE, status=503, title="The mark is unknown", detail=detail)
        if isinstance(error, InvalidArgument) and error.value is None:
            detail = f"This request needs a {HEADER} header: the leader's token"
            return cls(kind=_MISSING, status=428, title=f"No {HEADER} header", detail=detail)
        title = f"Not one well-formed {HEADER} header"
        return cls(kind=_MALFORMED, status=400, title=title, detail=str(error))

    @classmethod
    def _of_refusal(cls, refusal: Refused) -> Self:
        name = next(name for name, (kind, _, _) in _KINDS.items() if isinstance(refusal, kind))
        _, status, title = _KINDS[name]
        return cls(
            kind=name,
            status=status,
            title=title,
            detail=refusal.detail,
            store=refusal.store,
            domain=refusal.domain,
            token=_text(refusal.token),
            mark=_text(refusal.mark),
            holder=refusal.holder,
        )

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of the response, without its length."""
        headers = [("Content-Type", MEDIA_TYPE), ("Cache-Control", "no-store")]
        return [*headers, ("Retry-After", "1")] if self.status == 503 else headers

    def encode(self) -> bytes:
        """Return the body of the response."""
        fields = attrs.asdict(self)
        return json.dumps({"type": _PREFIX + fields.pop("kind"), **fields}).encode()

    @classmethod
    def parse(cls, body: bytes) -> Self | None:
        """Read the body of a response; None if it is not one of ours."""
        try:
            fields = json.loads(body)
            kind = str(fields["type"])
            words = {name: str(fields.get(name, "")) for name in _WORDS}
            if not kind.startswith(_PREFIX):
                return None
            return cls(kind=kind.removeprefix(_PREFIX), status=int(fields["status"]), **words)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def error(self, *, service: str, request: str, token: Token) -> ZkelectError | None:
        """Return what the leader that sent this token is to be told.

        :param service: where the answer came from. :param request: what was asked there.
        :returns: None if this answer is about another token, or says what we do not know.
        """
        if self.kind == _UNREACHABLE:
            return RequestFailed(service, request, self.detail)
        store = f"{service} ({self.store})" if self.store else service
        if self.kind in (_MISSING, _MALFORMED):
            detail = f"our {HEADER} header did not arrive as it was sent: {self.title}"
            return UnfitStore(store=store, domain="unknown", token=token, detail=detail)
        if self.kind not in _KINDS or self.token not in ("", str(token)):
            return None
        return self._refusal(store, token)

    def _refusal(self, store: str, token: Token) -> Refused | None:
        try:
            mark = Token.parse(self.mark) if self.mark else None
        except InvalidArgument:
            return None
        kind, _, _ = _KINDS[self.kind]
        words = {"domain": self.domain, "holder": self.holder, "detail": self.detail}
        return kind(store=store, token=token, mark=mark, **words)


_WORDS: Final = ("title", "detail", "store", "domain", "token", "mark", "holder")


def _text(token: Token | None) -> str:
    return "" if token is None else str(token)
