"""Evicting a candidate: what an operator does, so that no two lead meanwhile.

To delete the znode of a leader elects its successor at once, while the old one goes on until
it hears of that. So:

* Somebody waits in the queue. It is deleted in one commit that checks that another one is ahead
  of it, so that at that instant it does not lead, and that tells the record, so that it never
  does. It loses nothing but its place; alive, it stands again, behind all.
* The first in the queue leads, or is about to. It is asked to go, in the election's record, and
  nothing renews its lease from the commit on (:mod:`zkelect.core.eviction` says why). Alive, it
  ends its term, waits for its body, and takes its znode away itself. Otherwise the znode is
  deleted when the longest lease that its session can have is over, counted from when the answer
  to that commit was here. So it makes no difference whether the process hangs, is cut off, or is
  long dead and only its znode has stayed.
* The length of that lease stands in the leader's term. It does not, if the candidate has not led
  yet, is of a version that did not write it, or belongs to a session with so many candidates
  that a probe does not check them all (:meth:`zkelect.session.driver.Roster.promise`). Nobody
  can tell it from outside: the servers decide it, and do not tell. Then only the candidate's own
  going counts, or what the operator knows.
* A candidate of another library has no lease and reads no record. It is deleted at once, and
  only if that is asked for: its process may not notice, and go on beside its successor.

Deleted is only what the record still asks to go, under the same id: nobody has taken the word
back or written over it, at whatever moment the candidate may have read it. And only at the
version of its data that was read just before. Whatever changes meanwhile is read again.

Two operators help each other: the second finds the word of the first, and counts from then. One
that dies midway leaves the word in the record, which a living leader follows all the same; the
next operator finds it. Who comes after the candidate is not concerned, for a znode's name is used
once. While the election is paused the same is done; then nobody leads after it.
"""

from __future__ import annotations

import logging
import time
import uuid
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.core.acts import ActKind
from zkelect.core.events import Reason
from zkelect.core.eviction import Eviction
from zkelect.core.history import extend_history
from zkelect.core.paths import check_name
from zkelect.core.pause import Pause
from zkelect.core.record import decode_term, encode_record, record_path
from zkelect.errors import (
    EvictionFailed,
    ForeignCandidate,
    InvalidArgument,
    NotStanding,
    RequestFailed,
)
from zkelect.session.acts import commit_act, new_act
from zkelect.session.asking import ask
from zkelect.session.departures import Departure
from zkelect.session.gateway import Check, Delete, Failure, Fault, Operation, Put
from zkelect.session.limits import LONGEST_SESSION, check_timeout
from zkelect.session.pages import commit, is_committed, read_page, value_of
from zkelect.session.records import read_record
from zkelect.session.roll import read_entries, read_roll
from zkelect.session.terms import history_path, term_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.core.acts import Act
    from zkelect.core.record import Record, Term
    from zkelect.core.znodes import Dialect
    from zkelect.session.roll import Candidate
    from zkelect.session.session import Session

__all__ = ["Evicted", "EvictionOutcome", "Evictor", "find_candidate"]

_log: Final = logging.getLogger("zkelect")
_TRIES: Final = 5
_SHOWN: Final = 10
_LATEST: Final = 20
_CHANGED: Final = (Fault.BAD_VERSION, Fault.NO_NODE)
"""Something is not as it was read: read it again."""


class EvictionOutcome(StrEnum):
    """How a candidate went."""

    DELETED = "deleted"
    """It waited in the queue; alive, it stands again, behind all."""
    GONE = "gone"
    """It took its znode away itself, its work being done, or its session ended."""
    LEASE_OVER = "lease-over"
    """It did not go; its znode was deleted when it could have no lease any more."""
    FOREIGN = "foreign"
    """Of another library: deleted at once, and perhaps its process goes on."""


_SAID: Final = {
    EvictionOutcome.DELETED: "waited in the queue and was deleted; alive, it stands again, behind",
    EvictionOutcome.GONE: "has gone: it gave way, or its session ended",
    EvictionOutcome.LEASE_OVER: "did not go, and was deleted when its lease was over",
    EvictionOutcome.FOREIGN: "was deleted; its library may not notice: see that its process ends",
}


@attrs.frozen(kw_only=True)
class Evicted:
    """A candidate that has gone from the queue.

    :ivar node: its znode. :ivar name: a label, never an identity. :ivar outcome: how it went.
    :ivar pause: the pause that keeps all others from leading after it; None: there is none, or it
        did not lead.
    """

    node: str
    name: str
    outcome: EvictionOutcome
    pause: Pause | None = None

    def __str__(self) -> str:
        """Say it as messages do."""
        nobody = f"; nobody leads after it: {self.pause}" if self.pause is not None else ""
        return f"{self.name!r} ({self.node}) {_SAID[self.outcome]}{nobody}"


class Evictor:
    """One eviction.

    :param who: a znode, or a name that only one candidate bears. :param timeout: seconds to wait
        for an answer, each time. :param longest_lease: seconds; what counts when the term does not
        tell. :param foreign: also a candidate of another library.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        dialect: Dialect,
        who: str,
        *,
        why: str,
        by: str | None,
        timeout: float,
        longest_lease: float | None,
        foreign: bool,
    ) -> None:
        check_timeout(timeout, endless=False)
        check_timeout(longest_lease, "longest_lease")
        check_name(who, "who")
        self._session = session
        self._path = path
        self._dialect = dialect
        self._timeout = timeout
        self._who = who
        self._new_act = partial(new_act, ActKind.EVICT, why, by)
        self._new_act(who)  # a text that cannot be written is refused before anything is asked
        self._longest_lease = longest_lease
        self._foreign = foreign
        self._found: Candidate | None = None
        self._pause: Pause | None = None

    def evict(self) -> Evicted:
        """Do it, and return how it went; see the module for how."""
        for _ in range(_TRIES):
            roll = read_roll(self._session, self._path, self._dialect, self._timeout)
            evicted = self._send_away(self._find(roll), roll)
            if evicted is not None:
                _log.info("%s: %s", self._path, evicted)
                return evicted
        raise RequestFailed(self._path, "evict", f"the queue changed {_TRIES} times meanwhile")

    # --- whom --------------------------------------------------------------------------------

    def _find(self, roll: tuple[Candidate, ...]) -> Candidate:
        """Find it once; from then on it is that znode, whoever else bears the name."""
        if self._found is None:
            self._found = find_candidate(self._path, self._who, roll, foreign=self._foreign)
        return self._found

    # --- how ---------------------------------------------------------------------------------

    def _send_away(self, whom: Candidate, roll: tuple[Candidate, ...]) -> Evicted | None:
        """Do what its place allows; None: that has changed meanwhile."""
        if all(candidate.node != whom.node for candidate in roll):
            return self._told(whom, EvictionOutcome.GONE)
        if whom.foreign:
            return self._delete(whom, EvictionOutcome.FOREIGN)
        if roll[0].node != whom.node:
            return self._delete_waiting(whom, roll[0])
        return self._depose(whom)

    def _delete_waiting(self, whom: Candidate, first: Candidate) -> Evicted | None:
        """Delete who does not lead, for at that instant another one is ahead.

        The record says so in the same commit. Events and answers reach a candidate on two
        threads, so it may hear that all ahead are gone before it hears that itself is; but it is
        not granted before it has read the record behind that.
        """
        record, act = self._read_record(), self._new_act(whom.name)
        named = self._naming(record, _request(whom, act))
        ahead = Check(path=self._path_of(first))
        return self._delete(whom, EvictionOutcome.DELETED, ahead, named, act=act)

    def _delete(
        self,
        whom: Candidate,
        outcome: EvictionOutcome,
        *others: Operation,
        act: Act | None = None,
    ) -> Evicted | None:
        act = self._new_act(whom.name) if act is None else act
        operations = [Delete(path=self._path_of(whom)), *others]
        refused = commit_act(self._session, self._path, operations, act, self._timeout)
        if is_committed(self._session, refused, *_CHANGED, request="delete"):
            return self._told(whom, outcome)
        return None

    def _depose(self, whom: Candidate) -> Evicted | None:
        """Ask it to go, wait until it has, or its lease is over, and only then delete it."""
        with Departure(self._session, self._path_of(whom), self._timeout) as departure:
            eviction = self._ask(whom) if not departure.gone else None
            if eviction is None:
                return None
            asked = self._session.now()  # the answer is here, so the commit lies behind us
            term = self._term(whom, departure.czxid)
            longest = _longest_lease(term, self._longest_lease)
            _log.info("%s: asked %r to go, %s", self._path, whom.name, _promise(longest))
            if departure.wait(asked + (self._timeout if longest is None else longest)):
                return self._told(whom, EvictionOutcome.GONE)
            if longest is None:
                raise EvictionFailed(self._path, whom.name, _ENDLESS)
            if self._remove(whom, eviction, departure, term):
                return self._told(whom, EvictionOutcome.LEASE_OVER)
        return None

    def _ask(self, whom: Candidate) -> Eviction | None:
        """Write into the record that it shall go, and wake it; None: what was read has changed.

        It watches its own znode: to write its data again, as they are, tells it.
        """
        record, act = self._read_record(), self._new_act(whom.name)
        self._pause = record.paused
        asked = next((each for each in record.evictions if each.node == whom.node), None)
        if asked is not None:  # by an operator before us
            operations: list[Operation] = [self._check(record)]
        else:
            asked = _request(whom, act)
            operations = [self._naming(record, asked), self._wake(self._path_of(whom))]
        refused = commit_act(self._session, self._path, operations, act, self._timeout)
        return asked if is_committed(self._session, refused, *_CHANGED) else None

    def _naming(self, record: Record, asked: Eviction) -> Put:
        """Add the word; older ones are forgotten whose znodes, looked for behind it, are gone.

        The latest are kept in any case: who was deleted may not have heard of it yet.
        """
        entries = read_entries(self._session, self._path, self._dialect, self._timeout)
        standing = {entry.node for entry in entries}
        old, latest = record.evictions[:-_LATEST], record.evictions[-_LATEST:]
        kept = (*(each for each in old if each.node in standing), *latest)
        wanted = encode_record(attrs.evolve(record, evictions=(*kept, asked)))
        return Put(path=record_path(self._path), data=wanted, version=record.version)

    def _wake(self, path: str) -> Operation:
        answer = ask(self._session, lambda g, done: g.get(path, done), self._timeout)
        if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
            return Check(path=path)  # which fails
        return Put(path=path, data=value_of(self._session, path, "read", answer)[0])

    def _remove(
        self, whom: Candidate, eviction: Eviction, departure: Departure, term: Term | None
    ) -> bool:
        """Delete it while the record still asks it to go; False: it does not any more."""
        for _ in range(_TRIES):
            record = self._read_record()
            if all(each.id != eviction.id for each in record.evictions):
                return False
            version = departure.look()
            if version is None:
                return True
            deletion = Delete(path=self._path_of(whom), version=version)
            operations: list[Operation] = [deletion, self._check(record), *self._closing(term)]
            refused = commit(self._session, operations, self._timeout)
            if is_committed(self._session, refused, *_CHANGED, request="delete"):
                return True
        return False

    def _closing(self, term: Term | None) -> list[Operation]:
        """Write how its term ended; else its successor would only know that it has died."""
        if term is None:
            return []
        note = history_path(self._path)
        data, stat = read_page(self._session, note, b"[]", self._timeout)
        ended = attrs.evolve(term, ended=time.time(), reason=str(Reason.EVICTED))
        return [Put(path=note, data=extend_history(data, ended), version=stat.version)]

    # --- within ------------------------------------------------------------------------------

    def _term(self, whom: Candidate, czxid: int) -> Term | None:
        """Return its term, if that is the present one."""
        path = term_path(self._path)
        answer = ask(self._session, lambda g, done: g.get(path, done), self._timeout)
        if isinstance(answer, Failure) and answer.fault is Fault.NO_NODE:
            return None
        term = decode_term(value_of(self._session, path, "read", answer)[0])
        ours = term is not None and (term.node, term.token.czxid) == (whom.node, czxid)
        return term if ours else None

    def _read_record(self) -> Record:
        return read_record(self._session, self._path, "evict", self._timeout)

    def _check(self, record: Record) -> Check:
        return Check(path=record_path(self._path), version=record.version)

    def _path_of(self, whom: Candidate) -> str:
        return f"{self._path}/{whom.node}"

    def _told(self, whom: Candidate, outcome: EvictionOutcome) -> Evicted:
        return Evicted(node=whom.node, name=whom.name, outcome=outcome, pause=self._pause)


def find_candidate(
    path: str, who: str, roll: Sequence[Candidate], *, foreign: bool = False
) -> Candidate:
    """Return who is meant by a znode, or by a name that only one bears.

    :raises NotStanding: nobody. :raises InvalidArgument: several bear the name.
    :raises ForeignCandidate: one of another library, and that is not said to be meant.
    """
    found = [candidate for candidate in roll if candidate.node == who]
    found = found or [candidate for candidate in roll if candidate.name == who]
    if not found:
        raise NotStanding(path, who, [candidate.name for candidate in roll])
    if len(found) > 1:
        nodes = ", ".join(candidate.node for candidate in found[:_SHOWN])
        raise InvalidArgument("who", who, f"one name of one candidate; say which znode: {nodes}")
    if found[0].foreign and not foreign:
        raise ForeignCandidate(path, "evict", found[0].node, _UNLEASED)
    return found[0]


def _request(whom: Candidate, act: Act) -> Eviction:
    return Eviction(id=uuid.uuid4().hex, node=whom.node, by=act.by, why=act.why, since=act.at)


def _longest_lease(term: Term | None, told: float | None) -> float | None:
    """Return the seconds after which its lease is over in any case; None: nobody knows."""
    written = None if term is None else term.longest_lease
    return written if written is not None and 0 < written <= LONGEST_SESSION else told


def _promise(longest: float | None) -> str:
    if longest is None:
        return "and nobody can tell how long a lease of it lasts"
    return f"and no lease of it lasts longer than {longest:g} s from now"


_UNLEASED: Final = "has no lease to wait for, and may go on beside its successor"
_ENDLESS: Final = (
    "it does not go, and nothing tells how long its lease may last: its term is not written, or "
    "by an older version, or its session has too many candidates. The record still asks it to go. "
    "End its process, or give the longest lease: the largest session timeout that the servers grant"
)
