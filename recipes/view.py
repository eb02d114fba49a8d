"""What a coordinator sees at one instant, and what it may do about it."""

from __future__ import annotations

import attrs

from zkelect.recipes.choice import SyncSet
from zkelect.recipes.member import Heartbeat
from zkelect.recipes.page import Page, Request

__all__ = ["Decision", "Resign", "View", "Wait", "Write"]


@attrs.frozen(kw_only=True)
class View:
    """All that a decision depends on, besides the page and the policy.

    :ivar token: of this coordinator's term, as text. :ivar coordinator: its member's name.
    :ivar beats: of the members whose agents are there.
    :ivar holder: who has the right to be writable, or is first in line for it; None: nobody.
    :ivar sync: what the primary has recorded last.
    :ivar paused: who has paused promotions, when and why; empty: nobody.
    :ivar failing: seconds for which this coordinator has seen the primary missing or failing.
    :ivar elapsed: seconds since this coordinator first saw the page's serial.
    :ivar request: the switchover asked for last.
    """

    token: str
    coordinator: str
    beats: tuple[Heartbeat, ...] = ()
    holder: str | None = None
    sync: SyncSet | None = None
    paused: str = ""
    failing: float = 0.0
    elapsed: float = 0.0
    request: Request | None = None

    def beat(self, name: str | None) -> Heartbeat | None:
        """Return the heartbeat of that member, None when it is not there."""
        return next((beat for beat in self.beats if beat.name == name), None)

    def others(self, name: str | None) -> tuple[Heartbeat, ...]:
        """Return the heartbeats of all the others."""
        return tuple(beat for beat in self.beats if beat.name != name)


@attrs.frozen
class Write:
    """Write this page, if this is still the coordinator and the old page unchanged."""

    page: Page


@attrs.frozen
class Wait:
    """Do nothing now; why is for people."""

    reasons: tuple[str, ...] = ()


@attrs.frozen
class Resign:
    """Give the office up: what is next must be done under a higher token."""

    reason: str


Decision = Write | Wait | Resign
