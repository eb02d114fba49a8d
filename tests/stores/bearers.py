"""A leadership without an election: the test decides its lease and its end."""

from __future__ import annotations

from zkelect.errors import LeadershipLost
from zkelect.token import Token

__all__ = ["LINEAGE", "FakeBearer", "make_bearer", "make_token"]

LINEAGE = "1234567890abcdef"
PATH = "/elections/d"


def make_token(
    czxid: int, *, generation: int = 0, lineage: str = LINEAGE, session_id: int = 7
) -> Token:
    return Token.issue(lineage=lineage, generation=generation, czxid=czxid, session_id=session_id)


class FakeBearer:
    """A leadership whose lease and end the test decides."""

    def __init__(
        self,
        token: Token,
        *,
        lease: float = 60.0,
        zxid: int = 1 << 40,
        path: str = PATH,
        name: str = "host-a",
    ) -> None:
        self.token, self.lease, self.zxid = token, lease, zxid
        self.path, self.name = path, name
        self.ends: list[str] = []

    def check(self) -> Token:
        if self.ends or self.lease <= 0:
            raise LeadershipLost(self.path, self.token, (self.ends or ["expired"])[0])
        return self.token

    def remaining(self) -> float:
        return self.lease

    def end(self, reason: str) -> None:
        self.ends.append(reason)


def make_bearer(
    czxid: int,
    *,
    generation: int = 0,
    lineage: str = LINEAGE,
    session_id: int = 7,
    lease: float = 60.0,
    zxid: int = 1 << 40,
    path: str = PATH,
    name: str = "host-a",
) -> FakeBearer:
    """Make the leadership of the candidate that was created at this czxid."""
    token = make_token(czxid, generation=generation, lineage=lineage, session_id=session_id)
    return FakeBearer(token, lease=lease, zxid=zxid, path=path, name=name)
