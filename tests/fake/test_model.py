"""Anything can happen to N machines, at any time, in any order: what must hold all the same.

The machines, their sessions, leases and probes are the real code; the servers are in
memory. Hypothesis draws what happens next, down to which thread of which client hands over
its next message. Every rule can do something when it fires; how often each did is printed.

Two acts of outsiders are what no lease can know: closing somebody's session, deleting
somebody's znode. A leadership that was touched by one is *excused*: it is not counted among
those of which there must be at most one, only the fence holds it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from fake.hosts import PATH, SESSION_TIMEOUT, TICK, Host
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zkelect
from zkelect.core.state import Phase
from zkelect.stores import MemoryFence
from zkelect.testing import FakeEnsemble, expire
from zkelect.testing.conversation import REPLIES, REQUESTS
from zkelect.testing.fake import Step
from zkelect.testing.fake_machine import Move
from zkelect.testing.fake_server import FakeServer

HEALED_WITHIN = 7
"""Session timeouts: one to expire, up to five until the slow re-read, one to stand again."""

LOSABLE = ("create2", "getChildren", "getData", "multi", "delete", "create", "event")

LONG_OR_NOT = st.sampled_from([0.0, 1.5 * SESSION_TIMEOUT])

Fits = Callable[[Host], object]


def act(fits: Fits) -> Callable[[Callable[[Any, Host, Any], None]], Any]:
    """Make a rule for one of the living hosts to which it can do something."""

    def decorate(function: Callable[[Any, Host, Any], None]) -> Any:
        def fire(model: Any, data: Any) -> None:
            host = data.draw(st.sampled_from(model.those(fits)), label="host")
            model.fired[function.__name__] += 1
            function(model, host, data)

        fire.__name__ = function.__name__
        return precondition(lambda model: bool(model.those(fits)))(rule(data=st.data())(fire))

    return decorate


def happen(
    possible: Callable[[Any], object] = lambda _: True,
) -> Callable[[Callable[[Any, Any], None]], Any]:
    """Make a rule that is for no host in particular."""

    def decorate(function: Callable[[Any, Any], None]) -> Any:
        def fire(model: Any, data: Any) -> None:
            model.fired[function.__name__] += 1
            function(model, data)

        fire.__name__ = function.__name__
        return precondition(lambda model: bool(possible(model)))(rule(data=st.data())(fire))

    return decorate


class Model(RuleBasedStateMachine):
    """What can happen, and what must hold after every single step."""

    fired: ClassVar[Counter[str]] = Counter()
    seen: ClassVar[Counter[str]] = Counter()

    @initialize(
        count=st.integers(2, 3),
        servers=st.sampled_from([1, 3]),
        known=st.booleans(),
        head_start=st.sampled_from([0.0, 1.0]),
    )
    def begin(self, count: int, servers: int, known: bool, head_start: float) -> None:
        self.fake = FakeEnsemble(servers, tick_time=TICK)
        self.tick = TICK if known else None
        self.hosts = [self.connect(f"h{n}", n % servers) for n in range(count)]
        self.fence = MemoryFence(domain="model")
        self.foreign_nodes: set[str] = set()
        self.foreign_sessions: set[int] = set()
        self.tokens: list[zkelect.Token] = []
        self.counted: Counter[str] = Counter()
        for host in self.hosts:
            host.stand()
        self.fake.advance(head_start, self.first)

    def connect(self, name: str, server: int) -> Host:
        return Host(self.fake, name, tick=self.tick, server=server)

    def those(self, fits: Fits) -> list[Host]:
        return [host for host in self.hosts if not host.dead and fits(host)]

    def excused(self, leadership: zkelect.Leadership) -> bool:
        """Whether an outsider has closed its session, or deleted its znode."""
        touched = leadership.node in self.foreign_nodes
        return touched or leadership.session_id in self.foreign_sessions

    def first(self, steps: Sequence[Step]) -> Step:
        """Choose the first step, after a look at everything."""
        self.look()
        return steps[0]

    # --- the programs ----------------------------------------------------------------------

    @act(lambda host: not host.paused and host.may_stand)
    def a_host_stands(self, host: Host, _: Any) -> None:
        host.stand()

    @act(lambda host: not host.paused and host.stands and host.leadership is None)
    def a_host_waits_no_longer(self, host: Host, _: Any) -> None:
        host.cancel()

    @act(lambda host: not host.paused and host.passes)
    def a_leader_works(self, host: Host, data: Any) -> None:
        """It prepares, claims and writes: as much of it as is drawn."""
        for _ in range(data.draw(st.integers(1, 3), label="how much")):
            if host.state.phase is Phase.PREPARING:
                host.prepare()
            elif not host.claimed:
                self.guarded(host, self.fence.claim)
            else:
                self.guarded(host, self.write)

    @act(lambda host: not host.paused and host.leadership is not None)
    def a_body_returns(self, host: Host, _: Any) -> None:
        self.seen[f"ended: {host.terms[-1].reason or 'resigned'}"] += 1
        host.return_body()

    @act(lambda host: host.ends)
    def an_old_leader_writes(self, host: Host, _: Any) -> None:
        """Its check was long ago: only the token is left to stop it."""
        try:
            self.write(host.ends[-1].token)
        except zkelect.Fenced:
            self.seen["old leaders fenced"] += 1

    def write(self, claimant: Any) -> None:
        with self.fence.transaction(claimant) as writes:
            writes.append(self.fake.clock.now)
        self.seen["writes"] += 1

    def guarded(self, host: Host, work: Callable[[zkelect.Leadership], None]) -> None:
        """A leader whose check passes is never fenced, unless an outsider has touched it."""
        leadership = host.leadership
        assert leadership is not None
        try:
            work(leadership)
            host.claimed = True
        except zkelect.Fenced:
            assert self.excused(leadership), f"{host} holds a lease, and is fenced"
            self.seen["leaders fenced"] += 1
        except zkelect.LeadershipLost:
            self.seen["leaders that a fence has ended"] += 1

    # --- messages and time -------------------------------------------------------------------

    @happen(lambda model: model.fake.steps)
    def one_thing_happens(self, data: Any) -> None:
        self.fake.take(data.draw(st.sampled_from(self.fake.steps), label="step"))

    @happen(lambda model: len(model.fake.steps) > 1)
    def some_things_happen(self, data: Any) -> None:
        for _ in range(data.draw(st.integers(2, 12), label="how many")):
            if steps := self.fake.steps:
                self.look()
                self.fake.take(data.draw(st.sampled_from(steps), label="step"))

    @happen()
    def all_is_let_through(self, _: Any) -> None:
        self.fake.settle(self.first)

    @happen()
    def time_passes_and_nothing_is_let_through(self, data: Any) -> None:
        self.fake.elapse(data.draw(st.sampled_from([0.05, 0.3, 1.0, 3.0]), label="seconds"))
        self.fake.turn()
        self.look_at_the_clock()

    @happen()
    def a_short_time_passes(self, data: Any) -> None:
        seconds = data.draw(st.sampled_from([0.1, 0.3, 0.8]), label="seconds")
        self.fake.advance(seconds, self.first)

    @happen()
    def a_long_time_passes(self, data: Any) -> None:
        seconds = data.draw(st.sampled_from([2.0, 4.5, 9.0]), label="seconds")
        self.fake.advance(seconds, self.first)
        self.look_at_the_clock()

    # --- the network -------------------------------------------------------------------------

    @act(lambda host: host.session.connected)
    def a_connection_ends(self, host: Host, _: Any) -> None:
        self.fake.drop(host.session)

    @act(lambda host: not host.cut)
    def a_link_is_cut(self, host: Host, data: Any) -> None:
        """At once, or for so long that everybody notices."""
        host.cut = True
        ways = data.draw(st.sampled_from([(), (REQUESTS,), (REPLIES,)]), label="directions")
        self.fake.cut(host.session, *ways)
        self.fake.advance(data.draw(LONG_OR_NOT, label="seconds"), self.first)

    @act(lambda host: host.cut)
    def a_link_heals(self, host: Host, _: Any) -> None:
        host.cut = False
        self.fake.heal(host.session)

    @act(lambda host: not host.held)
    def a_thread_is_slow(self, host: Host, data: Any) -> None:
        host.held = True
        slow = st.sampled_from([Move.READ, Move.SERVE, Move.ANSWER, Move.EVENT])
        self.fake.hold(host.session, data.draw(slow, label="move"))

    @act(lambda host: host.held)
    def a_thread_goes_on(self, host: Host, _: Any) -> None:
        host.held = False
        self.fake.release(host.session)

    @act(lambda host: host.session.connected)
    def something_will_be_lost(self, host: Host, data: Any) -> None:
        """The next reply or request of a kind, with the connection; or a watch event alone."""
        what = data.draw(st.sampled_from(LOSABLE), label="what")
        if what == "event":
            self.fake.lose_event(host.session)
        elif data.draw(st.booleans(), label="its reply"):
            self.fake.lose_reply(host.session, what)
        else:
            self.fake.lose_request(host.session, what)

    @act(lambda host: host.session.connected)
    def a_session_is_swapped(self, host: Host, _: Any) -> None:
        self.fake.swap(host.session)

    # --- machines and servers ----------------------------------------------------------------

    @act(lambda host: not host.paused)
    def a_process_is_paused(self, host: Host, data: Any) -> None:
        host.paused = True
        self.fake.pause(host.session)
        self.fake.advance(data.draw(LONG_OR_NOT, label="seconds"), self.first)

    @act(lambda host: host.paused)
    def a_process_goes_on(self, host: Host, _: Any) -> None:
        host.paused = False
        self.fake.resume(host.session)

    @act(lambda host: not host.paused)
    def a_machine_sleeps(self, host: Host, data: Any) -> None:
        before, seconds = host.leadership, st.sampled_from([0.2, 2.0, 9.0])
        self.fake.sleep(host.session, data.draw(seconds, label="seconds"))
        assert host.leadership is not before or not host.passes, f"{host} slept, and leads"

    @act(lambda host: host.stands)
    def a_process_dies_and_another_begins(self, host: Host, _: Any) -> None:
        host.dead = True
        self.fake.kill(host.session)
        self.hosts.append(self.connect(f"{host.name}'", 0))
        self.hosts[-1].stand()

    @happen(lambda model: model.sound)
    def a_server_fails(self, data: Any) -> None:
        server = data.draw(st.sampled_from(self.sound), label="server")
        how = data.draw(st.sampled_from(["stop", "isolate", "lag"]), label="how")
        self.seen[f"servers: {how}"] += 1
        getattr(server, how)()
        self.fake.advance(data.draw(LONG_OR_NOT, label="seconds"), self.first)

    @happen(lambda model: len(model.sound) < len(model.fake.servers))
    def a_server_recovers(self, data: Any) -> None:
        broken = [server for server in self.fake.servers if server not in self.sound]
        data.draw(st.sampled_from(broken), label="server").recover()

    @property
    def sound(self) -> list[FakeServer]:
        return [server for server in self.fake.servers if server.votes and not server.lagging]

    @happen()
    def another_server_leads(self, _: Any) -> None:
        self.fake.elect()

    # --- an operator who evicts: no outsider, nobody is excused for it ---------------------------

    @happen(lambda model: model.fake.children(PATH))
    def an_operator_evicts_the_first(self, data: Any) -> None:
        """It may hang just then, or for long already."""
        record = self.fake.znode(f"{PATH}.zkelect")
        assert record is not None  # it is made before the first candidate
        node = min(self.fake.children(PATH), key=lambda node: node[-10:])
        what = data.draw(st.sampled_from([None, Move.READ, Move.EVENT]), label="hangs")
        for host in self.those(lambda host: host.state.node and host.state.node.node == node):
            if what is not None:
                host.held = True
                self.fake.hold(host.session, what)
        fields = json.loads(record.data)
        rows = [*fields.get("evictions", ()), {"id": "1", "node": node}]
        self.fake.put(f"{PATH}.zkelect", json.dumps({**fields, "evictions": rows}).encode())
        self.fake.advance(SESSION_TIMEOUT, self.first)
        if node in self.fake.children(PATH):
            self.seen["deleted when their lease was over"] += 1
            self.fake.delete(f"{PATH}/{node}")
            self.fake.settle(self.first)

    # --- outsiders -----------------------------------------------------------------------------

    @act(lambda host: host.session.link.credentials and host.alive)
    def an_outsider_closes_a_session(self, host: Host, _: Any) -> None:
        self.foreign_sessions.add(host.session.credentials()[0])
        expire(host.session)

    @happen(lambda model: model.fake.children(PATH))
    def an_outsider_deletes_znodes(self, data: Any) -> None:
        """A candidate, or the parent with all of them."""
        nodes = self.fake.children(PATH)
        node = data.draw(st.sampled_from(["", *nodes]), label="node")
        self.foreign_nodes.update([node] if node else nodes)
        self.seen["outsiders delete " + ("a candidate" if node else "the parent")] += 1
        self.fake.delete(f"{PATH}/{node}".rstrip("/"))

    # --- what must hold ------------------------------------------------------------------------

    @invariant()
    def look(self) -> None:
        self.count_new_terms()
        leaders = [host for host in self.hosts if host.passes]
        counted = [host for host in leaders if not self.excused(host.terms[-1])]
        assert len(counted) <= 1, f"{counted} lead at {self.fake.clock.now}"
        self.seen["moments with an excused leader"] += len(leaders) > len(counted)
        for host in self.hosts:
            assert not (host.over and host.passes), f"{host} is deposed, and its check passes"
            self.look_at(host)

    def look_at(self, host: Host) -> None:
        """The znode stays while the body may count on the lease that it has seen."""
        leadership = host.leadership
        if leadership is None or host.dead:
            return
        if not host.over:
            host.proven = leadership.deadline
        elif self.fake.clock.now < host.proven and not self.excused(leadership):
            assert self.fake.znode(f"{PATH}/{leadership.node}"), f"{host} works without a znode"

    def look_at_the_clock(self) -> None:
        """After its watchdog's turn nobody leads beyond the deadline, with or without a link."""
        for host in self.those(lambda host: not host.paused and host.state.leads):
            assert host.passes, f"{host} leads, and its check does not pass"

    def count_new_terms(self) -> None:
        for host in self.hosts:
            for leadership in host.terms[self.counted[host.name] :]:
                self.counted[host.name] += 1
                self.seen["terms"] += 1
                if self.excused(leadership):
                    self.seen["terms that began excused"] += 1
                    continue
                assert all(token < leadership.token for token in self.tokens), "a token fell"
                self.tokens.append(leadership.token)

    @invariant()
    def the_log_never_falls(self) -> None:
        tokens = [token for token, _ in self.fence.log]
        assert tokens == sorted(tokens)

    # --- when everything is well again -----------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "hosts"):
            return
        self.heal()
        self.look()
        self.check_terms()
        self.check_znodes()
        self.check_leader()

    def heal(self) -> None:
        for host in self.those(lambda host: host.paused):
            self.fake.resume(host.session)
        self.fake.mend()
        for _ in range(2 * HEALED_WITHIN):
            self.fake.advance(SESSION_TIMEOUT / 2, self.first)
            for host in self.those(lambda host: host.over):
                host.return_body()
            for host in self.those(lambda host: host.state.phase is Phase.PREPARING):
                host.prepare()
        self.fake.settle(self.first)

    def check_terms(self) -> None:
        for host in self.those(lambda _: True):
            lasting = [host.leadership] if host.leadership is not None else []
            assert [*host.ends, *lasting] == host.terms, f"{host}: {host.ends} of {host.terms}"
            assert not host.errors, host.errors

    def check_znodes(self) -> None:
        standing = self.those(lambda host: host.stands)
        nodes = [host.state.node.node for host in standing if host.state.node is not None]
        assert sorted(self.fake.children(PATH)) == sorted(nodes), "orphans"
        for host in standing:
            gone = [entry.node for entry in host.state.ahead if entry.node not in nodes]
            assert not gone, f"{host} waits for {gone}"
            assert not host.state.doomed

    def check_leader(self) -> None:
        leading = self.those(lambda host: host.state.phase is Phase.LEADING and host.passes)
        assert len(leading) == bool(self.those(lambda host: host.stands)), f"{self.hosts}"
        self.seen["worlds healed with a leader"] += len(leading)


@pytest.mark.timeout(600)  # when it fails, Hypothesis looks for the shortest way to it
def test_whatever_happens(capsys: pytest.CaptureFixture[str]) -> None:
    Model.fired.clear()
    Model.seen.clear()
    run_state_machine_as_test(
        Model, settings=settings(max_examples=100, stateful_step_count=50, print_blob=True)
    )
    with capsys.disabled():
        print(f"\n{sum(Model.fired.values())} rules fired:")
        for name, count in sorted((Model.fired + Model.seen).items()):
            print(f"  {count:7} {name.replace('_', ' ')}")
    never = [name for name, part in vars(Model).items() if is_rule(part) and not Model.fired[name]]
    assert not never


def is_rule(part: object) -> bool:
    """Hypothesis marks its rules so."""
    return hasattr(part, "hypothesis_stateful_rule")
