"""What an operator does to an election: each a single act, from any process, by hand."""

from __future__ import annotations

import threading
from typing import Final

from zkelect.core.acts import Act
from zkelect.core.pause import Pause
from zkelect.core.record import Term
from zkelect.core.znodes import Dialect
from zkelect.session.acts import read_history
from zkelect.session.adoption import adopt
from zkelect.session.evicting import Evicted, Evictor
from zkelect.session.pausing import pause, read_pause, resume
from zkelect.session.roll import Candidate
from zkelect.session.session import Session
from zkelect.session.switching import Petition
from zkelect.token import Token

__all__ = ["Operations"]


class Operations:
    """The part of :class:`zkelect.Election` that needs no candidate to stand.

    :param path: of the election, in its one right spelling.
    """

    def __init__(self, session: Session, path: str, dialect: Dialect) -> None:
        self._where: Final = (session, path, dialect)

    def adopt(
        self, *marks: Token, why: str = "", by: str | None = None, timeout: float = 10.0
    ) -> int:
        """Put the tokens of all later leaders above these marks, of stores that refuse them.

        For an operator, after ZooKeeper was wiped, replaced or restored from a backup: stop
        the candidates, look at the data, adopt once, start them. :func:`zkelect.stores.adopt`
        reads the marks of the stores. The election's record gets the lineage of the marks
        and the next generation; no store is written.

        :param marks: tokens that the stores keep as marks; all of one lineage.
        :param why: for people, in :meth:`history`.
        :param by: who adopts; user and host of this process when None.
        :param timeout: seconds to wait for an answer, each time.
        :returns: the new generation.
        :raises LeaderPresent: somebody leads.
        :raises NothingToAdopt: the tokens are above the marks already.
        :raises LineageMismatch: the marks are of several lineages.
        :raises ConnectFailed: no answer came.
        """
        return adopt(*self._where, marks, why=why, by=by, timeout=timeout)

    def pause(
        self, why: str = "", *, by: str | None = None, timeout: float = 10.0
    ) -> Candidate | None:
        """Let nobody new be elected until :meth:`resume`; who leads, stays.

        The pause is written into the election's record, so it outlives this process, and
        holds for candidates that come later, too. To repeat one's own pause changes nothing.

        :param why: for people: shown in logs, in :meth:`paused`, in :meth:`history` and by whoever
            waits in vain.
        :param by: who pauses; user and host of this process when None.
        :param timeout: seconds to wait for an answer, each time.
        :returns: who leads now that it is in force; None: nobody does, or one who was elected
            just before has not written so yet: :meth:`leader` tells.
        :raises ElectionPaused: it is paused already, by somebody else.
        :raises ForeignCandidate: a candidate of another library stands, which would not heed it.
        :raises InvalidArgument: nobody has ever stood for this election.
        :raises ConnectFailed: no answer came; look with :meth:`paused`.
        """
        session, path, dialect = self._where
        return pause(session, path, dialect, why, by, timeout)

    def resume(
        self, why: str = "", *, by: str | None = None, timeout: float = 10.0
    ) -> Pause | None:
        """Let leaders be elected again, whoever paused the election.

        :param why: for people, in :meth:`history`.
        :param by: who resumes it; user and host of this process when None.
        :param timeout: seconds to wait for an answer, each time.
        :returns: the pause that is over, None: there was none.
        :raises InvalidArgument: nobody has ever stood for this election.
        :raises ConnectFailed: no answer came; look with :meth:`paused`.
        """
        session, path, _ = self._where
        return resume(session, path, why, by, timeout)

    def paused(self, timeout: float = 10.0) -> Pause | None:
        """Read whether the election is paused, and by whom; None: it is not.

        :param timeout: seconds to wait for an answer.
        :raises InvalidArgument: nobody has ever stood for this election.
        :raises ConnectFailed: no answer came.
        """
        session, path, _ = self._where
        return read_pause(session, path, timeout)

    def history(self, timeout: float = 10.0) -> tuple[Term | Act, ...]:
        """Read the terms that have ended, and what operators did, oldest first.

        The last hundred of each are kept, fewer when names or reasons are very long. A term
        stands where its end was written, by its leader or by the next one, so the present
        leader's is not in it. What was asked for is written at once: of a switchover that came to
        nothing the history has only the act.

        :param timeout: seconds to wait for an answer, each time.
        :raises InvalidArgument: nobody has ever stood for this election.
        :raises ConnectFailed: no answer came.
        """
        session, path, _ = self._where
        return read_history(session, path, timeout)

    def switchover(
        self,
        to: str,
        *,
        timeout: float = 30.0,
        why: str = "",
        by: str | None = None,
        stop: threading.Event | None = None,
    ) -> Candidate:
        """Let another candidate lead, and wait until it does.

        The present leader drives it: those between it and the target step back behind the
        target, and when the target is right behind the leader, that one resigns, with the
        reason ``switched-over``. So tokens rise, as ever. When it does not come to that within
        the timeout, the leader goes on leading. If the leader dies meanwhile, whoever is first
        leads. ``<path>.zkelect/switchover`` keeps who asked, why, and how it ended, and
        :meth:`history` who asked, and why.

        :param to: the name of who shall lead, or its znode; of several with that name the first.
        :param timeout: seconds the leader has for it, from when it hears of it. This call
            takes at most one session timeout more, and a second to withdraw.
        :param why: for people; it is logged, and kept on the page.
        :param by: who asks; user and host of this process when None.
        :param stop: when set, the switchover is withdrawn. Ctrl-C does the same.
        :returns: the new leader; at once if it leads already.
        :raises NotStanding: nobody of that name stands. The error lists who does.
        :raises ForeignCandidate: a candidate of another library stands; it cannot step back.
        :raises ElectionPaused: nobody new may lead.
        :raises SwitchoverInProgress: the leader is busy with another one.
        :raises SwitchoverFailed: it was withdrawn, or somebody else leads; the reason tells.
        :raises NobodyLeads: there is no leader that could hand over.
        :raises ConnectFailed: no answer came.
        """
        petition = Petition(*self._where, to, timeout=timeout, why=why, by=by, stop=stop)
        return petition.bring_about()

    def evict(
        self,
        who: str,
        *,
        why: str = "",
        by: str | None = None,
        timeout: float = 10.0,
        longest_lease: float | None = None,
        foreign: bool = False,
    ) -> Evicted:
        """Remove a candidate from the queue, without two leading meanwhile.

        One that waits is deleted at once; alive, it stands again, behind all. A leader is asked to
        go: alive, it ends its term, with the reason ``evicted``, waits for its body and takes its
        znode away itself. One that hangs, is cut off or dead can renew its lease no more, and its
        znode is deleted when that lease is over: within one session timeout of the leader, as
        its term tells. To keep a candidate out of the queue, end its program.

        :param who: a znode, or a name that one candidate bears alone.
        :param why: for people: in the log of who is asked to go, and in :meth:`history`.
        :param by: who evicts; user and host of this process when None.
        :param timeout: seconds to wait for an answer, each time; also for a leader whose lease
            nobody can tell the length of.
        :param longest_lease: seconds: the largest session timeout that the servers grant. It
            counts for a leader whose term does not tell: not written yet, by an older version, or
            of a session with more than 64 candidates that lead or may soon. 0: it is known dead.
        :param foreign: delete a candidate of another library, too. It has no lease: at once, and
            its process may not notice that, and go on beside its successor.
        :returns: who went, and how.
        :raises NotStanding: nobody of that name stands. The error lists who does.
        :raises InvalidArgument: several bear that name, or nobody has ever stood.
        :raises ForeignCandidate: it is of another library, and ``foreign`` is not said.
        :raises EvictionFailed: it does not go, and nobody can tell how long its lease may last. It
            is still asked to go.
        :raises ConnectFailed: no answer came; to evict again goes on with what was begun.
        """
        return Evictor(
            *self._where,
            who,
            why=why,
            by=by,
            timeout=timeout,
            longest_lease=longest_lease,
            foreign=foreign,
        ).evict()
