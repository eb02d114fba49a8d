"""The machine under every order of messages and faults that chance thinks of.

Each seed is one schedule: three candidates, and a few hundred times something happens to
one of them. After every step nobody may lead beside another; at the end, with all links
mended, exactly one leads, everybody can leave, and nothing of anybody is left.

A failure prints the schedule as a transcript.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from theatre import Candidate, Ensemble, short, spell

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Reason
from zkelect.core.record import Record
from zkelect.core.state import Phase, State
from zkelect.core.znodes import KAZOO
from zkelect.errors import RequestFailed

STEPS = 120
REFUSAL = RequestFailed("/elections/billing", "get", "throttled")
INVOLUNTARY = (Reason.STALLED, Reason.UNHEALTHY, Reason.FENCED)

Act = Callable[[], object]


class Schedule:
    """Three candidates and what chance does to them.

    :param meddled: somebody from outside deletes znodes, changes the record, closes sessions.
    """

    def __init__(self, seed: int, *, meddled: bool = False) -> None:
        self.chance = random.Random(seed)
        self.meddled = meddled
        self.transcript: list[str] = []
        self.tokens: list[int] = []
        self.ensemble = Ensemble(parent=bool(seed % 2))
        self.candidates = [Candidate(name, self.ensemble, self._note) for name in "ABC"]

    def _note(
        self, who: Candidate, event: Event, effects: tuple[Effect, ...], before: State
    ) -> None:
        told = ", ".join(map(spell, effects))
        self.transcript.append(f"{who.name} {before.phase:9} <- {spell(event):40} -> {told}")
        for effect in effects:
            self.check_effect(who, effect)

    # --- what must hold --------------------------------------------------------------------

    def check_effect(self, who: Candidate, effect: Effect) -> None:
        if isinstance(effect, ev.Request):
            assert who.linked, "asks while the link is down"
        if isinstance(effect, ev.Delete):
            assert not who.state.is_own(effect.node), "deletes its own candidate as a stray"
        if isinstance(effect, ev.Grant):
            self.check_grant(who, effect)

    def check_grant(self, who: Candidate, grant: ev.Grant) -> None:
        assert who.leased
        assert who.linked
        if self.meddled:
            return
        nodes = self.ensemble.tree.nodes
        assert grant.node == min(nodes, key=lambda node: node[-10:])
        assert nodes[grant.node].owner == who.session_id
        assert nodes[grant.node].czxid == grant.czxid
        self.tokens.append(grant.czxid)

    def check(self) -> None:
        for who in self.candidates:
            state = who.state
            assert not state.leads or (state.term and state.record)
            assert len(who.grants) - len(who.voids) == int(state.leads)
            assert not state.connected or who.linked
        if not self.meddled:
            working = [who.name for who in self.candidates if who.may_work and who.leased]
            assert len(working) <= 1, f"{working} work side by side"
            assert all(older < newer for older, newer in pairwise(self.tokens))

    # --- what can happen -------------------------------------------------------------------

    def acts_of(self, who: Candidate) -> list[Act]:
        return [
            *self.messages_of(who) * 4,
            *self.wishes_of(who),
            *self.faults_of(who),
            *(self.meddlings_with(who) if self.meddled else ()),
        ]

    def messages_of(self, who: Candidate) -> list[Act]:
        possible: list[tuple[object, Act]] = [
            (who.linked and who.requests, who.serve),
            (who.linked and who.position < self.ensemble.zxid, who.advance),
            (who.replies, who.hear_reply),
            (who.news, who.hear_news),
            (who.tasks, who.do_task),
        ]
        return [act for can, act in possible if can]

    def wishes_of(self, who: Candidate) -> list[Act]:
        state = who.state
        free = state.phase in (Phase.IDLE, Phase.LEAVING) and state.again is None
        possible: list[tuple[object, Act]] = [
            (free, who.campaign),
            (free, who.campaign),
            (who.campaigns and self.chance.random() < 0.3, who.cancel),
            (state.term, who.return_body),
            (state.leads, who.prepare),
            (state.leads, lambda: who.end_term(Reason.RESIGNED)),
            (state.phase is Phase.WAITING and state.ahead, who.step_back),
            (state.leads, lambda: who.end_term(self.chance.choice(INVOLUNTARY))),
            (who.linked and state.warm and self.lives(who), who.prove),
        ]
        return [act for can, act in possible if can]

    def faults_of(self, who: Candidate) -> list[Act]:
        coin = self.chance.random
        possible: list[tuple[object, Act]] = [
            (who.linked, lambda: who.drop(received=coin() < 0.5, queued=coin() < 0.3)),
            (not who.linked, lambda: self.reconnect(who)),
            (not who.linked, lambda: self.reconnect(who)),
            (who.leased, who.lapse),
            (not who.leased and not who.linked, lambda: self.expire(who)),
            (who.graces, lambda: who.feed(who.graces.popleft())),
            (self.ensemble.tree.nodes, self.touch),
            (True, who.reread),
        ]
        return [act for can, act in possible if can]

    def meddlings_with(self, who: Candidate) -> list[Act]:
        possible: list[tuple[object, Act]] = [
            (self.ensemble.tree.nodes, self.evict),
            (self.chance.random() < 0.2, self.ensemble.remove_parent),
            (self.chance.random() < 0.2, self.change_record),
            (who.linked, lambda: self.swap(who)),
            (self.lives(who), lambda: self.expire(who)),
            (who.news, who.news.popleft),
            (self.refusable(who), lambda: who.refuse(REFUSAL)),
            (self.before_barrier(who), lambda: self.create_again(who)),
        ]
        return [act for can, act in possible if can]

    def lives(self, who: Candidate) -> bool:
        return who.session_id in self.ensemble.alive

    def before_barrier(self, who: Candidate) -> bool:
        asked = any(isinstance(request, ev.Commit) for request in who.requests)
        return asked and self.lives(who) and self.ensemble.tree.parent

    def create_again(self, who: Candidate) -> None:
        """A create that was lost turns out to have been done more than once."""
        assert who.session_id is not None
        self.ensemble.make(KAZOO.prefix(who.state.uuid), who.session_id)

    def refusable(self, who: Candidate) -> bool:
        """A deletion that is refused leaves a znode, as it must; the rest must not."""
        deletes = (ev.Delete, ev.Withdraw)
        return who.linked and bool(who.requests) and not isinstance(who.requests[0], deletes)

    def reconnect(self, who: Candidate) -> None:
        who.reconnect(lag=self.chance.choice((0, 0, 1, 3, 9)))

    def expire(self, who: Candidate) -> None:
        if who.session_id is not None:
            self.ensemble.expire(who.session_id)
            self.transcript.append(f"{who.name}'s session ends on the servers")

    def swap(self, who: Candidate) -> None:
        self.transcript.append(f"{who.name}'s session is swapped")
        who.connect()

    def touch(self) -> None:
        node = self.chance.choice(sorted(self.ensemble.tree.nodes))
        for who in self.candidates:
            who.touch(node)

    def evict(self) -> None:
        node = self.chance.choice(sorted(self.ensemble.tree.nodes))
        self.transcript.append(f"somebody deletes {short(node)}")
        self.ensemble.remove(node)

    def change_record(self) -> None:
        record = self.ensemble.tree.record
        if record is not None:
            changed = Record(uuid=record.uuid, generation=record.generation + 1)
            self.ensemble.commit(record=self.chance.choice((None, changed)))

    # --- the course of a schedule ------------------------------------------------------------

    def run(self) -> None:
        for who in self.candidates:
            who.connect()
            who.campaign()
        for _ in range(STEPS):
            who = self.chance.choice(self.candidates)
            acts = self.acts_of(who)
            self.chance.choice(acts)()
            self.check()

    def mend(self) -> None:
        """Every link is up, every old session gone, every answer through."""
        self.transcript.append("all is mended")
        self.renew([who for who in self.candidates if not (who.linked and self.lives(who))])
        self.sweep()
        self.settle()
        if self.meddled:
            self.renew([who for who in self.candidates if self.was_refused(who)])
            for who in self.candidates:
                who.reread()
                who.feed(ev.RecordTouched(stamp=who.state.stamp))
        self.settle()

    def was_refused(self, who: Candidate) -> bool:
        """Its look for what a lost create made was refused: the next link looks again."""
        return who.state.phase is Phase.LEAVING and who.state.lost and who.state.sent

    def renew(self, candidates: list[Candidate]) -> None:
        for who in candidates:
            if who.linked:
                who.drop()
            who.reconnect()

    def sweep(self) -> None:
        current = {who.session_id for who in self.candidates}
        for stray in self.ensemble.alive - current:
            self.ensemble.expire(stray)

    def settle(self) -> None:
        for _ in range(2000):
            acts = [act for who in self.candidates for act in self.messages_of(who)]
            if acts:
                self.chance.choice(acts)()
            elif (first := self.first_without_lease()) is not None:
                first.prove()
            else:
                return
            self.check()
        raise AssertionError("never comes to rest")

    def first_without_lease(self) -> Candidate | None:
        return next((who for who in self.candidates if who.state.first), None)

    def check_one_leader(self) -> None:
        standing = [who for who in self.candidates if who.state.phase is not Phase.IDLE]
        leaving = [who for who in standing if who.state.phase is Phase.LEAVING]
        leading = [who for who in standing if who.state.leads]
        assert all(who.state.term is not None for who in leaving), "cannot leave"
        first = min(self.ensemble.tree.nodes, key=lambda node: node[-10:], default=None)
        blocked = any(first is not None and who.state.is_own(first) for who in leaving)
        assert len(leading) == int(len(standing) > len(leaving) and not blocked)
        assert not any(who.state.doomed for who in self.candidates)
        for who in standing:
            assert len(self.ensemble.owned_by(who.session_id)) <= 1

    def leave(self) -> None:
        self.transcript.append("everybody leaves")
        for _ in range(2):
            for who in self.candidates:
                who.cancel()
                who.end_term(Reason.RESIGNED)
                who.return_body()
            self.settle()

    def check_nothing_left(self) -> None:
        for who in self.candidates:
            assert who.state.phase is Phase.IDLE, f"{who.name} cannot leave"
            assert who.finished == sorted(set(who.finished)), f"{who.name}: {who.finished}"
            assert who.finished[-1] == who.campaigns
        assert not self.ensemble.tree.nodes


def play(seed: int, *, meddled: bool) -> None:
    schedule = Schedule(seed, meddled=meddled)
    try:
        schedule.run()
        schedule.mend()
        schedule.check_one_leader()
        schedule.leave()
        schedule.check_nothing_left()
    except AssertionError:
        print("\n".join(schedule.transcript))
        raise


@pytest.mark.parametrize("block", range(4))
def test_under_any_schedule_one_leads_and_nothing_is_left(block: int) -> None:
    for seed in range(block * 250, (block + 1) * 250):
        play(seed, meddled=False)


@pytest.mark.parametrize("block", range(4))
def test_whoever_meddles_in_the_end_one_leads_and_nothing_is_left(block: int) -> None:
    for seed in range(block * 250, (block + 1) * 250):
        play(seed, meddled=True)
