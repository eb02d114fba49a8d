"""A switchover that is waited for: how far it is, and what a signal does to it."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

import zkelect
from zkelect.cli.failures import tell
from zkelect.cli.signals import Interrupted, Interruption
from zkelect.core.znodes import KAZOO
from zkelect.session.roll import read_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zkelect.core.znodes import Entry

__all__ = ["Change", "progress"]

_INTERVAL: Final = 0.5
"""Seconds between two looks at how far it is."""

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

        The waiting is done on another thread, so that a signal can withdraw it in order.

        :param within: seconds that the leader has for it.
        :raises zkelect.ZkelectError: as :meth:`zkelect.Election.switchover` does.
        :raises Interrupted: a signal came; what has become of it is told.
        """
        stop = threading.Event()

        def switch() -> zkelect.Candidate:
            return self.election.switchover(
                self.heir.node, timeout=within, why=why, by=by, stop=stop
            )

        with ThreadPoolExecutor(1) as thread:
            result = thread.submit(switch)
            try:
                self._accompany(result)
                return result.result()
            except Interrupted:
                stop.set()
                tell(_end_of(result))
                raise
            finally:
                stop.set()

    def _accompany(self, result: Future[zkelect.Candidate]) -> None:
        said = ""
        with Interruption() as interruption, interruption.deferred():
            while not wait([result], _INTERVAL).done:
                interruption.check()
                now = self._progress()
                if now not in ("", said):
                    tell(now)
                    said = now

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


def _end_of(result: Future[zkelect.Candidate]) -> str:
    try:
        return f"too late to withdraw it: {result.result().name} leads"
    except zkelect.ZkelectError as error:
        return str(error)
