"""The acts of the demo: an election, a handover, a frozen leader, a killed one."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import zkelect
from zkelect.cli.demo.stage import DemoFailed, Reign, Stage
from zkelect.cli.demo.watchers import watchers
from zkelect.session.clock import SystemClock

__all__ = ["Play"]

_ROWS_EACH: Final = 3
_LOOK_EVERY: Final = 0.05
_ANSWER_WITHIN: Final = 1.0
_WITHIN: Final = 30.0

_now: Final = SystemClock().boottime


class Play:
    """The four acts, in order.

    :param stage: where they play. :param election: seen from outside.
    :param rest: seconds to let pass after each step, for those who read along.
    """

    def __init__(self, stage: Stage, election: zkelect.Election, *, rest: float) -> None:
        self._stage = stage
        self._election = election
        self._rest = rest

    def perform(self) -> None:
        """Play all of it.

        :raises DemoFailed: something did not happen in time, or something ended by itself.
        :raises ZkelectError: the servers could not be asked.
        """
        self._elect()
        self._hand_over()
        self._freeze()
        self._kill()
        self._dismiss()

    # --- the acts -------------------------------------------------------------------------

    def _elect(self) -> None:
        stage = self._stage
        self._begin(1, "election")
        stage.wait_all("connected")
        for name, process in stage.candidates.items():
            process.order("stand")
            stage.wait(name, "stood")
        self._settle()

    def _hand_over(self) -> None:
        stage = self._stage
        self._begin(2, "planned handover")
        leader = stage.wait_leader().name
        self._list_watchers()
        stage.candidates[leader].order("resign")
        resigned = stage.wait(leader, "resigned")
        self._await_successor("handed_over", leader, since=resigned.at)
        self._settle()

    def _freeze(self) -> None:
        """Freeze between two transactions: inside one it would hold SQLite's lock for ever."""
        stage = self._stage
        self._begin(3, "frozen leader")
        old = stage.wait_leader()
        process = stage.candidates[old.name]
        process.order("hold")
        deadline = stage.wait(old.name, "held").deadline
        frozen = process.freeze()
        stage.tell("frozen", old.name, at=frozen, token=str(old.token), pid=process.pid)
        stage.listen(deadline)
        stage.tell("lapsed", old.name, at=deadline, token=str(old.token))
        self._await_successor("failed_over", old.name, since=frozen)
        stage.wait_leader(rows=_ROWS_EACH)
        self._pause()
        self._wake(old)
        self._settle()

    def _wake(self, old: Reign) -> None:
        """It wakes with the order to write already in its hand."""
        stage = self._stage
        process = stage.candidates[old.name]
        process.order("write")
        stage.tell("woken", old.name, at=process.wake(), pid=process.pid)
        stage.wait(old.name, "check_failed")
        if stage.wait(old.name, "refused", "accepted").kind == "accepted":
            raise DemoFailed(f"the store has accepted a stale write of {old.name}")

    def _kill(self) -> None:
        stage = self._stage
        self._begin(4, "killed leader")
        old = stage.wait_leader()
        process = stage.candidates[old.name]
        killed = stage.kill(old.name)
        stage.tell("killed", old.name, at=killed, token=str(old.token), pid=process.pid)
        self._await_successor("failed_over", old.name, since=killed)
        self._settle()

    def _dismiss(self) -> None:
        """Let the leader go last, so that nobody is elected on the way out."""
        self._pause()
        leader = self._stage.wait_leader().name
        for name in sorted(self._stage.present, key=lambda name: name == leader):
            self._stage.dismiss(name)

    # --- steps ----------------------------------------------------------------------------

    def _begin(self, act: int, title: str) -> None:
        self._stage.tell("act_began", act=act, title=title)
        self._pause()

    def _pause(self) -> None:
        self._stage.listen(_now() + self._rest)

    def _await_successor(self, kind: str, former: str, *, since: float) -> None:
        successor = self._stage.wait_leader(other_than=former)
        took = round(successor.begun - since, 4)
        self._stage.tell(kind, successor.name, at=successor.begun, former=former, took=took)

    def _settle(self) -> None:
        """Wait until the leader writes, and all who are there stand in the queue."""
        self._stage.wait_leader(rows=_ROWS_EACH)
        queue = [candidate.name for candidate in self._await_queue()]
        self._stage.tell("queued", queue=queue)

    def _await_queue(self) -> tuple[zkelect.Candidate, ...]:
        """Ask until all who are there stand in the queue, the leader first."""
        deadline = _now() + _WITHIN
        while _now() < deadline:
            leader = self._stage.wait_leader().name
            queue = self._queue()
            names = [candidate.name for candidate in queue]
            if set(names) == self._stage.present and names[0] == leader:
                return queue
            self._stage.listen(_now() + _LOOK_EVERY)
        raise DemoFailed(f"waited {_WITHIN:g} s in vain for all to stand in the queue")

    def _queue(self) -> tuple[zkelect.Candidate, ...]:
        """Ask ZooKeeper; if it does not answer, the stage soon knows why."""
        with suppress(zkelect.Unreachable):
            return self._election.candidates(timeout=_ANSWER_WITHIN)
        return ()

    def _list_watchers(self) -> None:
        """Ask who watches the leader's znode, or the queue as a whole."""
        leader = self._await_queue()[0]
        addresses = [server.address for server in self._stage.servers]
        path = self._election.path
        found = watchers(addresses, path, f"{path}/{leader.node}")
        others = max(0, len(found) - 2)  # its own session, and its heir's
        self._stage.tell("watchers_listed", leader.name, watchers=len(found), others=others)
