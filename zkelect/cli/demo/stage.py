"""Where the acts of the demo play: it hears, remembers and shows all that happens."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from zkelect.cli.demo.event import Event, Screen
from zkelect.cli.demo.processes import Candidates
from zkelect.cli.signals import Interruption
from zkelect.session.clock import SystemClock
from zkelect.token import Token

__all__ = ["DemoFailed", "Reign", "Stage"]

_WITHIN: Final = 30.0
"""Seconds: an outer bound, so that a run that cannot go on says so and ends."""

_LOOK_EVERY: Final = 0.1

_now: Final = SystemClock().boottime


class Server(Protocol):
    """What is looked at of a server."""

    @property
    def running(self) -> bool:
        """Whether its process exists."""

    address: str
    log_path: Path


class DemoFailed(Exception):
    """The run did not come to its end; the message says why, for people."""


@attrs.frozen(kw_only=True)
class Reign:
    """Who leads, as it was last told.

    :ivar begun: boot-clock instant. :ivar rows: how many it has written.
    """

    name: str
    token: Token
    begun: float
    rows: int = 0


class Stage:
    """The candidates, the servers, and what has happened so far.

    :param candidates: their processes. :param servers: if one ends, the demo ends.
    :param screen: is shown each event. :param interruption: looked at while it hears.
    :ivar events: everything that happened so far. :ivar reign: None while nobody leads.
    """

    def __init__(
        self,
        *,
        candidates: Candidates,
        servers: Collection[Server],
        screen: Screen,
        interruption: Interruption,
    ) -> None:
        self.candidates: Final = candidates
        self.servers: Final = servers
        self.events: Final[list[Event]] = []
        self.reign: Reign | None = None
        self._screen = screen
        self._interruption = interruption
        self._dismissed: set[str] = set()
        self._killed: set[str] = set()

    @property
    def present(self) -> set[str]:
        """The candidates that were neither killed nor dismissed."""
        return set(self.candidates) - self._dismissed - self._killed

    # --- telling --------------------------------------------------------------------------

    def tell(self, kind: str, name: str = "", *, at: float | None = None, **facts: Any) -> None:
        """Let something have happened, now or at an instant."""
        self.note(Event(kind=kind, at=_now() if at is None else at, name=name, facts=facts))

    def note(self, event: Event) -> None:
        """Remember an event and show it."""
        self.events.append(event)
        self._follow(event)
        self._screen.show(event)

    def dismiss(self, name: str) -> None:
        """Let a candidate leave for good, and wait until its process has ended."""
        self._dismissed.add(name)
        self.candidates[name].order("quit")
        self.wait(name, "ended")

    def kill(self, name: str) -> float:
        """Kill a candidate (SIGKILL); return the instant."""
        self._killed.add(name)
        return self.candidates[name].kill()

    # --- hearing --------------------------------------------------------------------------

    def wait(self, name: str, *kinds: str) -> Event:
        """Wait until a candidate tells one of these events.

        :raises DemoFailed: not in time, or it lost its leadership meanwhile.
        """
        deadline = _now() + _WITHIN
        while (event := self._hear(deadline)) is None or not (
            event.name == name and event.kind in kinds
        ):
            self._check_time(deadline, f"{name}: {' or '.join(kinds)}")
            self._check_kept(event, name)
        return event

    def wait_all(self, kind: str) -> None:
        """Wait until every candidate has told this event, now or earlier.

        :raises DemoFailed: not in time.
        """
        deadline = _now() + _WITHIN
        while {event.name for event in self.events if event.kind == kind} < set(self.candidates):
            self._check_time(deadline, f"all candidates: {kind}")
            self._hear(deadline)

    def wait_leader(self, *, other_than: str = "", rows: int = 0) -> Reign:
        """Wait until somebody leads, and has written so many rows.

        :raises DemoFailed: not in time.
        """
        deadline = _now() + _WITHIN
        while (reign := self.reign) is None or not (
            reign.name != other_than and reign.rows >= rows
        ):
            self._check_time(deadline, "a leader that writes")
            self._hear(deadline)
        return reign

    def listen(self, until: float) -> None:
        """Hear what is told until an instant."""
        while _now() < until:
            self._hear(until)

    def drain(self) -> None:
        """Hear what has been told already; for the end, when no process runs any more."""
        while (event := self.candidates.hear(0)) is not None:
            self.note(event)

    # --- within ---------------------------------------------------------------------------

    def _hear(self, until: float) -> Event | None:
        left = max(min(until - _now(), _LOOK_EVERY), 0.0)
        event = self.candidates.hear(left)
        self._interruption.check()
        self._check_servers()
        if event is not None:
            self.note(event)
            self._check_ended(event)
        return event

    def _follow(self, event: Event) -> None:
        """Keep who leads up to date."""
        reign = self.reign
        if event.kind == "elected":
            self.reign = Reign(name=event.name, token=event.token, begun=event.at)
        elif reign is None or event.facts.get("token") != str(reign.token):
            return
        elif event.kind in ("resigned", "lost", "killed"):
            self.reign = None
        elif event.kind == "committed":
            self.reign = attrs.evolve(reign, rows=reign.rows + 1)

    def _check_servers(self) -> None:
        for server in self.servers:
            if not server.running:
                raise DemoFailed(
                    f"ZooKeeper server {server.address} has ended; its log is {server.log_path}"
                )

    def _check_ended(self, event: Event) -> None:
        if event.kind != "ended" or event.name in self._killed:
            return
        if event.name not in self._dismissed or event["status"] != 0:
            raise DemoFailed(
                f"candidate {event.name} has ended by itself (exit status {event['status']}); "
                f"its log is {self.candidates[event.name].log_path}"
            )

    def _check_kept(self, event: Event | None, name: str) -> None:
        if event is not None and (event.name, event.kind) == (name, "lost"):
            raise DemoFailed(
                f"{name} lost its leadership by itself ({event['reason']}): this machine may "
                "be too busy for a session timeout this short"
            )

    def _check_time(self, deadline: float, what: str) -> None:
        if _now() >= deadline:
            raise DemoFailed(f"waited {_WITHIN:g} s in vain for {what}")
