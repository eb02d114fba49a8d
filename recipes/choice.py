"""Who shall be primary: the most caught-up healthy candidate, and why each other one not.

Pure: values in, values out. A lock never chooses here, and neither does whoever is quickest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import attrs

from zkelect import InvalidArgument
from zkelect.recipes.member import Heartbeat, Outcome, Role
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.position import Position, Relation, compare, trunk

__all__ = ["Choice", "Policy", "SyncSet", "Verdict", "choose", "discords", "judge"]


def _positive(_instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 < value < float("inf"):
        raise InvalidArgument(attribute.name, value, "seconds above 0")


def _at_least_one(_instance: object, attribute: attrs.Attribute[int], value: int | None) -> None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise InvalidArgument(attribute.name, value, "a whole number from 1")


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@attrs.frozen(kw_only=True)
class Policy:
    """How careful a cluster is; all its agents are given the same.

    :ivar synchronous: only a member of the recorded sync set may win, so that no acknowledged write
        is lost; else what the winner lacks is.
    :ivar sync_size: for how many others a primary waits; with fewer attached, for those.
    :ivar lag_limit: in offsets; who is further behind is no candidate. None: no limit.
    :ivar min_candidates: with fewer eligible ones there is no fail-over.
    :ivar min_seen: how many members besides the old primary must be there; None: a majority of
        them.
    :ivar patience: seconds for which a primary must be missing, or failing.
    :ivar cool_down: seconds after a change before the next fail-over.
    :ivar phase_timeout: seconds for one step of a change.
    :ivar join_timeout: seconds for a server to be rewound and to follow.
    :ivar require_fence: no fail-over unless the old primary was fenced from outside.
    """

    synchronous: bool = False
    sync_size: int = attrs.field(default=1, validator=_at_least_one)
    lag_limit: int | None = attrs.field(default=None)
    min_candidates: int = attrs.field(default=1, validator=_at_least_one)
    min_seen: int | None = attrs.field(default=None, validator=_at_least_one)
    patience: float = attrs.field(default=2.0, validator=_positive)
    cool_down: float = attrs.field(default=30.0, validator=_positive)
    phase_timeout: float = attrs.field(default=30.0, validator=_positive)
    join_timeout: float = attrs.field(default=600.0, validator=_positive)
    require_fence: bool = False

    def told(self) -> str:
        """Return all of it as words ``name=value``, so that agents can be compared."""
        fields = sorted(attrs.asdict(self).items())
        return " ".join(f"{name}={_plain(value)}" for name, value in fields)

    @lag_limit.validator
    def _is_limit(self, attribute: attrs.Attribute[int | None], value: int | None) -> None:
        if value is not None and (not isinstance(value, int) or value < 0):
            raise InvalidArgument("lag_limit", value, "offsets from 0, or None")


@attrs.frozen(kw_only=True)
class SyncSet:
    """Those who have every write that a primary has acknowledged, as it recorded them itself.

    :ivar reign: of the page, as it was then: a set from an earlier time as primary is void.
    """

    reign: str
    names: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Verdict:
    """Whether a member may win; ``reason`` says why not, and is empty when it may."""

    name: str
    reason: str = ""
    position: Position | None = None

    @property
    def eligible(self) -> bool:
        """Whether it may."""
        return not self.reason


@attrs.frozen(kw_only=True)
class Choice:
    """Who wins, None when nobody may, and the verdict on each member."""

    winner: str | None
    verdicts: tuple[Verdict, ...]
    reason: str = ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why nobody wins, one line for each member."""
        told = tuple(f"{each.name}: {each.reason}" for each in self.verdicts if each.reason)
        return (self.reason, *told) if self.reason else told


def choose(beats: Iterable[Heartbeat], page: Page, policy: Policy, sync: SyncSet | None) -> Choice:
    """Choose among those that are there, by the positions in which they are frozen.

    Those that failed in this change are taken again when nobody else is left.
    """
    there = {beat.name: beat for beat in beats}
    verdicts = judge(there.values(), page, policy, sync)
    eligible = [there[each.name] for each in verdicts if each.eligible]
    fresh = [beat for beat in eligible if beat.name not in page.passed_over]
    if len(eligible) < policy.min_candidates:
        reason = f"{len(eligible)} eligible, and {policy.min_candidates} must be"
        return Choice(winner=None, verdicts=verdicts, reason=reason)
    best = functools.reduce(functools.partial(_better, page), fresh or eligible)
    return Choice(winner=best.name, verdicts=verdicts)


def judge(
    beats: Iterable[Heartbeat], page: Page, policy: Policy, sync: SyncSet | None
) -> tuple[Verdict, ...]:
    """Return a verdict on every member, also on those that are not there, by name."""
    there = {beat.name: beat for beat in beats}
    names = sorted({*there, *(member.name for member in page.members)})
    furthest = _furthest(there.values(), page)
    return tuple(
        Verdict(
            name=name,
            reason=_objection(there.get(name), page, policy, sync, furthest),
            position=position_of(there[name], page) if name in there else None,
        )
        for name in names
    )


def discords(beats: Iterable[Heartbeat]) -> tuple[str, ...]:
    """Return where the policies of agents differ, a line for each agent; it should be empty.

    Who is coordinator decides by its own, and the primary waits for others by its own.
    """
    told = {beat.name: frozenset(beat.rules.split()) for beat in beats if beat.rules}
    agreed = frozenset.intersection(*told.values()) if told else frozenset()
    return tuple(
        f"not all agents have the same policy: {name} has {' '.join(sorted(rules - agreed))}"
        for name, rules in sorted(told.items())
        if rules - agreed
    )


def position_of(beat: Heartbeat, page: Page) -> Position | None:
    """Return what it has: as it was frozen for this page, or as it was seen last."""
    done = beat.answered(page.serial)
    return beat.observed.position if done is None or done.position is None else done.position


def _objection(
    beat: Heartbeat | None,
    page: Page,
    policy: Policy,
    sync: SyncSet | None,
    furthest: tuple[int, int],
) -> str:
    """Return the first reason against this member; empty: none."""
    if beat is None:
        return "not there: its agent has no session"
    return (
        _unfit(beat, page)
        or _unsynchronous(beat, page, policy, sync)
        or _astray(beat, page)
        or _lagging(beat, page, policy, furthest)
        or _unfrozen(beat, page)
    )


def _unfit(beat: Heartbeat, page: Page) -> str:
    seen = beat.observed
    if not beat.member.candidate:
        return "it is never promoted: candidate=False"
    if page.system and seen.system and seen.system != page.system:
        return f"it is of another system: {seen.system}, and not {page.system}"
    if seen.rebuild:
        return f"it needs a rebuild: {seen.rebuild}"
    if seen.role in (Role.UNKNOWN, Role.STOPPED):
        return f"its server is {seen.role}{_told(seen.detail)}"
    if not seen.healthy:
        return f"it is not healthy{_told(seen.detail)}"
    if seen.role is Role.PRIMARY and page.phase is not Phase.STEADY:
        return "it still takes writes"
    return ""


def _told(detail: str) -> str:
    return f": {detail}" if detail else ""


def _unsynchronous(beat: Heartbeat, page: Page, policy: Policy, sync: SyncSet | None) -> str:
    """The primary itself has what it has acknowledged; a set of another reign is void."""
    if not policy.synchronous or page.primary is None or beat.name == page.primary:
        return ""
    if sync is None or sync.reign != page.reign:
        return f"{page.primary} has recorded no sync set"
    if beat.name in sync.names:
        return ""
    return f"not in the sync set, in which are: {', '.join(sync.names) or 'none'}"


def _astray(beat: Heartbeat, page: Page) -> str:
    position = position_of(beat, page)
    if position is None:
        return "its position is not known"
    for wanted in (page.position, page.target):
        if wanted is not None:
            relation = compare(position, wanted)
            if relation in (Relation.DIVERGED, Relation.UNRELATED):
                return f"its history is another one: {position} and {wanted} are {relation}"
    return ""


def _lagging(beat: Heartbeat, page: Page, policy: Policy, furthest: tuple[int, int]) -> str:
    position = position_of(beat, page)
    if policy.lag_limit is None or position is None or page.position is None:
        return ""
    shared, offset = trunk(position, page.position)
    if shared < furthest[0]:
        return "it is behind the last promotion"
    behind = max(furthest[1] - offset, beat.observed.behind or 0)
    return f"it is {behind} behind, over {policy.lag_limit}" if behind > policy.lag_limit else ""


def _unfrozen(beat: Heartbeat, page: Page) -> str:
    """A position that may still grow is no ground for a choice; a demoted primary's does not."""
    if page.phase is not Phase.FREEZE or beat.name == page.primary:
        return ""
    done = beat.answered(page.serial)
    if done is None:
        return "it has not stopped its replication yet"
    return "" if done.outcome is Outcome.DONE else f"it cannot stop its replication: {done.detail}"


def _furthest(beats: Iterable[Heartbeat], page: Page) -> tuple[int, int]:
    """Return how far anybody has followed the recorded history."""
    if page.position is None:
        return 0, 0
    found = [page.position]
    found += (position for beat in beats if (position := position_of(beat, page)) is not None)
    recorded = page.position
    return max(trunk(position, recorded) for position in found if _follows(position, recorded))


def _follows(position: Position, recorded: Position) -> bool:
    return compare(position, recorded) not in (Relation.DIVERGED, Relation.UNRELATED)


def _better(page: Page, one: Heartbeat, other: Heartbeat) -> Heartbeat:
    """Return the one that has more; of equals the one of higher priority, then the first by name.

    First by what counts: how much each has of the recorded history. On a branch that was
    promoted and never opened nobody has written; but who is on it goes before one that is not, for
    it needs no rewinding.
    """
    mine, theirs = position_of(one, page), position_of(other, page)
    assert mine is not None
    assert theirs is not None
    recorded = page.position or mine
    if trunk(mine, recorded) != trunk(theirs, recorded):
        return one if trunk(mine, recorded) > trunk(theirs, recorded) else other
    relation = compare(mine, theirs)
    if relation in (Relation.AHEAD, Relation.BEHIND):
        return one if relation is Relation.AHEAD else other
    return max(one, other, key=_rank)


def _rank(beat: Heartbeat) -> tuple[int, tuple[int, ...]]:
    return beat.member.priority, tuple(-ord(letter) for letter in beat.name)
