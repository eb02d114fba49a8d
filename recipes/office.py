"""The right to be writable: a leadership of the primary's election, with its dead-man."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import zkelect
from zkelect.recipes.clock import now
from zkelect.recipes.resource import NotNow, Resource

__all__ = ["Office"]

_log: Final = logging.getLogger("zkelect.recipes")
_RETRY: Final = 0.2
_MOMENT: Final = 0.2
_PATIENCE: Final = 1.0
"""Seconds to stand before looking whether we still should."""


class Office:
    """Stands for the right, holds it, and ends it only when the server takes no writes.

    While it is held the resource's dead-man is armed again and again, with an instant before the
    end of the lease. When the lease is not renewed and comes to its end, the server is demoted by a
    thread of this office, whatever the agent is doing; the candidate stays in the queue until that
    has worked, so that nobody is granted the right over a server that still takes writes, as long
    as our session lives; and when that ends, the lease has ended before.

    :param path: of the primary's election. :param margin: seconds before the end of the lease at
        which the server is demoted; it has to be done by then.
    """

    def __init__(
        self, session: zkelect.Session, path: str, name: str, resource: Resource, *, margin: float
    ) -> None:
        self._session = session
        self._path = path
        self._name = name
        self._resource = resource
        self._margin = margin
        self._lock = threading.Lock()
        self._acting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._leave = threading.Event()
        self._elected = threading.Event()
        self._leadership: zkelect.Leadership | None = None
        self._open_under: zkelect.Leadership | None = None

    @property
    def leadership(self) -> zkelect.Leadership | None:
        """Our leadership, None when we have none or its end is near."""
        held = self._leadership
        return held if held is not None and held.remaining() > self._margin else None

    @property
    def token(self) -> str:
        """Its token as text, empty without one."""
        held = self.leadership
        return "" if held is None else str(held.token)

    @property
    def serving(self) -> zkelect.Leadership | None:
        """The leadership under which the server lets writers in, None: it does not, or may not.

        Takes no lock, and asks nobody; None before anything is done about closing the server.
        """
        held = self.leadership
        return held if held is self._open_under else None

    def opened(self, leadership: zkelect.Leadership) -> None:
        """Tell that the server lets writers in now."""
        self._open_under = leadership

    def closing(self) -> None:
        """Tell that it is about to let nobody in."""
        self._open_under = None

    @contextmanager
    def using(self) -> Iterator[zkelect.Leadership]:
        """Act as the one who has the right; it is not given up before the block is left.

        :raises NotNow: we do not have it, or not for long enough.
        """
        with self._acting:
            held = self.leadership
            if held is None:
                raise NotNow("we have not been elected yet, or the lease ends")
            yield held

    def deadline(self, leadership: zkelect.Leadership) -> float:
        """Return by when an act of the primary must have ended, whatever becomes of the lease."""
        return leadership.deadline - self._margin

    @property
    def busy(self) -> bool:
        """Whether we stand, lead, or are not done with leaving."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def stand(self) -> None:
        """Stand for it, and wait a moment: often nobody else does. Harmless when we do."""
        with self._lock:
            if not self.busy:
                self._leave.clear()
                self._elected.clear()
                self._thread = threading.Thread(target=self._run, name=f"zkelect {self._path}")
                self._thread.start()
        self._elected.wait(_MOMENT)

    def leave(self) -> None:
        """End it: demote what takes writes still, then resign; waits until that is done."""
        with self._lock:
            self._leave.set()
            if self._thread is not None:
                self._thread.join()
                self._thread = None

    # --- its thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        election = zkelect.Election(self._session, self._path, name=self._name)
        while not self._leave.is_set() and not self._session.ended:
            try:
                with election.campaign(_PATIENCE) as leadership:
                    self._hold(leadership)
                return
            except zkelect.NotElected:
                continue
            except zkelect.ZkelectError as error:
                _log.warning("%s: %s cannot stand: %s", self._path, self._name, error)
                self._leave.wait(_PATIENCE)

    def _hold(self, leadership: zkelect.Leadership) -> None:
        _log.info("%s: %s has the right to be writable", self._path, self._name)
        self._arm(leadership)
        self._leadership = leadership
        self._elected.set()
        try:
            while leadership.remaining() > self._margin and not self._leave.wait(self._pause):
                self._arm(leadership)
        finally:
            self.closing()
            self._tell_end(leadership)
            if not self._acting.acquire(blocking=False):
                self._demote(leadership)
                self._acting.acquire()  # what was under way may have undone it
            try:
                self._leadership = None
                self._demote(leadership)
            finally:
                self._acting.release()

    @property
    def _pause(self) -> float:
        return min(self._margin / 4, _RETRY)

    def _arm(self, leadership: zkelect.Leadership) -> None:
        self._resource.arm(leadership.deadline - self._margin / 2)

    def _tell_end(self, leadership: zkelect.Leadership) -> None:
        why = leadership.reason or ("asked to" if self._leave.is_set() else "the lease ends")
        _log.info("%s: %s gives up the right to be writable: %s", self._path, self._name, why)

    def _demote(self, leadership: zkelect.Leadership) -> None:
        """Demote until it has worked: the candidate stays that long."""
        while True:
            try:
                self._resource.demote(
                    planned=False, deadline=max(leadership.deadline, now() + self._margin)
                )
            except Exception:  # noqa: BLE001  # whatever it is, the server may take writes still
                _log.exception("%s: %s is not demoted yet", self._path, self._name)
                time.sleep(_RETRY)
            else:
                self._resource.disarm()
                return
