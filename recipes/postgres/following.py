"""A server joins a primary: it follows, is rewound and follows, or is refused; it never merges.

First it is started alone, as a standby that follows nobody, so that its crash recovery tells
where its own WAL ends; then that is held against the primary's history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.postgres.agreement import same_bytes
from zkelect.recipes.postgres.asking import ask, locate
from zkelect.recipes.postgres.gate import CLOSED
from zkelect.recipes.postgres.intake import apply_received
from zkelect.recipes.postgres.lifecycle import bar, find_postmaster, kill, start, start_alone
from zkelect.recipes.postgres.naming import slot_of
from zkelect.recipes.postgres.rewinding import Rewinding
from zkelect.recipes.postgres.settings import apply, write_settings
from zkelect.recipes.postgres.state import read_state
from zkelect.recipes.postgres.timelines import Verdict, judge
from zkelect.recipes.resource import NeedsRebuild, NotNow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkelect.recipes.position import Position
    from zkelect.recipes.postgres.place import Place

__all__ = ["Following"]

_FIRST_STEP: Final = 5.0
_LONGEST_STEP: Final = 20.0
_DROP_SLOTS: Final = (
    "select count(pg_drop_replication_slot(slot_name)) from pg_replication_slots"
    " where slot_type = 'physical' and not active and slot_name like 'zkelect\\_%'"
)
_MAKE_SLOT: Final = (
    "select pg_create_physical_replication_slot(%s, true)"
    " where not exists (select from pg_replication_slots where slot_name = %s)"
)


class Following:
    """How one server follows another.

    :param name: of our member; the primary sees it as the application's.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._name = name
        self._rewinding = Rewinding(place)
        self._step = _FIRST_STEP

    def follow(self, address: str, deadline: float) -> None:
        """Make the server receive from the primary at this address.

        :raises NotNow: it does not yet; ask again. At first nothing is waited for longer than a
            few seconds, for the primary may be another one by then; a try that did not fit is
            given twice the time, so that slow servers join, too.
        :raises NeedsRebuild: its history is no part of the primary's, and cannot be made one.
        """
        until = now() + self._step
        try:
            self._join(address, min(deadline, until))
        except NotNow:
            if now() >= until:
                self._step = min(2 * self._step, _LONGEST_STEP)
            raise
        self._step = _FIRST_STEP

    def _join(self, address: str, deadline: float) -> None:
        source = self._place.remote(address)
        settings = self._settings(address)
        if not self._rewinding.begun:
            if self._is_attached(settings, deadline):
                self._drop_slots(deadline)
                return
            self._bring_up(settings, deadline)
            if self._judge(source, deadline) is Verdict.FOLLOW:
                self._attach(source, settings, deadline)
                return
        self._rewinding.advance(source, deadline)
        write_settings(self._place, settings)
        start(self._place, deadline)
        self._attach(source, settings, deadline)

    def _settings(self, address: str) -> Mapping[str, str]:
        place = self._place
        return {
            "primary_conninfo": place.remote(address, application_name=self._name),
            "primary_slot_name": slot_of(self._name) if place.slots else "",
            **CLOSED,
        }

    def _is_attached(self, settings: Mapping[str, str], deadline: float) -> bool:
        if find_postmaster(self._place) is None:
            return False
        state = read_state(self._place, deadline)
        return state.streaming and state.follows == settings["primary_conninfo"]

    def _bring_up(self, settings: Mapping[str, str], deadline: float) -> None:
        """Have it run as a standby; as one that follows nobody, if it can be without help."""
        place = self._place
        if find_postmaster(place) is not None and not read_state(place, deadline).standby:
            kill(place)
        if find_postmaster(place) is None:
            bar(place)
            # A copy is whole only with the WAL that its source wrote while it was made.
            if (place.data_directory / "backup_label").exists():
                write_settings(place, settings)
            start_alone(place, deadline)

    def _judge(self, source: str, deadline: float) -> Verdict:
        ours = self._locate(deadline)
        theirs = locate(source, deadline)
        verdict = judge(ours, theirs)
        if verdict is Verdict.FOLLOW:
            same = same_bytes(self._place, source, ours, theirs, deadline)
            if same is not True:
                verdict = Verdict.REBUILD
        if verdict is Verdict.REBUILD:
            raise NeedsRebuild(
                f"its WAL up to {ours} is no part of the primary's, {theirs}, or that one does not"
                " have it any more to compare; copy it anew: pg_basebackup"
            )
        return verdict

    def _locate(self, deadline: float) -> Position:
        """Return where our WAL ends; what lies in ``pg_wal`` unread is a part of it."""
        if read_state(self._place, deadline).follows:
            return locate(self._place.local, deadline)
        return apply_received(self._place, deadline)

    def _drop_slots(self, deadline: float) -> None:
        """Hold no WAL any more for those who followed us while we were the primary."""
        ask(self._place.local, _DROP_SLOTS, deadline)

    def _attach(self, source: str, settings: Mapping[str, str], deadline: float) -> None:
        place = self._place
        self._drop_slots(deadline)
        if place.slots:
            slot = slot_of(self._name)
            ask(source, _MAKE_SLOT, deadline, slot, slot)
        apply(place, settings, deadline)
        wait_until(lambda: read_state(place, deadline).streaming, deadline, "it streams")
