"""What several rows of the table share: standing, leaving, granting, deposing."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Reason
from zkelect.core.state import NONE, Phase, State, Step
from zkelect.core.znodes import Roll, ranked
from zkelect.errors import ZkelectError


def stand(s: State) -> Step:
    """Begin an attempt: create and roll go out back to back, on one connection."""
    s = evolve(s, phase=Phase.JOINING, attempt=s.attempt + 1, node=None, czxid=0)
    s = evolve(s, sent=s.connected, lost=False, suspects=NONE, adopted=())
    s = evolve(s, ahead=(), record=None, look=0, looking=False, outranked=False, chosen=False)
    if s.priority:
        s = evolve(s, uuid=ranked(s.uuid, s.priority))
    return s, (ev.Create(stamp=s.stamp, uuid=s.uuid), ev.ReadRoll(stamp=s.stamp))


def recover(s: State) -> Step:
    """A create's reply was lost: barrier first, for this server may lag (CURATOR-264)."""
    s = evolve(s, attempt=s.attempt + 1, lost=True, suspects=NONE, adopted=())
    return s, (ev.Commit(stamp=s.stamp),)


def grant(s: State, event: Event) -> Step:
    """The one door to leadership."""
    ready = s.first and s.connected and event.leased
    if not ready or s.node is None or s.record is None:
        return s, ()
    if s.looking or s.record.paused is not None:
        return s, ()
    grant = ev.Grant(stamp=s.stamp, node=s.node.node, czxid=s.czxid, record=s.record)
    s = evolve(s, phase=Phase.PREPARING, term=s.stamp, reason=None, released=False)
    return s, (grant,)


def look(s: State) -> Step:
    """Read the record and watch it; until the answer is there, nobody is granted."""
    s = evolve(s, look=s.look + 1, looking=True)
    return s, (ev.ReadRecord(stamp=s.stamp, look=s.look),)


def look_if_next(s: State) -> Step:
    """See to it that who may lead next hears of a pause before it hears that it may.

    Watches of one connection are told in the order of the commits ("What ZooKeeper
    Guarantees about Watches", Programmer's Guide): with the record watched, the event of a
    deletion finds every earlier change of the record told. An answer that says a znode is
    gone may overtake such an event, for kazoo hands the two over on two threads: so the
    record is read behind each watch that is set on the last one ahead.
    """
    return look(s) if s.next else (s, ())


def depose(s: State, reason: Reason) -> Step:
    """End the term, once. The znode waits for the body, or for the lease to run out."""
    term = s.term
    assert term is not None  # a leader has a term
    s = evolve(s, phase=Phase.LEAVING, reason=reason)
    void = ev.Void(stamp=term, reason=reason)
    if reason is Reason.RESIGNED:
        return s, (void,)
    return s, (void, ev.StartGrace(stamp=term))


def leave(s: State) -> Step:
    """Take everything of ours away, what we were still looking at included."""
    s, strays = doom(evolve(s, sent=s.sent and not s.found), s.found)
    s = evolve(s, phase=Phase.LEAVING, reason=None, suspects=NONE, adopted=())
    s, effects = go(s)
    return s, (*strays, *effects)


def give_up(s: State, error: ZkelectError) -> Step:
    fail = ev.Fail(stamp=s.stamp, campaign=s.campaign, error=error)
    s, effects = leave(s)
    return s, (fail, *effects)


def go(s: State) -> Step:
    asked = withdrawal(s)
    s, finish = finish_if_left(s)
    return s, (*asked, *finish)


def withdrawal(s: State) -> tuple[Effect, ...]:
    free = s.term is None or s.released
    if s.node is None or not free:
        return ()
    return (ev.Withdraw(stamp=s.stamp, node=s.node.node, reason=s.reason),)


def finish_if_left(s: State) -> Step:
    if s.term is not None or s.node is not None or s.sent or s.doomed:
        return s, ()
    finish = ev.Finish(stamp=s.stamp, campaign=s.campaign)
    s, again = evolve(s, phase=Phase.IDLE, again=None), s.again
    if again is None:
        return s, (finish,)
    s, effects = stand(evolve(s, campaign=again[0], uuid=again[1]))
    return s, (finish, *effects)


def forget_session(s: State) -> State:
    s = evolve(s, session_id=None, connected=False, node=None, czxid=0, sent=False)
    return evolve(s, suspects=NONE, adopted=(), ahead=(), doomed=NONE)


def doom(s: State, nodes: Iterable[str]) -> Step:
    """Delete znodes of ours, except our present candidate; each is asked for once."""
    strays = {node for node in nodes if not s.is_own(node)} - s.doomed
    if not strays:
        return s, ()
    s = evolve(s, doomed=s.doomed | strays)
    return s, tuple(ev.Delete(stamp=s.stamp, node=node) for node in sorted(strays))


def doom_strays(s: State, roll: Roll) -> Step:
    """Delete what carries our uuid and is not our present candidate."""
    return doom(s, (entry.node for entry in roll.of(s.uuid)))


def deletions(s: State) -> tuple[Effect, ...]:
    """Ask again for every deletion that was under way when the link went down."""
    return tuple(ev.Delete(stamp=s.stamp, node=node) for node in sorted(s.doomed))


def watches(s: State) -> tuple[Effect, ...]:
    """Our own znode, and only the one just ahead: one death wakes one process."""
    watched = (s.node, *s.ahead[-1:])
    return tuple(ev.Watch(stamp=s.stamp, node=entry.node) for entry in watched if entry)
