"""A cluster in which anything can happen between two steps, for the real engine to go through.

The coordinator looks, and writes later; agents act on the page that they read last, which may be
an old one; an act may fail, or be done and its answer lost; servers die, come back, and are cut off
from ZooKeeper. The only thing taken for granted is what an election promises: nobody is granted the
primary's as long as the server of the one before it takes writes because of its lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from zkelect.recipes.choice import Policy, SyncSet
from zkelect.recipes.duty import Act, duty_of
from zkelect.recipes.member import Answer, Done, Heartbeat, Member, Observed, Outcome, Role
from zkelect.recipes.page import Page, Phase, Request
from zkelect.recipes.position import Branch, Position, Relation, compare, trunk
from zkelect.recipes.promotion import advance
from zkelect.recipes.view import Decision, Resign, View, Wait, Write

FIRST = "t00"
"""The coordinator's term in which the first primary was made."""
WAITED = 1000.0


@attrs.frozen(kw_only=True)
class Server:
    """One server and its agent.

    :ivar ghost: what its heartbeat says while the agent cannot change it: dead, or cut off.
    :ivar here: whether its session is open. :ivar apart: nobody reaches the server either.
    """

    name: str
    role: Role
    position: Position
    following: str | None = None
    frozen: bool = False
    open: bool = False
    token: str = ""
    reign: str = ""
    alive: bool = True
    cut: bool = False
    apart: bool = False
    here: bool = True
    page: Page | None = None
    done: Done | None = None
    ghost: Observed | None = None

    @property
    def writable(self) -> bool:
        return self.alive and self.role is Role.PRIMARY

    @property
    def writes(self) -> bool:
        return self.writable and self.open

    def observed(self) -> Observed:
        return self.ghost or Observed(role=self.role, position=self.position, system="s")


@attrs.frozen(kw_only=True)
class Rules:
    """What is the same in all worlds of one search; what is broken on purpose as well.

    :ivar elects: whether the right to be writable is one of the primary's election.
    :ivar dead_man: whether a primary is stopped before its lease ends.
    """

    policy: Policy
    writes: int = 1
    faults: int = 2
    kinds: frozenset[str] = frozenset(
        {"coordinator", "dies", "cut", "apart", "failed", "untold", "doubt", "pause"}
    )
    elects: bool = True
    dead_man: bool = True
    step: Callable[[Page | None, View, Policy], Decision] = advance
    duty: Callable[..., Act] = duty_of


@attrs.frozen(kw_only=True)
class World:
    """All there is, at one instant."""

    servers: tuple[Server, ...]
    page: Page | None
    term: int = 1
    host: int = 1
    late: bool = False
    intent: tuple[Page | None, Decision] | None = None
    office: str | None = None
    grants: int = 1
    request: Request | None = None
    paused: bool = False
    writes: int = 0
    faults: int = 0
    acked: Position | None = None
    promotions: frozenset[tuple[str, str]] = frozenset()
    opened: frozenset[tuple[str, str]] = frozenset()
    opened_at: Position | None = None
    astray: bool = False
    worse: bool = False

    @property
    def token(self) -> str:
        return f"t{self.term:02}"

    def server(self, name: str | None) -> Server | None:
        return next((each for each in self.servers if each.name == name), None)

    def put(self, server: Server, **changes: Any) -> World:
        old = self.servers
        servers = tuple(server if each.name == server.name else each for each in old)
        return attrs.evolve(self, servers=servers, **changes)


Moved = tuple[str, World]


def moves(world: World, rules: Rules) -> Iterator[Moved]:
    """Return everything that can happen next."""
    yield from _coordinator_moves(world, rules)
    for server in world.servers:
        yield from _agent_moves(world, rules, server)
        yield from _server_moves(world, rules, server)
    if world.faults < rules.faults:
        broken = attrs.evolve(world, faults=world.faults + 1)
        for label, after in _faults(broken):
            if label.split()[0] in rules.kinds:
                yield label, after


# --- the coordinator -----------------------------------------------------------------------


def view_of(world: World, rules: Rules, *, doubt: bool = False) -> View:
    primary = world.server(world.page.primary) if world.page is not None else None
    reached = primary is not None and primary.writable and not primary.apart
    sees = Answer.YES if reached else Answer.NO
    waited = WAITED if world.late else 0.0
    return View(
        token=world.token,
        coordinator=world.servers[world.host].name,
        beats=tuple(
            Heartbeat(
                member=Member(name=server.name),
                observed=server.observed(),
                done=server.done,
                sees=Answer.UNKNOWN if doubt else sees,
                witnessed=primary.name if primary is not None else None,
                token=server.token,
            )
            for server in world.servers
            if server.here
        ),
        holder=world.office,
        sync=SyncSet(reign=FIRST, names=("b",)) if rules.policy.synchronous else None,
        paused="by somebody" if world.paused else "",
        failing=waited,
        elapsed=waited,
        request=world.request,
    )


def _coordinator_moves(world: World, rules: Rules) -> Iterator[Moved]:
    if world.intent is None:
        view = view_of(world, rules)
        decision = rules.step(world.page, view, rules.policy)
        if not isinstance(decision, Wait):
            worse = not rules.policy.synchronous and _is_worse(world.page, view, decision)
            yield "look", attrs.evolve(world, intent=(world.page, decision), worse=worse)
        yield from _look_in_doubt(world, rules)
        if not world.late:
            yield "time", attrs.evolve(world, late=True)
    else:
        yield "write", _carry_out(world)


def _look_in_doubt(world: World, rules: Rules) -> Iterator[Moved]:
    """Look while nobody can tell whether the primary's server takes writes."""
    if world.faults < rules.faults and "doubt" in rules.kinds:
        decision = rules.step(world.page, view_of(world, rules, doubt=True), rules.policy)
        if not isinstance(decision, Wait):
            intent = (world.page, decision)
            yield "look in doubt", attrs.evolve(world, intent=intent, faults=world.faults + 1)


def _is_worse(page: Page | None, view: View, decision: Decision) -> bool:
    """Whether a winner is named though another one that stands frozen just as well has more."""
    if page is None or page.phase is not Phase.FREEZE or page.planned or page.passed_over:
        return False
    if not isinstance(decision, Write) or decision.page.phase is not Phase.CATCH_UP:
        return False
    winner = view.beat(decision.page.winner)
    if winner is None or winner.observed.position is None:
        return True
    own = winner.observed.position
    answers = [beat.answered(page.serial) for beat in view.others(page.primary)]
    found = [done.position for done in answers if done is not None and done.position is not None]
    return any(compare(other, own) is Relation.AHEAD for other in found)


def _carry_out(world: World) -> World:
    assert world.intent is not None
    read, decision = world.intent
    world = attrs.evolve(world, intent=None)
    if isinstance(decision, Resign):
        return _new_term(world)
    if not isinstance(decision, Write) or read != world.page:
        return world
    page = decision.page
    asked = read is None or page.serial != read.serial
    promotions = world.promotions
    if page.phase is Phase.PROMOTE and page.winner is not None:
        promotions |= {(page.promoted_by, page.winner)}
    late = world.late and not asked
    return attrs.evolve(world, page=page, late=late, promotions=promotions)


def _new_term(world: World) -> World:
    hosts = [(world.host + step) % len(world.servers) for step in (1, 2, 0)]
    host = next((host for host in hosts if world.servers[host].here), world.host)
    return attrs.evolve(world, term=world.term + 1, host=host, late=False, intent=None)


# --- agents ----------------------------------------------------------------------------------


def _agent_moves(world: World, rules: Rules, server: Server) -> Iterator[Moved]:
    name = server.name
    if not server.alive or (server.cut and not server.token):
        return
    if not server.here and not server.cut:
        yield f"{name} joins", world.put(attrs.evolve(server, here=True, ghost=None, done=None))
        return
    if world.office == name and not server.token and not server.cut:
        yield f"{name} resigns", attrs.evolve(world, office=None)
    if server.page != world.page and not server.cut:
        yield f"{name} reads", world.put(attrs.evolve(server, page=world.page))
    act = rules.duty(server.page, name, server.observed(), token=server.token)
    if act is Act.NOTHING or _is_answered(server, act):
        return
    if server.cut and act not in (Act.PROMOTE, Act.OPEN):
        return
    for after in _perform(world, server, act, elects=rules.elects):
        if server.cut:
            done = after.server(name)
            assert done is not None
            yield f"{name} {act}, cut off", after.put(attrs.evolve(done, done=server.done))
            continue
        yield f"{name} {act}", after
        if world.faults < rules.faults and after != world and "untold" in rules.kinds:
            undone = after.server(name)
            assert undone is not None
            silent = attrs.evolve(undone, done=server.done)
            yield f"{name} {act}, untold", after.put(silent, faults=world.faults + 1)
    if act is Act.FENCE and world.faults < rules.faults and "doubt" in rules.kinds:
        doubtful = attrs.evolve(server, done=_done(server, answer=Answer.UNKNOWN))
        yield f"{name} fence in doubt", world.put(doubtful, faults=world.faults + 1)
    if world.faults < rules.faults and "failed" in rules.kinds and not server.cut:
        failed = attrs.evolve(server, done=_done(server, Outcome.FAILED))
        yield f"{name} {act} failed", world.put(failed, faults=world.faults + 1)


def _done(server: Server, outcome: Outcome = Outcome.DONE, answer: Answer | None = None) -> Done:
    assert server.page is not None
    position = server.position if outcome is Outcome.DONE else None
    return Done(
        serial=server.page.serial,
        outcome=outcome,
        position=position,
        token=server.token,
        answer=answer,
    )


def _is_answered(server: Server, act: Act) -> bool:
    assert server.page is not None
    done = server.done
    if done is None or done.serial != server.page.serial:
        return False
    if act is Act.DEMOTE and (server.token or server.writable):
        return False
    if act in (Act.PROMOTE, Act.OPEN):
        return done.outcome is Outcome.FAILED or done.token == server.token != ""
    if act is Act.FOLLOW:
        return done.outcome is Outcome.DONE and server.role is Role.REPLICA and not server.frozen
    if act is Act.CATCH_UP:
        return True
    return done.outcome is Outcome.DONE and done.answer is not Answer.UNKNOWN


def _perform(world: World, server: Server, act: Act, *, elects: bool) -> Iterator[World]:
    page = server.page
    assert page is not None
    if act is Act.DEMOTE:
        yield from _demote(world, server)
    elif act is Act.FENCE:
        yield from _fence(world, server)
    elif act is Act.FREEZE:
        frozen = attrs.evolve(server, frozen=True, done=_done(server))
        yield world.put(frozen)
    elif act is Act.CATCH_UP:
        yield world.put(attrs.evolve(server, done=_done(server)))
    elif act is Act.FOLLOW:
        yield from _follow(world, server)
    elif server.token:
        yield _take_over(world, server, open_=act is Act.OPEN)
    elif (not elects or world.office is None) and not world.paused and server.page == world.page:
        elected = attrs.evolve(server, token=f"p{world.grants:02}")
        yield world.put(elected, office=server.name, grants=world.grants + 1)


def _fence(world: World, server: Server) -> Iterator[World]:
    """There is no such means; or there is, and it works."""
    assert server.page is not None
    yield world.put(attrs.evolve(server, done=_done(server, answer=Answer.NO)))
    old = world.server(server.page.primary)
    if old is not None and old.writable:
        world = world.put(attrs.evolve(old, role=Role.DEMOTED, open=False))
    yield world.put(attrs.evolve(server, done=_done(server, answer=Answer.YES)))


def _demote(world: World, server: Server) -> Iterator[World]:
    """Planned or not; what it has reaches the others at the last moment, or does not."""
    was = server.role is Role.PRIMARY
    after = attrs.evolve(server, role=Role.DEMOTED if was else server.role, open=False, token="")
    assert server.page is not None
    if (server.page.phase, server.page.primary) == (Phase.DEMOTE, server.name):
        after = attrs.evolve(after, done=_done(after))
    office = None if world.office == server.name else world.office
    world = world.put(after, office=office)
    yield world
    if was and server.page is not None and server.page.planned:
        for other in world.servers:
            if _receives(other, server) and not server.apart:
                world = world.put(attrs.evolve(other, position=server.position))
        yield world


def _follow(world: World, server: Server) -> Iterator[World]:
    assert server.page is not None
    primary = world.server(server.page.primary)
    if primary is None or not primary.writable or primary.apart:
        return
    relation = compare(server.position, primary.position)
    lost = relation not in (Relation.EQUAL, Relation.BEHIND)
    after = attrs.evolve(
        server,
        role=Role.REPLICA,
        frozen=False,
        following=primary.name,
        position=primary.position if lost else server.position,
    )
    yield world.put(attrs.evolve(after, done=_done(after)))


def _take_over(world: World, server: Server, *, open_: bool) -> World:
    """Promote, verify, claim; with ``open_`` let writers in as well."""
    page = server.page
    assert page is not None
    after = server
    if server.role is not Role.PRIMARY:
        branch = Branch(f"{page.promoted_by}.{server.name}.{page.serial}", server.position.offset)
        history = (*server.position.history, branch)
        position = Position(history, server.position.offset)
        after = attrs.evolve(server, role=Role.PRIMARY, position=position, following=None)
    reign = page.reign if open_ else after.reign
    after = attrs.evolve(after, open=open_ or after.open, frozen=False, reign=reign)
    after = attrs.evolve(after, done=_done(after))
    if not open_ or server.open:
        return world.put(after)
    return world.put(
        after,
        opened=world.opened | {(page.promoted_by, server.name)},
        opened_at=after.position,
        astray=world.opened_at is not None and _strays(after.position, world.opened_at),
    )


def _strays(position: Position, last: Position) -> bool:
    """Whether it has rows that are not in what was open before; to lack some is another matter."""
    if compare(position, last) is not Relation.DIVERGED:
        return False
    shared, offset = trunk(position, last)
    return len(position.history) == shared or position.offset > offset


# --- servers -----------------------------------------------------------------------------------


def _receives(server: Server, primary: Server) -> bool:
    return (
        server.alive
        and server.role is Role.REPLICA
        and not server.frozen
        and server.following == primary.name
        and compare(server.position, primary.position) is Relation.BEHIND
    )


def _server_moves(world: World, rules: Rules, server: Server) -> Iterator[Moved]:
    name = server.name
    if server.writes and world.writes < rules.writes:
        position = attrs.evolve(server.position, offset=server.position.offset + 1)
        written = world.put(attrs.evolve(server, position=position), writes=world.writes + 1)
        yield f"{name} is written to", acknowledge(written, rules, name)
    for other in world.servers:
        if server.writable and not server.apart and _receives(other, server):
            sent = world.put(attrs.evolve(other, position=server.position))
            yield f"{other.name} receives", acknowledge(sent, rules, name)
    if rules.dead_man and (server.cut or not server.alive) and server.token and server.writable:
        stopped = attrs.evolve(server, role=Role.DEMOTED, open=False, token="")
        yield f"{name} stops by its dead-man", world.put(stopped)
    if (
        (server.cut or not server.alive)
        and server.here
        and not (rules.dead_man and server.token and server.writable)
    ):
        gone = attrs.evolve(server, here=False, token="", done=None)
        office = None if world.office == name else world.office
        yield f"{name} expires", world.put(gone, office=office)
    if not server.alive and not server.here:
        yield f"{name} returns", world.put(revived(server))
    elif server.alive and server.cut:
        yield f"{name} returns to ZooKeeper", world.put(healed(server))


def acknowledge(world: World, rules: Rules, name: str) -> World:
    """In synchronous mode a write counts once those have it for whom its server waits."""
    server = world.server(name)
    if server is None or not server.writes or not rules.policy.synchronous:
        return world
    if server.reign == FIRST:
        waits_for = world.server("b")
        if waits_for is None or compare(waits_for.position, server.position) is Relation.BEHIND:
            return world
    return attrs.evolve(world, acked=server.position)


# --- faults --------------------------------------------------------------------------------------


def _faults(world: World) -> Iterator[Moved]:
    yield "coordinator dies", _new_term(world)
    if not world.paused:
        yield "pause", attrs.evolve(world, paused=True)
    for server in world.servers:
        name = server.name
        if server.alive and not server.cut:
            yield f"dies {name}", world.put(_killed(server))
            cut = attrs.evolve(server, cut=True, ghost=server.observed())
            yield f"cut {name}", world.put(cut)
            yield f"apart {name}", world.put(attrs.evolve(cut, apart=True))


def _killed(server: Server) -> Server:
    return attrs.evolve(server, alive=False, open=False, ghost=server.observed())


def revived(server: Server) -> Server:
    """Start again: as a replica, or as one that takes no writes."""
    role = Role.DEMOTED if server.role is Role.PRIMARY else server.role
    return attrs.evolve(server, alive=True, role=role, open=False, token="", done=None)


def healed(server: Server) -> Server:
    """Reach ZooKeeper again, in the same session if that is open."""
    return attrs.evolve(server, cut=False, apart=False, ghost=None if server.here else server.ghost)
