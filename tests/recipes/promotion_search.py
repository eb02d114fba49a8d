"""The search: every world that can be reached, breadth first, and what must hold in each."""

from __future__ import annotations

import random
import re
from collections import deque
from typing import Final

import attrs
from recipes.promotion_world import FIRST, Rules, Server, World, healed, moves, revived

from zkelect.recipes.member import Done, Member, Outcome, Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.position import Branch, Position, Relation, compare

__all__ = ["Report", "Violation", "beginning", "path", "search", "walk"]

_ROUNDS: Final = 400


class Violation(Exception):  # found: that is what a search is for
    """A promise is broken.

    :ivar promise: which. :ivar way: the moves to there.
    """

    def __init__(self, promise: str, way: list[str]) -> None:
        super().__init__(f"{promise}: {' > '.join(way)}")
        self.promise = promise
        self.way = way


@attrs.frozen(kw_only=True)
class Report:
    """What a search has seen."""

    worlds: int
    finished: bool
    depth: int
    ends: int
    happened: frozenset[str]
    phases: frozenset[str]

    def __str__(self) -> str:
        rest = "that is all there are" if self.finished else "there are more"
        return (
            f"{self.worlds:,} worlds ({rest}), depth {self.depth}, {self.ends:,} brought to an end"
        )


def beginning(*, lagging: bool = False) -> World:
    """A steady cluster: a is the primary, b and c follow it; c may lack something."""

    def server(name: str, role: Role, offset: int) -> Server:
        position = Position((Branch("one"),), offset)
        primary = role is Role.PRIMARY
        following = None if primary else "a"
        return Server(
            name=name,
            done=Done(serial=1, outcome=Outcome.DONE),
            role=role,
            position=position,
            following=following,
            open=primary,
            token="p00" if primary else "",
            reign=FIRST if primary else "",
        )

    page = Page(
        phase=Phase.STEADY,
        token=FIRST,
        coordinator="b",
        primary="a",
        position=Position((Branch("one"),), 0),
        promoted_by=FIRST,
        reign=FIRST,
        primary_token="p00",
        members=tuple(Member(name=name) for name in "abc"),
        system="s",
    )
    made = (
        server("a", Role.PRIMARY, 2),
        server("b", Role.REPLICA, 2),
        server("c", Role.REPLICA, 1 if lagging else 2),
    )
    acked = Position((Branch("one"),), 2)
    servers = tuple(attrs.evolve(each, page=page) for each in made)
    return World(servers=servers, page=page, office="a", acked=acked)


def search(start: World, rules: Rules, *, worlds: int, heal_every: int = 50) -> Report:
    """Visit every world within the rules, or the first so many; raise at a broken promise.

    :param heal_every: of so many worlds one is followed to its end when all faults stop.
    """
    ways: dict[World, tuple[World, str] | None] = {start: None}
    queue = deque([(start, 0)])
    happened: set[str] = set()
    phases: set[str] = set()
    ends = depth = visited = 0
    while queue and visited < worlds:
        world, depth = queue.popleft()
        visited += 1
        broken = _broken(world, rules)
        if broken:
            raise Violation(broken, _way(ways, world))
        if visited % heal_every == 0:
            ends += 1
            _bring_to_an_end(world, rules, _way(ways, world), random.Random(visited))
        for label, after in moves(world, rules):
            if after not in ways:
                ways[after] = (world, label)
                happened.add(label)
                if after.page is not None:
                    phases.add(after.page.phase)
                queue.append((after, depth + 1))
    return Report(
        worlds=visited,
        finished=not queue,
        depth=depth,
        ends=ends,
        happened=frozenset(happened),
        phases=frozenset(phases),
    )


def _way(ways: dict[World, tuple[World, str] | None], world: World) -> list[str]:
    found: list[str] = []
    while (step := ways[world]) is not None:
        world, label = step
        found.append(label)
    return found[::-1]


def walk(start: World, rules: Rules, *, chance: random.Random, steps: int) -> World:
    """Go a long way by chance, then bring it to an end; raise at a broken promise."""
    world, way = start, []
    for _ in range(steps):
        possible = [move for move in moves(world, rules) if move[1] != world]
        if not possible:
            break
        label, world = chance.choice(possible)
        way.append(label)
        broken = _broken(world, rules)
        if broken:
            raise Violation(broken, way)
    return _bring_to_an_end(world, rules, way, chance)


def path(start: World, rules: Rules, *, last: str = "returns", steps: int = _ROUNDS) -> list[World]:
    """Return the worlds of a change in which nothing fails, each step as soon as it can be.

    :param last: what happens only when there is nothing else to do: the dead come back.
    :param steps: how far to go if it does not come to rest.
    :raises Violation: a promise is broken.
    """
    calm = attrs.evolve(rules, faults=0, writes=0)
    found = [start]
    seen = {start}
    while len(found) <= steps and not (_at_rest(found[-1]) and found[-1].page != start.page):
        possible = [move for move in moves(found[-1], calm) if move[1] not in seen]
        label, world = min(possible, key=lambda move: _patience(move[0], last))
        found.append(world)
        seen.add(world)
        if broken := _broken(world, rules):
            raise Violation(broken, [label])
    return found


def _patience(label: str, last: str) -> int:
    return 2 if re.search(last, label) else int(label == "time")


# --- what must hold --------------------------------------------------------------------------


def _broken(world: World, rules: Rules) -> str:
    return (
        _two_writable(world)
        or _one_token_twice(world)
        or _lost(world, rules)
        or ("one was chosen, and another has more" if world.worse else "")
        or _lagging_target(world)
        or ("one was opened that does not have what was open before" if world.astray else "")
    )


def _two_writable(world: World) -> str:
    names = [server.name for server in world.servers if server.writes]
    return f"{names} take writes at the same time" if len(names) > 1 else ""


def _one_token_twice(world: World) -> str:
    for orders in (world.promotions, world.opened):
        tokens = [token for token, _ in orders]
        if len(tokens) != len(set(tokens)):
            return f"two promotions with one token: {sorted(orders)}"
    return ""


def _lost(world: World, rules: Rules) -> str:
    """In synchronous mode whoever takes writes has all that was ever acknowledged."""
    if not rules.policy.synchronous or world.acked is None:
        return ""
    for server in world.servers:
        has_all = (Relation.EQUAL, Relation.AHEAD)
        if server.writes and compare(server.position, world.acked) not in has_all:
            return f"{server.name} lacks {world.acked}, which was acknowledged"
    return ""


def _lagging_target(world: World) -> str:
    """In a switchover the target has all that the old primary ever wrote, before it goes on."""
    page = world.page
    if page is None or page.phase is not Phase.CATCH_UP or not page.planned:
        return ""
    old, target = world.server(page.primary), world.server(page.winner)
    assert old is not None
    assert target is not None
    lacks = compare(target.position, old.position) not in (Relation.EQUAL, Relation.AHEAD)
    return f"{target.name} is to follow {old.name}, and lacks something" if lacks else ""


# --- the end, when faults stop -----------------------------------------------------------------


def _bring_to_an_end(world: World, rules: Rules, way: list[str], chance: random.Random) -> World:
    """All return, nothing fails any more, whoever can act acts, in any order: it comes to rest.

    A step that is in time is no fault, so no time passes while anybody can act.
    """
    calm = attrs.evolve(rules, faults=0, writes=0)
    world = attrs.evolve(world, paused=False)
    done: list[str] = []
    for _ in range(_ROUNDS):
        if _at_rest(world):
            return world
        for server in world.servers:
            if server.alive and server.cut:
                world = world.put(healed(server))
            elif not server.alive and not server.here:
                world = world.put(revived(server))
        possible = [move for move in moves(world, calm) if move[1] != world]
        if not possible:
            break
        soon = [move for move in possible if move[0] != "time"]
        label, world = chance.choice(soon or possible)
        done.append(label)
        broken = _broken(world, calm)
        if broken:
            raise Violation(broken, [*way, "…", *done])
    raise Violation("it does not come to an end", [*way, "…", *done])


def _at_rest(world: World) -> bool:
    page = world.page
    if page is None or page.phase is not Phase.STEADY or world.intent is not None:
        return False
    primary = world.server(page.primary)
    if primary is None or not primary.writes or page.cooling:
        return False
    others = [server for server in world.servers if server is not primary]
    return all(
        other.role is Role.REPLICA and other.following == primary.name and not other.frozen
        for other in others
    )
