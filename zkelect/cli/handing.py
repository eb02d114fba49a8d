"""A switchover: between whom, and how far it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

import zkelect
from zkelect.cli.accompanying import accompany
from zkelect.core.znodes import KAZOO
from zkelect.session.roll import read_entries

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from zkelect.core.znodes import Entry

__all__ = ["Change", "progress"]

_ANSWER: Final = 1.0
"""Seconds that such a look may take."""


@attrs.frozen(kw_only=True)
class Change:
    """Who leads, and who shall."""

    election: zkelect.Election
    session: zkelect.Session
    leader: zkelect.Candidate
    heir: zkelect.Candidate

    @classmethod
    def of(
        cls,
        session: zkelect.Session,
        *,
        path: str,
        choose: Callable[[Sequence[zkelect.Candidate]], zkelect.Candidate],
        timeout: float,
    ) -> Change:
        """Look who stands.

        :param choose: picks the heir from all who stand, in order; the first leads.
        :raises zkelect.NobodyLeads: there is nobody who could hand over.
        :raises zkelect.InvalidArgument: nobody has ever stood for such an election.
        """
        election = zkelect.Election(session, path)
        roll, leader = election.candidates(timeout), election.leader(timeout)
        if leader is None:
            election.paused(timeout)  # of no such election there is no record, either
            raise zkelect.NobodyLeads(election.path)
        return cls(election=election, session=session, leader=leader, heir=choose(roll))

    def bring_about(self, *, within: float, why: str, by: str | None) -> zkelect.Candidate:
        """Ask for it, say at each change how far it is, and return who leads then.

        :param within: seconds that the leader has for it.
        :raises zkelect.ZkelectError: as :meth:`zkelect.Election.switchover` does.
        :raises Interrupted: a signal came; what has become of it is told.
        """

        def switch(stop: threading.Event) -> zkelect.Candidate:
            return self.election.switchover(
                self.heir.node, timeout=within, why=why, by=by, stop=stop
            )

        return accompany(switch, self._progress, lambda leader: f"{leader.name} leads")

    def _progress(self) -> str:
        with suppress(zkelect.ZkelectError):
            entries = read_entries(self.session, self.election.path, KAZOO, _ANSWER)
            return progress(entries, self.leader, self.heir)
        return "ZooKeeper does not answer"


def progress(entries: Sequence[Entry], leader: zkelect.Candidate, heir: zkelect.Candidate) -> str:
    """Say how far it is, by who stands; empty when there is nothing to say."""
    nodes = [entry.node for entry in entries]
    if heir.node not in nodes:
        return ""
    ahead = nodes.index(heir.node)
    if not ahead:
        return f"{leader.name} has left; {heir.name} is first, and prepares to lead"
    if nodes[0] != leader.node:
        return f"{leader.name} has left, and {heir.name} is not first"
    if ahead == 1:
        return f"{heir.name} is next; {leader.name} ends its work"
    return f"{ahead - 1} still to step back between {leader.name} and {heir.name}"
