"""The mark: what a guarded store keeps for each domain, beside the data and as durable."""

from __future__ import annotations

import json
from typing import Final

import attrs

from zkelect.errors import InvalidArgument
from zkelect.token import Token

__all__ = ["LONGEST", "Mark"]

LONGEST: Final = 255
"""So many characters of an election's path, a holder's name and a server's identity are kept."""

_FORM: Final = "the JSON text of a mark: an object of token, election, holder and origin"


def _kept(text: str) -> str:
    return text[:LONGEST]


@attrs.frozen(kw_only=True)
class Mark:
    """The highest token that a store has seen, and what is known of its claim.

    Only the token orders. The rest is there to be compared for equality, or to be told.

    :param token: what later writes are compared with.
    :param election: path of the election whose leader claimed; empty when the token came over
        the wire, alone. A domain belongs to the first election that claims it.
    :param holder: that leader's name, for messages.
    :param origin: which server the claim was made on, in the store's own words; empty for a
        store that cannot be failed over behind our back.
    """

    token: Token
    election: str = attrs.field(default="", converter=_kept)
    holder: str = attrs.field(default="", converter=_kept)
    origin: str = attrs.field(default="", converter=_kept)

    @classmethod
    def parse(cls, text: str | bytes) -> Mark:
        """Read the JSON form; inverse of ``str``.

        :raises InvalidArgument: it is not that form; nothing is guessed.
        """
        try:
            fields = json.loads(text)
            words = {name: fields[name] for name in ("election", "holder", "origin")}
            if not all(isinstance(word, str) for word in words.values()):
                raise InvalidArgument("mark", text, _FORM)
            return cls(token=Token.parse(fields["token"]), **words)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument("mark", text, _FORM) from error

    def __str__(self) -> str:
        """Return the JSON form; the token is text in it, since a float has 53 bits."""
        fields = attrs.asdict(self, recurse=False)
        return json.dumps({**fields, "token": str(self.token)}, separators=(",", ":"))
