"""Nobody's fault: the world moved on. Stop the work, stand again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.errors.root import ZkelectError

if TYPE_CHECKING:
    from zkelect.token import Token

__all__ = [
    "LeadershipLost",
    "LeadershipSuspended",
    "Lost",
]


class Lost(ZkelectError):
    """Something we held is gone."""


class LeadershipLost(Lost):
    """This leadership is over; its work must stop now.

    :ivar token: the token of the term that ended.
    :ivar reason: one of :class:`zkelect.Reason`, as text.
    """

    def __init__(self, path: str, token: Token, reason: str) -> None:
        self.path = path
        self.token = token
        self.reason = reason
        super().__init__(f"{path}: leadership {token} is over ({reason}); stop its work")


class LeadershipSuspended(Lost):
    """The link is down, and this election was told to pause at once; it may come back."""

    def __init__(self, path: str, token: Token) -> None:
        self.path = path
        self.token = token
        super().__init__(
            f"{path}: leadership {token} is paused while the link to ZooKeeper is down; "
            "wait, or stop if wait_lost() says so"
        )
