"""GTIDs of MariaDB: which domain, which server, and the how-manieth ("Global Transaction ID")."""

from __future__ import annotations

from typing import Self

import attrs

from zkelect import InvalidArgument

__all__ = ["Gtid", "last", "parse_set"]


@attrs.frozen
class Gtid:
    """One transaction: ``domain-server-sequence``.

    :ivar sequence: rises by one with each transaction of a domain, whoever writes it.
    """

    domain: int
    server: int
    sequence: int

    def __str__(self) -> str:
        """Return it as MariaDB writes it."""
        return f"{self.domain}-{self.server}-{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one.

        :raises InvalidArgument: it is none.
        """
        parts = text.split("-")
        if len(parts) != 3 or not all(part.isascii() and part.isdecimal() for part in parts):
            raise InvalidArgument("gtid", text, "domain-server-sequence")
        return cls(*map(int, parts))


def parse_set(text: str) -> tuple[Gtid, ...]:
    """Read what ``gtid_binlog_pos`` and the like are: GTIDs with commas, or nothing.

    :raises InvalidArgument: it is something else.
    """
    return tuple(Gtid.parse(each.strip()) for each in text.split(",") if each.strip())


def last(domain: int, *positions: tuple[Gtid, ...]) -> Gtid | None:
    """Return the one of this domain that goes furthest, None when there is none."""
    own = [each for position in positions for each in position if each.domain == domain]
    return max(own, key=lambda each: each.sequence, default=None)
