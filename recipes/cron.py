"""Exactly-once cron: jobs at the times of crontab lines, each slot begun once, on one host.

    cron = Cron(session, zone="Europe/Berlin")

    @cron.job("30 2 * * *")
    def rotate(run: Run) -> None:
        with fence.transaction(run.leadership) as connection:
            ...

    election.run_forever(cron.lead, stop)          # on every host

Whoever leads runs the jobs. Before a job is begun for a slot, the slot is written to its znode, in
one commit with a check of the leader's candidate; only slots behind the written one are ever due.
So a slot is begun by one host only, once, whatever the clocks of the hosts say: each commit comes
before all that any later leader reads, and a clock that is set back makes no slot due again.

Promises:

* A slot is begun at most once, unless ``interrupted="again"`` asks for more.
* While somebody leads at some time within ``grace`` behind the slot, it is begun; an older one is
  missed, and a warning tells. One job is never run twice at the same time by this leader; what is
  due meanwhile waits.
* The run is named by its slot, in UTC: the same name on all hosts, on both nights of DST.

Does not promise that what was begun has ended: if the process dies in a run, the next leader finds
that it has not ended, and says so, or begins it again when told to. Nor that the effects of a run
are exclusive, when its leader is stopped for longer than its lease: guard them by a store, with
``run.leadership``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeVar

import attrs

import zkelect
from zkelect.recipes.marks import Mark, Marks
from zkelect.recipes.schedule import Due, Schedule

__all__ = ["Cron", "Job", "Run"]

_Result = TypeVar("_Result")
_log: Final = logging.getLogger("zkelect.recipes")
_LOOK: Final = 0.5
"""Seconds between two looks at the wall clock: it may be set while we wait."""


@attrs.frozen(kw_only=True)
class Run:
    """One run of a job.

    :ivar job: its name. :ivar slot: when it was due, in UTC; the name of this run.
    :ivar leadership: of whoever runs it: to guard writes with, and to notice its loss by.
    :ivar again: it was begun before, and not known to have ended.
    """

    job: str
    slot: datetime
    leadership: zkelect.Leadership
    again: bool = False


@attrs.frozen(kw_only=True)
class Job:
    """What to run, and when.

    :ivar name: that of its znode. :ivar grace: how late a slot may be begun.
    :ivar interrupted: what becomes of a run that has not ended with its leader.
    """

    name: str
    call: Callable[[Run], object]
    schedule: Schedule
    grace: timedelta
    interrupted: Literal["skip", "again"]


class Cron:
    """Jobs, and the body of a leader that runs them.

    :param session: of the election whose leader runs them.
    :param zone: of crontab lines that name none of their own.
    :param grace: seconds; a slot that nobody could begin for so long is missed.
    :param now: the wall clock: a time with a zone.
    """

    def __init__(
        self,
        session: zkelect.Session,
        *,
        zone: str = "UTC",
        grace: float = 60.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._session = session
        self._zone = zone
        self._grace = grace
        self._now = now
        self._jobs: dict[str, Job] = {}

    def job(
        self,
        line: str,
        *,
        name: str | None = None,
        zone: str | None = None,
        grace: float | None = None,
        interrupted: Literal["skip", "again"] = "skip",
    ) -> Callable[[Callable[[Run], _Result]], Callable[[Run], _Result]]:
        """Add the decorated function, which takes a :class:`Run`, as a job.

        What it raises is logged, and its next slot comes as ever.

        :param line: of a crontab, five fields, or six with the seconds first.
        :param name: the function's when None; the same on all hosts: it names the znode.
        :param interrupted: ``"again"``: a run that has not ended with its leader is begun again by
            the next one, so it may be done twice; ``"skip"``: it is not.
        :raises zkelect.InvalidArgument: one of these is not what it should be.
        """
        schedule = Schedule(line, self._zone if zone is None else zone)
        late = timedelta(seconds=self._grace if grace is None else grace)

        def add(call: Callable[[Run], _Result]) -> Callable[[Run], _Result]:
            called = call.__name__ if name is None else name
            self._add(
                Job(name=called, call=call, schedule=schedule, grace=late, interrupted=interrupted)
            )
            return call

        return add

    def lead(self, leadership: zkelect.Leadership) -> None:
        """Run the jobs that are due, each on a thread of its own, until leadership is lost.

        Returns when all runs have: until then nobody else can lead.

        :raises zkelect.LeadershipLost, zkelect.Fenced: it is over, found when a slot was written.
        :raises zkelect.PermissionDenied, zkelect.InvalidArgument: a job's znode cannot be used.
        """
        ended = threading.Event()
        marks = Marks(self._session, leadership)
        with ThreadPoolExecutor(max(len(self._jobs), 1), thread_name_prefix="cron") as threads:
            workers = [
                _Worker(job, leadership, marks, self._now, ended) for job in self._jobs.values()
            ]
            futures = [threads.submit(worker.work) for worker in workers]
            try:
                wait(futures)
            finally:
                ended.set()  # also when it is Ctrl-C that ends the wait
        for future in futures:
            future.result()

    def _add(self, job: Job) -> None:
        if job.name in self._jobs or not job.name or "/" in job.name:
            raise zkelect.InvalidArgument("name", job.name, "the name of a znode, once in a Cron")
        self._jobs[job.name] = job


class _Worker:
    """Runs one job in one term."""

    def __init__(
        self,
        job: Job,
        leadership: zkelect.Leadership,
        marks: Marks,
        now: Callable[[], datetime],
        ended: threading.Event,
    ) -> None:
        self._job = job
        self._leadership = leadership
        self._marks = marks
        self._now = now
        self._ended = ended

    def work(self) -> None:
        """Begin each slot when it is due, until the term, or this body, is over."""
        try:
            self._work()
        except zkelect.PermissionDenied:
            raise
        except zkelect.Unreachable as failure:  # somebody else may be able to
            _log.error("%s: this host stops leading: %s", self._job.name, failure)
        finally:
            self._ended.set()

    def _work(self) -> None:
        last = self._start()
        while not self._is_over():
            due = self._job.schedule.due(last, self._now(), self._job.grace)
            last = self._begin_all(due, last)
            self._leadership.progress()
            self._leadership.wait_lost(timeout=self._rest(due))

    def _start(self) -> datetime:
        """Return the slot to go on from; a new job begins now, whoever leads at its first slot."""
        now, mark = self._now(), self._marks.read(self._job.name)
        if mark is None:
            self._marks.begin(self._job.name, Mark(slot=now, ended=True))
            return now
        if mark.slot > now + self._job.grace:
            _log.warning(
                "%s: its last slot, %s, is ahead of this host's clock; until then nothing is due",
                self._job.name,
                mark.slot.isoformat(),
            )
        if not mark.ended:
            self._mend(mark)
        return mark.slot

    def _is_over(self) -> bool:
        return self._ended.is_set() or self._leadership.reason is not None

    def _begin_all(self, due: Due, last: datetime) -> datetime:
        """Begin what is due; return the last slot that was."""
        if due.missed:
            _log.warning(
                "%s: slots after %s were missed: nobody could begin them within %s",
                self._job.name,
                last.isoformat(),
                self._job.grace,
            )
        for slot in due.slots:
            if self._is_over():
                break
            try:
                self._run(slot)
            except zkelect.LeadershipSuspended:
                break  # nothing was begun; it is due still when the link is back
            last = slot
        return last

    def _rest(self, due: Due) -> float:
        """Seconds to wait; a clock that is set meanwhile is noticed soon."""
        left = (due.next - self._now()).total_seconds()
        return min(max(left, 0.0), _LOOK)

    def _run(self, slot: datetime, *, again: bool = False) -> None:
        """Write the slot down, then begin it: whoever leads next finds it written."""
        self._marks.begin(self._job.name, Mark(slot=slot))
        run = Run(job=self._job.name, slot=slot, leadership=self._leadership, again=again)
        try:
            self._job.call(run)
        except Exception:  # noqa: BLE001 - the user's; logged, and the next slot comes as ever
            _log.exception("%s: the run of %s failed", self._job.name, slot.isoformat())
        self._marks.end(self._job.name, slot)

    def _mend(self, mark: Mark) -> None:
        """Tell of a run that was begun and is not known to have ended; begin it again if wanted."""
        again = self._job.interrupted == "again"
        _log.warning(
            "%s: the run of %s was begun, and is not known to have ended; %s",
            self._job.name,
            mark.slot.isoformat(),
            "it is begun again" if again else "it is not begun again",
        )
        if again:
            self._run(mark.slot, again=True)
