"""One pgbouncer, kept as the page wants it: held while the primary is changed, then led on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.clock import now
from zkelect.recipes.notes import encode
from zkelect.recipes.pgbouncer.aim import Aim, aim_of
from zkelect.recipes.pgbouncer.console import Console, Offered, refused
from zkelect.recipes.pgbouncer.database import Database
from zkelect.recipes.pgbouncer.listing import Listing
from zkelect.recipes.pools import Pool
from zkelect.recipes.resource import NotNow, Unfit

__all__ = ["PgBouncer"]

_log: Final = logging.getLogger("zkelect.recipes")
_BRISK: Final = 0.02


class PgBouncer:
    """Switches one pgbouncer along with the primary of a cluster, on pgbouncer's host.

    It decides nothing and holds no lease: an old primary refuses writes by itself, so that a pool
    that is late, or has lost ZooKeeper, costs errors and never a row.

    :param name: unique among the pools of the cluster.
    :param console: libpq's string for the admin console.
    :param file: that pgbouncer's configuration includes; made when missing.
    :param within: seconds for open transactions to end, in a planned switch, and for connections
        to the old primary, after a change.
    :param interval: seconds between two looks at pgbouncer, which may have been restarted.
    """

    def __init__(
        self,
        name: str,
        console: str,
        file: Path,
        databases: Collection[Database],
        *,
        within: float = 5.0,
        interval: float = 0.5,
    ) -> None:
        if not databases:
            raise zkelect.InvalidArgument("databases", databases, "one or more")
        self._name = name
        self._console = Console(console)
        self._listing = Listing(file, databases)
        self._databases = {each.name: each for each in databases}
        self._within = within
        self._interval = interval
        self._ready = 0
        self._holding: tuple[int, float] | None = None
        self._outdated_until: float | None = None
        self._fit = False
        self._told = ""

    def run(self, session: zkelect.Session, path: str, stop: threading.Event) -> None:
        """Follow the cluster's page until ``stop`` is set; then clients are not held any more.

        :raises Unfit: pgbouncer does not read the file, or it cannot be written.
        :raises zkelect.NameTaken: another pool uses this name.
        """
        board = Board(session, path)
        with (
            board.register_pool(self._name, Pool()) as registration,
            board.pages() as pages,
        ):
            try:
                while not stop.is_set():
                    self._turn(board, pages)
                    registration.update(encode(Pool(ready=self._ready)))
                    self._rest(board, pages)
            finally:
                self._let_go()

    # --- one turn ------------------------------------------------------------------------------

    def _turn(self, board: Board, pages: zkelect.Following) -> None:
        try:
            aim = aim_of(board.page_of(pages.znode))
        except (zkelect.Unreachable, zkelect.InvalidArgument) as error:
            self._tell(f"the page of {board.path} says nothing to go by: {error}")
            return
        if aim is not None:
            self._approach(aim)

    def _approach(self, aim: Aim) -> None:
        """Do what is lacking, in an order in which it may end anywhere."""
        try:
            if aim.held:
                self._hold(aim)
            else:
                self._lead_on(aim)
        except NotNow as error:
            self._miss(aim, error)

    def _rest(self, board: Board, pages: zkelect.Following) -> None:
        """Until the page changes, or it is time to look again; soon while clients wait."""
        waiting = self._holding is not None and self._holding[0] != self._ready
        try:
            pages.wait(_BRISK if waiting else self._interval)
        except zkelect.Unreachable as error:
            _log.info("%s: the page cannot be read: %s", board.path, error)

    # --- while the primary is changed -------------------------------------------------------------

    def _hold(self, aim: Aim) -> None:
        """Say in the file that we do, pause what is not, and tell when nobody is served."""
        if self._holding is None or self._holding[0] != aim.serial:
            self._holding = aim.serial, now() + self._within
        self._listing.write(aim.address, held=True)
        found = self._ours()
        for name, offered in found.items():
            if not offered.paused:
                _log.info("%s: clients of %s wait: the primary is changed", self._name, name)
                self._console.pause(self._databases[name])
        found = self._ours()
        idle = all(each.paused and each.connections == 0 for each in found.values())
        if idle or self._overdue:
            self._ready = aim.serial

    def _miss(self, aim: Aim, error: NotNow) -> None:
        """Try again; it may be away, and then nobody waits for it longer than ``within``."""
        told = f"pgbouncer's console gives no answer, or refuses: {error}"
        if refused(error) and not self._fit:
            raise Unfit(f"{told}; its user must be in admin_users") from error
        self._tell(told)
        if aim.held and self._overdue:
            self._ready = aim.serial

    @property
    def _overdue(self) -> bool:
        """Whether clients had the time they are given to end what they had begun."""
        return self._holding is not None and now() >= self._holding[1]

    # --- when there is a primary ------------------------------------------------------------------

    def _lead_on(self, aim: Aim) -> None:
        """Lead to the primary, and let go on whom we held; others have their own reasons."""
        self._holding = None
        held = self._listing.held
        changed = self._listing.write(aim.address, held=held)
        if changed or not self._fit or self._strays(aim):
            self._console.reload()
            self._outdated_until = now() + self._within
        if strays := self._strays(aim):
            self._refuse(aim, strays)
            return
        self._fit, self._told = True, ""
        if held:
            self._resume()
            self._listing.write(aim.address, held=False)
            _log.info("%s: clients go on, at %s", self._name, aim.address)
        self._end_outdated()

    def _resume(self) -> None:
        for name, offered in self._ours().items():
            if offered.paused:
                self._console.resume(self._databases[name])

    def _strays(self, aim: Aim) -> tuple[str, ...]:
        """Return the databases that do not lead to the primary."""
        found = self._console.databases()
        return tuple(
            name
            for name in self._databases
            if name not in found or found[name].address != aim.address
        )

    def _refuse(self, aim: Aim, strays: tuple[str, ...]) -> None:
        """Before it ever worked, end; later, hold those who are held, and try again."""
        told = (
            f"pgbouncer does not lead {', '.join(strays)} to {aim.address}: have its configuration "
            f"say %include {self._listing.file}, name them nowhere else, and look at its log"
        )
        if not self._fit:
            raise Unfit(told)
        self._tell(told)

    def _end_outdated(self) -> None:
        """End connections of which nobody says that their server is gone: they fill the pool."""
        if self._outdated_until is None:
            return
        outdated = self._console.outdated(frozenset(self._databases))
        if outdated and now() < self._outdated_until:
            return
        self._outdated_until = None
        if outdated:
            _log.warning("%s: %d connections to the old primary are killed", self._name, outdated)
            for database in self._databases.values():
                self._console.kill(database)
                self._console.resume(database)

    # --- within -----------------------------------------------------------------------------------

    def _ours(self) -> dict[str, Offered]:
        found = self._console.databases()
        return {name: found[name] for name in self._databases if name in found}

    def _let_go(self) -> None:
        """Hold nobody back longer than we live; whoever then meets no primary is told so."""
        if not self._listing.held:
            return
        try:
            self._resume()
        except NotNow as error:
            self._tell(f"clients may be held still, type RESUME at pgbouncer's console: {error}")

    def _tell(self, text: str) -> None:
        """Log it once, as long as it stays the same."""
        if text != self._told:
            self._told = text
            _log.warning("%s: %s", self._name, text)
