"""What befalls a leader from its own machine: forks, sleep, links that flap."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import zkelect
from zkelect.session.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Operator, Process

# --- H16: fork -----------------------------------------------------------------------------

USES_THE_SESSION = ("run", "leader", "candidates", "start", "stand", "enter")
"""What the child calls and cannot have; ``resign``, ``stop`` and ``close`` may just do nothing."""


@pytest.mark.parametrize("how", ["plainly", "multiprocessing", "locked"])
def test_h16_a_forked_child_does_not_lead_and_leaves_its_parent_alone(
    how: str, spawn: Callable[..., Process], operator: Operator, path: str, tmp_path: Any
) -> None:
    """kazoo #519; gunicorn's preload forks plainly."""
    parent = spawn("A", f"--fence={tmp_path / 'store.db'}")
    token = parent.wait("elected")["token"]
    nodes = operator.nodes(path)
    assert "error" not in parent.does("claim")
    parent.order("fork", how)
    child = parent.wait("child")
    assert (child["remaining"], child["lost"], child["reason"]) == (0.0, True, "forked")
    assert parent.wait("fork")["status"] == 0
    calls = {line["call"]: line for line in parent.all("child-call")}
    for call in ("check", "write"):
        assert (calls[call]["error"], calls[call]["fields"]["reason"]) == (
            "LeadershipLost",
            "forked",
        )
    for call in USES_THE_SESSION:
        assert calls[call]["error"] == "SessionForked", calls[call]
        assert f"process {parent.pid}," in calls[call]["message"]
        assert f"process {child['pid']}," in calls[call]["message"]
    # The parent leads on, and goes on to prove it.
    before = parent.does("check")
    assert before["value"] == token
    assert parent.does("renewed")["value"] == token
    assert "error" not in parent.does("write", "parent")
    assert operator.nodes(path) == nodes
    assert parent.all("deposed") == parent.all("suspended") == []


# --- H17: the machine sleeps ---------------------------------------------------------------


class Clock(SystemClock):
    """The machine's clocks, until it seems to have slept."""

    slept = 0.0

    def boottime(self) -> float:
        return super().boottime() + self.slept


@pytest.mark.parametrize("seconds", [60.0, 0.2])
def test_h17_a_machine_that_slept_leads_no_more(
    seconds: float, cast: Callable[..., Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BOOTTIME runs ahead of MONOTONIC; 0.2 s of it lie well within the lease."""
    clock = Clock()
    monkeypatch.setattr("zkelect.session.session.SystemClock", lambda: clock)
    a = cast("A")
    leadership = a.lead()
    with a.session.lock:  # before the watchdog can say so, let alone a server
        clock.slept = seconds
        with pytest.raises(zkelect.LeadershipLost, match="machine-suspended"):
            leadership.check()
        assert leadership.remaining() == 0.0
        assert leadership.wait_lost(0.0)
        assert leadership.reason == "machine-suspended"
        assert a.election.phase is zkelect.Phase.LEAVING
    assert a.diary.wait("deposed").reason == "machine-suspended"
    again = a.diary.wait("elected", 2).leadership
    assert again.check() == again.token > leadership.token
    a.session.close()
    a.diary.assert_paired()


# --- H18: a link that flaps ----------------------------------------------------------------


def probes_again(candidate: Actor, before: int) -> bool:
    return candidate.session.connected and candidate.forwarder.replies["multi"] > before + 1


def test_h18_twenty_suspensions_cost_neither_the_leadership_nor_a_place(
    cast: Callable[..., Actor],
    operator: Operator,
    path: str,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    a, b, c = (cast(name, session_timeout=4.0) for name in "ABC")
    leadership = a.lead()
    b.queue()
    c.queue()
    nodes = operator.nodes(path)
    for flap in range(1, 21):
        answered = [each.forwarder.replies["multi"] for each in (a, b, c)]
        for each in (a, b, c):
            each.forwarder.drop()
        a.diary.wait("suspended", flap)
        for each, before in zip((a, b, c), answered, strict=True):
            eventually(partial(probes_again, each, before), f"{each.name} is back")
        assert leadership.check() == leadership.token
    assert operator.nodes(path) == nodes
    assert len(a.diary.all("elected")) == 1
    assert [each.diary.all("deposed") for each in (a, b, c)] == [[], [], []]
    assert [each.diary.all("elected") for each in (b, c)] == [[], []]
    a.election.stop()
    assert b.diary.wait("elected").leadership.node == nodes[1]
