"""Where one candidate stands at one moment, as its own process knows it."""

from __future__ import annotations

import attrs

from zkelect.core.state import Phase
from zkelect.session.candidacy import Candidacy
from zkelect.token import Token

__all__ = ["Status", "read_status"]


@attrs.frozen(kw_only=True)
class Status:
    """Where one candidate stands, for pages and probes; nothing to guard a write with.

    :ivar path: of the election. :ivar name: of the candidate.
    :ivar phase: where it stood.
    :ivar serving: whether it led, and its lease was valid: at that moment nobody else could.
        Not while it prepares, and not while ``on_suspended`` pauses it.
    :ivar remaining: seconds of lease left then; 0.0 while it has no valid one.
    :ivar token: its fencing token, None without a valid lease.
    :ivar ahead: how many were before it in the queue when it last heard, None when not waiting.
    :ivar connected: whether the link to ZooKeeper was up.
    :ivar usable: False when it can never lead again: the session is closed, refused by the
        servers, or the parent's of this forked process.
    """

    path: str
    name: str
    phase: Phase
    serving: bool
    remaining: float
    token: Token | None
    ahead: int | None
    connected: bool
    usable: bool


def read_status(candidacy: Candidacy) -> Status:
    """Look at a candidate; takes no lock and asks nobody.

    The leadership is read before the phase: of a term that begins between the two nothing is
    said yet, and of one that ends the lease says so.
    """
    session, leadership = candidacy.session, candidacy.leadership
    phase = candidacy.phase
    remaining = 0.0 if leadership is None or session.foreign else leadership.remaining()
    valid = leadership if remaining > 0 else None
    return Status(
        path=candidacy.path,
        name=candidacy.name,
        phase=phase,
        serving=valid is not None and phase is Phase.LEADING,
        remaining=remaining,
        token=None if valid is None else valid.token,
        ahead=candidacy.ahead,
        connected=session.connected and not session.foreign,
        usable=not (session.ended or session.foreign),
    )
