"""What is in the way is told; what is not known for certain is not taken for known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest
from recipes.memory_cluster import Cluster, MemoryResource

from zkelect.cli.drawing import Page as Sheet
from zkelect.cli.promote.status import describe
from zkelect.recipes.admission import admit
from zkelect.recipes.choice import Policy, SyncSet, discords
from zkelect.recipes.member import Heartbeat, Member, Observed, Role
from zkelect.recipes.operating import ClusterStatus
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.resource import NotNow, Unfit
from zkelect.recipes.synchrony import Synchrony

if TYPE_CHECKING:
    from collections.abc import Collection

PAGE = Page(
    phase=Phase.STEADY,
    token="7",
    coordinator="a",
    primary="a",
    reign="6",
    members=(
        Member(name="a"),
        Member(name="b"),
        Member(name="c"),
        Member(name="d", candidate=False),
    ),
)


def beat(name: str, **changes: Any) -> Heartbeat:
    member = Member(name=name, address=changes.pop("address", ""))
    return Heartbeat(member=member, observed=Observed(role=Role.REPLICA), **changes)


class Board:
    """Keeps what is recorded."""

    path = "/cluster"

    def __init__(self) -> None:
        self.recorded: list[tuple[str, ...]] = []

    def sync(self) -> tuple[SyncSet | None, int]:
        names = self.recorded[-1] if self.recorded else ()
        return SyncSet(reign="6", names=names), 0

    def record(self, leadership: object, sync: SyncSet, *, version: int) -> None:
        self.recorded.append(sync.names)


class Waiting(MemoryResource):
    """A primary that does what it is told, and may not be able to say so."""

    def __init__(self) -> None:
        super().__init__(Cluster(*"abcd"), "a")
        self.attached: set[str] = set()
        self.waits_for: frozenset[str] = frozenset()
        self.mute = False

    def require(self, names: Collection[str], deadline: float) -> None:
        self.waits_for = frozenset(names)
        if self.mute:
            self.mute = False
            raise NotNow("it was told so, and whether it does is not known")

    def in_step(self) -> Collection[str]:
        return self.attached


class Primary:
    """The primary's agent, as far as it keeps who is in step."""

    def __init__(self) -> None:
        self.board, self.server = Board(), Waiting()
        board: Any = self.board
        self.synchrony = Synchrony(board, self.server, Policy(synchronous=True))

    def keep(self) -> None:
        leadership: Any = None
        try:
            self.synchrony.keep(PAGE, leadership, 3)
        except NotNow:
            return
        assert self.recorded <= self.server.waits_for

    @property
    def recorded(self) -> frozenset[str]:
        return frozenset(self.board.recorded[-1] if self.board.recorded else ())


def test_h84_a_primary_of_which_it_is_not_known_for_whom_it_waits_is_told_anew() -> None:
    """It was told to wait for c, and we did not hear that it does; then b is there again."""
    primary = Primary()
    primary.server.attached = {"b"}
    primary.keep()
    assert primary.recorded == {"b"}
    primary.server.attached, primary.server.mute = {"c"}, True
    primary.keep()
    assert primary.recorded == frozenset()
    primary.server.attached = {"b"}
    primary.keep()
    assert primary.recorded == primary.server.waits_for == {"b"}


def test_who_cannot_wait_for_others_is_refused_a_synchronous_policy() -> None:
    board: Any = Board()
    server: Any = object()
    with pytest.raises(Unfit, match="no synchronous mode"):
        Synchrony(board, server, Policy(synchronous=True))


def test_h84_only_who_may_win_some_day_is_waited_for() -> None:
    """Not a backup that receives all of it, not a member that is never promoted, not ourselves."""
    primary = Primary()
    primary.server.attached = {"a", "barman", "d"}
    primary.keep()
    assert primary.server.waits_for == frozenset()
    primary.server.attached = {"a", "barman", "d", "c"}
    primary.keep()
    assert primary.recorded == {"c"}


# --- what a person is told ----------------------------------------------------------------------


def test_agents_with_one_policy_agree() -> None:
    same = [
        beat("a", rules=Policy(lag_limit=9).told()),
        beat("b", rules=Policy(lag_limit=9).told()),
    ]
    assert discords(same) == ()
    assert discords([*same, beat("old")]) == ()
    assert discords([]) == ()


def test_where_policies_differ_is_told_of_each_agent() -> None:
    careful, quick = Policy(synchronous=True).told(), Policy().told()
    told = discords([beat("a", rules=careful), beat("b", rules=quick)])
    assert told == (
        "not all agents have the same policy: a has synchronous=True",
        "not all agents have the same policy: b has synchronous=False",
    )


def test_a_status_says_what_an_agent_cannot_do() -> None:
    stuck = beat("b", trouble="does not follow yet: no route to host")
    found = ClusterStatus(
        page=PAGE, beats=(beat("a"), stuck), verdicts=(), coordinator="a", holder="a", sync=None,
        paused=None,
    )  # fmt: skip
    assert found.troubles == ("b does not follow yet: no route to host",)
    shown = [line.text for line in describe(Sheet(width=80, longest=1000), "/cluster", found)]
    assert "b does not follow yet: no route to host" in shown


@pytest.mark.parametrize(
    ("name", "address", "refused"),
    [("twin", "here:1", True), ("a", "here:1", False), ("b", "here:2", False), ("b", "", False)],
)
def test_a_second_agent_of_one_address_is_refused(name: str, address: str, refused: bool) -> None:
    there = (beat("a", address="here:1"), beat("c"))
    member = Member(name=name, address=address)
    if not refused:
        admit("/cluster", member, "s", PAGE, there)
        return
    with pytest.raises(Unfit, match="a is there, and has the address here:1, too"):
        admit("/cluster", member, "s", PAGE, there)


def test_a_server_of_another_cluster_is_refused() -> None:
    page = attrs.evolve(PAGE, system="s")
    admit("/cluster", Member(name="b"), "", page, ())
    admit("/cluster", Member(name="b"), "s", page, ())
    with pytest.raises(Unfit, match="/cluster is the path of the cluster s, and b is of t"):
        admit("/cluster", Member(name="b"), "t", page, ())
