"""Libraries with one mistake each, for the controls: patched in the processes of a control
only, never in zkelect. Each is a mistake that somebody has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from zkelect.core.lease import Lease
from zkelect.session.session import Session
from zkelect.session.watchdog import Watchdog
from zkelect.stores.fence import Gate, present
from zkelect.stores.mark import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BREAKS", "break_library"]


def _let_everything_pass() -> None:
    """The fence is off: each claim becomes the mark, and no write is refused."""

    def claim(self: Gate, mark: Mark | None, claimant: Any, **_: Any) -> Mark:
        return Mark(token=present(claimant))

    def guard(self: Gate, mark: Mark | None, claimant: Any, **_: Any) -> None:
        present(claimant)

    _replace(Gate, claim=claim, guard=guard)


def _lease_by_ping() -> None:
    """Whatever a server answers renews the lease: a ping, a read, an error."""
    replied = Session.replied

    def renew(self: Session, connection: Any, header: Any) -> None:
        replied(self, connection, header)
        with self.lock:
            self.lease.deadline = max(self.lease.deadline, self.now() + self.lease.timeout)

    def never(self: Watchdog, now: float) -> bool:
        return False

    _replace(Session, replied=renew)
    _replace(Watchdog, _silent=never, _cold=never)


def _lease_by_last_write() -> None:
    """An acknowledged write buys a full session timeout from the moment the answer came."""
    answer = Lease.answer

    def renew(self: Lease, at: float) -> None:
        answer(self, at)
        self.deadline = max(self.deadline, at + self.timeout)

    _replace(Lease, answer=renew)


def _nothing() -> None:
    """The mistake is the candidate's own: see ``chaos.rounds``."""


BREAKS: Final[Mapping[str, Callable[[], None]]] = {
    "": _nothing,
    "claim after read": _nothing,
    "fence off": _let_everything_pass,
    "lease by last acknowledged write": _lease_by_last_write,
    "lease by ping": _lease_by_ping,
}


def break_library(control: str) -> None:
    """Break the library of this process as the control says; empty: not at all."""
    BREAKS[control]()


def _replace(owner: type, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        if name not in vars(owner):
            raise AttributeError(f"{owner.__name__}.{name} is gone: the control breaks nothing")
        setattr(owner, name, method)
