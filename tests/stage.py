"""The language of the stories: what is written flush left is done, what follows is noted.

A line says who and what: ``A connects and campaigns``, ``somebody deletes A#1``. After
each line every message is let through, in order, until all is quiet; only who "hears
nothing" is kept waiting. The steps of the machines are noted below the line, indented:

    A <- an event it hears
    A -> what it wants done
    A is where that leaves it

Of a line that begins with "given" only the last kind is noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs
from theatre import Candidate, Ensemble, node_of, short, spell

from zkelect.core import events as ev
from zkelect.core.events import Effect, Event, Reason
from zkelect.core.eviction import Eviction
from zkelect.core.pause import Pause
from zkelect.core.record import Record
from zkelect.core.state import Phase, State
from zkelect.core.znodes import KAZOO

__all__ = ["Stage"]

INDENT: Final = "  "
_SENTENCE: Final = re.compile(r"(?:(?P<who>[A-Z]|somebody|the next number)(?:'s)? )?(?P<what>.+)")


class Stage:
    """One ensemble, and candidates as they are named.

    :ivar transcript: the lines of the story, with what came of them.
    """

    def __init__(self) -> None:
        self.transcript: list[str] = []
        self.ensemble = Ensemble()
        self.candidates: dict[str, Candidate] = {}
        self._dead: set[str] = set()
        self._deaf: set[str] = set()
        self._no_replies: set[str] = set()
        self._lagging: set[str] = set()
        self._told: dict[str, str] = {}
        self._brief = False

    def __getitem__(self, name: str) -> Candidate:
        return self.candidates[name]

    @property
    def leaders(self) -> list[str]:
        return [who.name for who in self._living if who.state.leads]

    @property
    def roll(self) -> list[str]:
        """The candidate znodes there are, in order."""
        nodes = self.ensemble.tree.nodes
        return [short(node) for node in sorted(nodes, key=lambda node: node[-10:])]

    @property
    def _living(self) -> list[Candidate]:
        return [who for who in self.candidates.values() if who.name not in self._dead]

    def play(self, script: str) -> None:
        """Do what each line that is flush left says; keep comments and blank lines."""
        for line in script.splitlines():
            if line.startswith(INDENT):
                continue
            self.transcript.append(line)
            if line and not line.startswith("#"):
                self._do(line)

    # --- reading a line ----------------------------------------------------------------------

    def _do(self, line: str) -> None:
        self._brief = line.startswith("given ")
        subject = ""
        for part in line.removeprefix("given ").split(" and "):
            said = _SENTENCE.fullmatch(part)
            assert said is not None
            subject = said["who"] or subject
            self._act(subject, said["what"])
        self.settle()

    def _act(self, subject: str, phrase: str) -> None:
        whose = "X" if len(subject) == 1 else subject
        for pattern, act in _PHRASES.items():
            match = re.fullmatch(pattern, f"{whose} {phrase}")
            if match is not None:
                act(self, self.candidate(subject) if whose == "X" else None, *match.groups())
                return
        raise AssertionError(f"no story can say {subject!r} {phrase!r}")

    def candidate(self, name: str) -> Candidate:
        if name not in self.candidates:
            self.candidates[name] = Candidate(name, self.ensemble, self._note)
        return self.candidates[name]

    # --- letting messages through ----------------------------------------------------------------

    def settle(self) -> None:
        """Round after round each candidate gets one message, until there is none."""
        moved = True
        while moved:
            moved = bool([who for who in self._living if self.move(who)])

    def move(self, who: Candidate) -> bool:
        hears = who.name not in self._deaf
        moves: list[tuple[object, Callable[[], None]]] = [
            (who.news and hears, who.hear_news),
            (who.replies and hears and who.name not in self._no_replies, who.hear_reply),
            (who.tasks and hears, who.do_task),
            (self._behind(who) and who.name not in self._lagging, who.advance),
            (who.linked and who.requests, who.serve),
        ]
        for possible, move in moves:
            if possible:
                move()
                return True
        return False

    def _behind(self, who: Candidate) -> bool:
        return who.linked and who.position < self.ensemble.zxid

    def _hear_again(self, who: Candidate) -> None:
        for kept in (self._deaf, self._no_replies, self._lagging):
            kept.discard(who.name)

    # --- noting ------------------------------------------------------------------------------

    def _note(
        self, who: Candidate, event: Event, effects: tuple[Effect, ...], before: State
    ) -> None:
        if not self._brief:
            self._tell(f"{who.name} <- {spell(event)}{_remark(event, before)}")
        if effects and not self._brief:
            self._tell(f"{who.name} -> {', '.join(map(spell, effects))}")
        self._tell_place(who)

    def _tell_place(self, who: Candidate) -> None:
        place = _place(who.state)
        skipped = self._brief and place == Phase.JOINING
        if place != self._told.get(who.name, "idle") and not skipped:
            self._tell(f"{who.name} is {place}")
        self._told[who.name] = place

    def _tell(self, line: str) -> None:
        self.transcript.append(f"{INDENT}{line}")

    # --- what can be said of a candidate --------------------------------------------------------

    def _lose_link(self, who: Candidate) -> None:
        lost = [*(reply for _, reply in who.replies), *who.news]
        if lost:
            self._tell(f"{who.name} never hears {', '.join(map(spell, lost))}")
        if who.requests:
            self._tell(f"no server hears {', '.join(map(spell, who.requests))}")
        who.drop()

    def _die(self, who: Candidate) -> None:
        """The process is gone; its session lives on until the servers expire it."""
        who.linked = False
        self._dead.add(who.name)

    # --- what can be said of the servers ---------------------------------------------------------

    def _touch(self, name: str) -> None:
        for who in self.candidates.values():
            who.touch(node_of(name))

    def _change_record(self) -> None:
        """Raise the generation, as ``adopt`` does."""
        record = self.ensemble.tree.record
        assert record is not None
        self._write_record(attrs.evolve(record, generation=record.generation + 1))

    def _pause(self, pause: Pause | None) -> None:
        record = self.ensemble.tree.record
        assert record is not None
        self._write_record(attrs.evolve(record, paused=pause))

    def _ask_to_go(self, name: str) -> None:
        """Into the record, and wake the candidate, in one commit."""
        record = self.ensemble.tree.record
        assert record is not None
        asked = (*record.evictions, Eviction(id="1", node=node_of(name)))
        self._write_record(attrs.evolve(record, evictions=asked))
        self._touch(name)

    def _write_record(self, record: Record) -> None:
        """The watch tells who may lead next, probes tell the others whose lease is warm."""
        self.ensemble.commit(record=record)
        for who in self.candidates.values():
            if who.linked and who.state.warm and not who.state.next:
                who.feed(ev.RecordTouched(stamp=who.state.stamp))


def _remark(event: Event, before: State) -> str:
    if isinstance(event, ev.Answer) and event.stamp != before.stamp:
        return " (of an earlier try)"
    if isinstance(event, ev.TermEvent) and event.term != before.term:
        return " (of another term)"
    wants_lease = isinstance(event, ev.Rolled | ev.Vanished | ev.Proven | ev.Recorded)
    return " (no lease)" if wants_lease and not event.leased else ""


def _place(state: State) -> str:
    if state.phase is not Phase.WAITING:
        return str(state.phase)
    return f"waiting behind {short(state.ahead[-1].node)}" if state.ahead else "waiting, the first"


_PHRASES: Final[dict[str, Callable[..., object]]] = {
    # the program
    "X campaigns": lambda _, who: who.campaign(),
    "X cancels": lambda _, who: who.cancel(),
    "X has prepared": lambda _, who: who.prepare(),
    "X resigns": lambda _, who: who.end_term(Reason.RESIGNED),
    "X stalls": lambda _, who: who.end_term(Reason.STALLED),
    "X body returns": lambda _, who: who.return_body(),
    "X dies": lambda stage, who: stage._die(who),
    # its session
    "X connects": lambda _, who: who.connect(),
    "X loses its link": lambda stage, who: stage._lose_link(who),
    "X loses its link with all in hand": lambda _, who: who.drop(received=True),
    "X reconnects": lambda _, who: who.reconnect(),
    "X reconnects to a server that lags by ([0-9]+)": lambda _, who, lag: who.reconnect(
        lag=int(lag)
    ),
    "X is given another session": lambda _, who: who.connect(),
    "X session expires": lambda stage, who: stage.ensemble.expire(who.session_id),
    "X old session expires": lambda stage, who: stage.ensemble.expire(who.session_id - 1),
    "X rereads the roll": lambda _, who: who.reread(),
    # its lease
    "X has no lease": lambda _, who: setattr(who, "leased", False),
    "X lease is proven": lambda _, who: who.prove(),
    "X lease runs out": lambda _, who: who.lapse(),
    # what reaches it
    "X hears nothing": lambda stage, who: stage._deaf.add(who.name),
    "X hears no replies": lambda stage, who: stage._no_replies.add(who.name),
    "X hears one reply": lambda _, who: who.hear_reply(),
    "X misses the news": lambda _, who: who.news.clear(),
    "X hears again": lambda stage, who: stage._hear_again(who),
    "X create is done twice": lambda stage, who: stage.ensemble.make(
        KAZOO.prefix(who.state.uuid), who.session_id
    ),
    "X server lags": lambda stage, who: stage._lagging.add(who.name),
    # the servers, and whoever else is there
    "somebody else stands": lambda stage, _: stage.ensemble.make("K__lock__", 0x4B01),
    "somebody deletes the parent": lambda stage, _: stage.ensemble.remove_parent(),
    "somebody deletes the record": lambda stage, _: stage.ensemble.commit(record=None),
    r"somebody deletes (\w+#[0-9]+)": lambda stage, _, name: stage.ensemble.remove(node_of(name)),
    r"somebody touches (\w+#[0-9]+)": lambda stage, _, name: stage._touch(name),
    "somebody raises the generation": lambda stage, _: stage._change_record(),
    "somebody pauses the election": lambda stage, _: stage._pause(Pause(by="K")),
    r"somebody asks (\w+#[0-9]+) to go": lambda stage, _, name: stage._ask_to_go(name),
    "somebody resumes the election": lambda stage, _: stage._pause(None),
    "the next number is ([0-9]+)": lambda stage, _, number: stage.ensemble.commit(
        counter=int(number)
    ),
}
