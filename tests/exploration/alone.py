"""What can happen to one candidate alone: its program, its clock, its end of the link.

Nothing here reads or changes the servers, so each happening of each candidate is worked out
once, however many worlds it happens in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from attrs import evolve
from theatre import passing

from exploration.promises import Broken, check_step, keep
from exploration.world import (
    Candidate,
    Lexicon,
    News,
    Outcome,
    Outcomes,
    Step,
    all_candidates,
)
from zkelect.core import events as ev
from zkelect.core import machine
from zkelect.core.events import Event, Reason
from zkelect.core.state import Phase, State

__all__ = ["ALONE", "MENDING", "Alone", "outcome_of"]


class Alone:
    """One candidate's steps.

    :param own: which one, 0 is A. :param campaigns: how often it may stand.
    :ivar words: its states, events, effects. :ivar candidates: all it has been.
    """

    def __init__(self, own: int, campaigns: int) -> None:
        self.own: Final = own
        self.campaigns: Final = campaigns
        self.words: Final = Lexicon(own)
        self.candidates: Final = all_candidates(self.words)
        self._steps: dict[Step, tuple[int, tuple[int, ...]]] = {}
        self._moves: dict[int, Outcomes] = {}
        self._told: dict[tuple[int, News], int] = {}

    def state(self, it: Candidate) -> State:
        """Return the state of the machine."""
        found: State = self.words[it.state]
        return found

    def works(self, number: int) -> bool:
        """Tell whether its body counts on its lease, and may."""
        it = self.candidates[number]
        return it.backed and not it.hit

    # --- stepping the machine ----------------------------------------------------------------

    def feed(self, it: Candidate, event: Event) -> Outcome:
        """Step the machine and do what it says.

        :raises Broken: the machine broke a promise.
        """
        return self._hear(it, self.words.number(event))

    def _hear(self, it: Candidate, heard: int) -> Outcome:
        step = it.state, heard, it.leased
        state, effects = self.step(step)
        it, said = it._replace(state=state), []
        for number in effects:
            effect = self.words[number]
            it = self._perform(it, effect, number)
            if isinstance(effect, ev.Grant | ev.Finish):
                said.append(effect)
        if self.state(it).term is None:
            it = it._replace(backed=False, graces=())
        return Outcome(self.candidates.number(it), step=step, said=tuple(said))

    def step(self, step: Step) -> tuple[int, tuple[int, ...]]:
        """Return the machine's next state and its effects, by their numbers."""
        found = self._steps.get(step)
        if found is None:
            before, event = self.words[step[0]], evolve(self.words[step[1]], leased=step[2])
            after, effects = machine.step(before, event)
            check_step(before, event, after, effects)
            numbers = tuple(map(self.words.number, effects))
            found = self._steps[step] = self.words.number(after), numbers
        return found

    def _perform(self, it: Candidate, effect: ev.Effect, number: int) -> Candidate:
        match effect:
            case ev.Request():
                return it._replace(requests=(*it.requests, number))
            case ev.Rest(stamp=stamp):
                return it._replace(tasks=(*it.tasks, self.words.number(ev.Rested(stamp=stamp))))
            case ev.StartGrace(stamp=term):
                return it._replace(graces=(self.words.number(ev.GraceEnded(term=term)),))
            case ev.Grant():
                return it._replace(backed=True)
            case ev.Finish(campaign=campaign):
                self._check_finish(it, campaign)
                return it._replace(finished=campaign, watches=())
            case _:
                return it

    def _check_finish(self, it: Candidate, campaign: int) -> None:
        keep("finished", campaign > it.finished)
        creates = [number for number in it.requests if isinstance(self.words[number], ev.Create)]
        keep("finished", not creates)

    # --- what can happen ---------------------------------------------------------------------

    def moves(self, number: int) -> Outcomes:
        """Return what can happen to a candidate, and what comes of it."""
        found = self._moves.get(number)
        if found is None:
            it = self.candidates[number]
            found = self._moves[number] = {
                kind: outcome_of(what.act, self, it)
                for kind, what in ALONE.items()
                if what.can(self, self.state(it), it)
            }
        return found

    def tell(self, number: int, news: News) -> int:
        """Return the candidate with the watch events of that news on their way."""
        found = self._told.get((number, news))
        if found is None:
            it = self._hit(self.candidates[number], news)
            if it.view is None:
                it = self.catch_news(it, news)
            found = self._told[number, news] = self.candidates.number(it)
        return found

    def _hit(self, it: Candidate, news: News) -> Candidate:
        hit = any(session >> 8 == ord("A") + self.own for session in news.hit)
        return it._replace(hit=True) if hit else it

    def catch_news(self, it: Candidate, news: News) -> Candidate:
        """Use up the watches that news is for."""
        fired: list[int] = []
        left: list[int] = []
        for number in it.watches:
            told = self.words[number]
            if isinstance(told, ev.RecordTouched):
                (fired if news.record else left).append(number)
            elif told.node in news.gone:
                fired.append(number)
            elif told.node == news.touched:
                changed = ev.Changed(stamp=told.stamp, node=told.node)
                fired.append(self.words.number(changed))
            else:
                left.append(number)
        return it._replace(watches=tuple(left), news=(*it.news, *fired))

    def hear_reply(self, it: Candidate) -> Outcome:
        before = None if it.view is None else it.before
        return self._hear(it._replace(replies=it.replies[1:], before=before), it.replies[0])

    def hear_news(self, it: Candidate) -> Outcome:
        return self._hear(it._replace(news=it.news[1:]), it.news[0])

    def miss_news(self, it: Candidate) -> Outcome:
        return self._keep(it._replace(news=it.news[1:], missed=True))

    def rest(self, it: Candidate) -> Outcome:
        return self._hear(it._replace(tasks=it.tasks[1:]), it.tasks[0])

    def end_grace(self, it: Candidate) -> Outcome:
        return self._hear(it._replace(graces=(), backed=False), it.graces[0])

    def lapse(self, it: Candidate) -> Outcome:
        return self._keep(it._replace(leased=False, backed=False))

    def end(self, it: Candidate, reason: Reason) -> Outcome:
        term = self.state(it).term
        assert term is not None
        return self.feed(it, ev.TermEnded(term=term, reason=reason))

    def return_body(self, it: Candidate) -> Outcome:
        term = self.state(it).term
        assert term is not None
        return self.feed(it, ev.Returned(term=term))

    def prepare(self, it: Candidate) -> Outcome:
        term = self.state(it).term
        assert term is not None
        return self.feed(it, ev.Prepared(term=term))

    def cancel(self, it: Candidate) -> Outcome:
        campaign = it.campaigns
        return self.feed(it._replace(cancelled=campaign), ev.Cancelled(campaign=campaign))

    def reread(self, it: Candidate) -> Outcome:
        return self.feed(it, ev.RollDue(stamp=self.state(it).stamp))

    def step_back(self, it: Candidate) -> Outcome:
        """The leader hands over to somebody behind us; it may be gone by now."""
        state = self.state(it)
        leader = state.ahead[-1].node
        return self.feed(it, ev.HandoverRead(stamp=state.stamp, handover=passing(leader)))

    def reads(self, it: Candidate, *kinds: type[ev.Effect | Event]) -> bool:
        """Whether such a request, or its answer, is under way already."""
        way = (self.words[number] for number in (*it.requests, *it.replies))
        return any(isinstance(what, kinds) for what in way)

    def drop(self, it: Candidate, *, received: bool = False, unsent: bool = False) -> Outcome:
        """Lose the link: what the server has not done, it never will."""
        it = it._replace(watches=(), missed=False, view=None)
        it = it if unsent else it._replace(requests=())
        it = it if received else it._replace(replies=(), news=())
        return self.feed(it, ev.SessionSuspended())

    def _keep(self, it: Candidate) -> Outcome:
        return Outcome(self.candidates.number(it))


def _may_cancel(s: State, it: Candidate) -> bool:
    stands = s.phase in (Phase.JOINING, Phase.WAITING) or s.again is not None
    return stands and it.cancelled < it.campaigns


def _watches(s: State) -> bool:
    return s.leads or s.phase is Phase.WAITING


def outcome_of(act: Callable[..., Outcome], *args: object) -> Outcome | Broken:
    """Return what comes of it, or the promise it breaks."""
    try:
        return act(*args)
    except Broken as broken:
        return broken


MENDING: Final = 1_000
"""So many faults never happen: it is for mending alone."""


class Lonely(NamedTuple):
    """Something that can happen.

    :ivar faults: how many it counts for.
    """

    faults: int
    can: Callable[[Alone, State, Candidate], object]
    act: Callable[[Alone, Candidate], Outcome]


ALONE: Final[dict[str, Lonely]] = {
    "X hears one reply": Lonely(0, lambda _, __, it: it.replies, Alone.hear_reply),
    "X hears the news": Lonely(0, lambda _, __, it: it.news, Alone.hear_news),
    "X has rested": Lonely(0, lambda _, __, it: it.tasks, Alone.rest),
    "X's grace ends": Lonely(0, lambda _, __, it: it.graces, Alone.end_grace),
    "X's body returns": Lonely(0, lambda _, s, __: s.term, Alone.return_body),
    "X has prepared": Lonely(0, lambda _, s, __: s.phase is Phase.PREPARING, Alone.prepare),
    "X resigns": Lonely(0, lambda _, s, __: s.leads, lambda who, it: who.end(it, Reason.RESIGNED)),
    "X notices that its lease is over": Lonely(
        0, lambda _, s, it: s.leads and not it.leased, lambda who, it: who.end(it, Reason.LAPSED)
    ),
    "X cancels": Lonely(0, lambda _, s, it: _may_cancel(s, it), Alone.cancel),
    "X rereads the roll, having missed news": Lonely(
        0,
        lambda who, s, it: it.missed and _watches(s) and not who.reads(it, ev.ReadRoll, ev.Rolled),
        Alone.reread,
    ),
    "X rereads the roll": Lonely(1, lambda _, s, it: not it.missed and _watches(s), Alone.reread),
    "X rereads the roll at last": Lonely(
        MENDING,
        lambda _, s, it: it.missed and _watches(s),
        lambda who, it: who.reread(it._replace(missed=False)),
    ),
    "X steps back": Lonely(
        1, lambda _, s, __: s.phase is Phase.WAITING and s.ahead, Alone.step_back
    ),
    "X's lease runs out": Lonely(1, lambda _, __, it: it.leased or it.backed, Alone.lapse),
    "X stalls": Lonely(1, lambda _, s, __: s.leads, lambda who, it: who.end(it, Reason.STALLED)),
    "X misses the news": Lonely(1, lambda _, __, it: it.news, Alone.miss_news),
    "X loses its link": Lonely(1, lambda _, s, __: s.connected, Alone.drop),
    "X loses its link with all in hand": Lonely(
        1,
        lambda _, s, it: s.connected and (it.replies or it.news),
        lambda who, it: who.drop(it, received=True),
    ),
    "X loses its link with requests unsent": Lonely(
        1, lambda _, s, it: s.connected and it.requests, lambda who, it: who.drop(it, unsent=True)
    ),
}
"""What can happen, as a story tells it."""
