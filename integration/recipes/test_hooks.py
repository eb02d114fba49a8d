"""Hooks that run for real: a ZooKeeper, an agent for each store, and the hooks of the page."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until
from recipes.hooks_stage import HookStage, hooks_staged

from zkelect import SwitchoverFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble


@pytest.fixture
def hooked(
    zookeeper: LocalEnsemble, path: str, tmp_path: Path
) -> Iterator[Callable[..., HookStage]]:
    """Set a stage; options of all agents."""
    with ExitStack() as opened:
        yield lambda *options: opened.enter_context(
            hooks_staged(zookeeper, path, tmp_path, *options)
        )


def switch(stage: HookStage, to: str) -> str:
    return stage.promotion.switchover(to, timeout=WITHIN, why="a test")


# --- switchover ------------------------------------------------------------------------------


def test_h84_a_switchover_loses_no_row_and_the_old_one_follows(
    hooked: Callable[..., HookStage],
) -> None:
    stage = hooked()
    assert stage.add("a", "1")
    assert switch(stage, "b") == "b"
    assert not stage.add("a", "lost")
    assert stage.add("b", "2")
    stage.until_follow("b", "a", "c")
    assert stage.add("b", "3")
    assert [stage.rows(name) for name in stage.names] == [["1", "2", "3"]] * 3
    assert stage.state("b")["token"] > ""


def test_a_hook_that_says_not_now_is_asked_again(hooked: Callable[..., HookStage]) -> None:
    stage = hooked()
    asked = stage.folder / "asked"
    stage.hook(
        "b", "freeze", f"echo >> {asked}; test $(wc -l < {asked}) -lt 3 && exit 75; exec $GO"
    )
    assert switch(stage, "b") == "b"
    assert len(asked.read_text()) == 3


@pytest.mark.parametrize(
    ("script", "told"),
    [
        pytest.param("$GO > /dev/null; echo all is well", "printed no JSON", id="no JSON"),
        pytest.param("echo no space >&2; exit 3", "exit status 3: no space", id="failed"),
        pytest.param("rm $0; exit 1", "failed with exit status 1", id="gone meanwhile"),
    ],
)
def test_a_freeze_that_fails_takes_the_switchover_back(
    hooked: Callable[..., HookStage], script: str, told: str
) -> None:
    stage = hooked()
    assert stage.add("a", "1")
    stage.hook("b", "freeze", script)
    with pytest.raises(SwitchoverFailed, match=told):
        switch(stage, "b")
    assert stage.until_primary("a") == "a"
    assert stage.add("a", "2")


def test_a_promote_that_hangs_is_killed_and_another_one_is_promoted(
    hooked: Callable[..., HookStage],
) -> None:
    stage = hooked()
    pid = stage.folder / "pid"
    stage.hook("b", "promote", f"sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait")
    with pytest.raises(SwitchoverFailed, match="did not end in time, and was killed"):
        switch(stage, "b")
    new = stage.until_primary("a", "c")
    assert stage.add(new, "1")
    assert _is_gone(int(pid.read_text()))


def _is_gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


# --- fail-over -------------------------------------------------------------------------------


def test_h81_the_most_caught_up_one_wins(hooked: Callable[..., HookStage]) -> None:
    stage = hooked()
    assert stage.add("a", "1")
    stage.change("b", follows=None)  # the first by name, and it lags
    assert stage.add("a", "2")
    stage.stop("a")
    stage.kill("a")
    stage.until_primary("c")
    assert stage.add("c", "3")
    assert stage.rows("c") == ["1", "2", "3"]


@pytest.mark.parametrize("phase", ["freeze", "promote", "open"])
def test_h81_a_coordinator_killed_in_a_phase_is_followed_by_one_that_goes_on(
    hooked: Callable[..., HookStage], phase: str
) -> None:
    """The hook waits until its death is certain; nobody is promoted twice with one token."""
    stage = hooked()
    assert stage.add("a", "1")
    claims, there, gone = (stage.folder / name for name in ("claims", "there", "gone"))
    until(lambda: stage.status().coordinator is not None, "there was a coordinator")
    winner = next(name for name in ("b", "c") if name != stage.status().coordinator)
    for name in stage.names:
        stage.hook(name, "claim", f'echo "$ZKELECT_TOKEN {name}" >> {claims}; exec $GO')
    stage.hook(winner, phase, f"touch {there}; test -e {gone} || exit 75; exec $GO")
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            switch(stage, winner)
        except SwitchoverFailed as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(there.exists, f"{winner} was asked to {phase}")
    coordinator = str(stage.status().coordinator)
    stage.kill(coordinator)
    gone.touch()
    asking.join(2 * WITHIN)
    new = stage.until_primary(*(name for name in stage.names if name != coordinator))
    assert stage.add(new, "2")
    assert stage.rows(new) == ["1", "2"]
    claimed = [line.split() for line in claims.read_text().splitlines()]
    assert len({token for token, _ in claimed}) == len({(token, name) for token, name in claimed})


def test_the_dead_man_closes_the_store_of_an_agent_that_hangs(
    hooked: Callable[..., HookStage],
) -> None:
    """Before another one opens; the fence would have done it else, so there is none."""
    stage = hooked()
    order = stage.folder / "order"
    for name in stage.names:
        (stage.folder / "links" / name / "fence").unlink()
        for verb in ("close", "open"):
            stage.hook(name, verb, f'$GO && echo "{verb} {name}" >> {order}')
    stage.freeze("a")
    new = stage.until_primary("b", "c")
    assert order.read_text().split("\n")[:2] == ["close a", f"open {new}"]
    assert not stage.add("a", "lost")
    assert stage.add(new, "1")


def test_h82_one_with_rows_of_its_own_is_rewound(hooked: Callable[..., HookStage]) -> None:
    stage = hooked()
    stage.stop("a")
    stage.kill("a")
    new = stage.until_primary("b", "c")
    assert stage.add(new, "1")
    stage.change("a", down=False, rows=["astray"])
    stage.begin("a")
    stage.until_follow(new, "a")
    assert stage.rows("a") == ["1"]


def test_h82_one_that_cannot_follow_is_told_to_need_a_rebuild(
    hooked: Callable[..., HookStage],
) -> None:
    stage = hooked()
    stage.kill("c")
    stage.change("c", history=["other@0"], follows=None)
    assert switch(stage, "b") == "b"
    stage.begin("c")
    stage.until_told("needs a rebuild: it has another history from the first row on")


# --- nobody is promoted ------------------------------------------------------------------------


def test_h85_nobody_is_eligible_and_every_reason_is_listed(
    hooked: Callable[..., HookStage],
) -> None:
    stage = hooked()
    assert stage.add("a", "1")
    stage.hook("b", "position", "echo the disk is gone >&2; exit 1")
    sick = '{"role": "replica", "position": "one@0:1", "healthy": false, "detail": "it overheats"}'
    stage.hook("c", "position", f"echo '{sick}'")
    stage.until_told("its server is unknown: the hook position failed with exit status 1: the disk")
    stage.until_told("it is not healthy: it overheats")
    stage.stop("a")
    stage.until_told("its server is stopped")
    stage.until_logged("0 eligible, and 1 must be")
    assert stage.status().primary == "a"
    stage.start("a")
    assert stage.until_primary("a") == "a"


def test_without_reach_nobody_follows_a_primary_whose_agent_is_gone(
    hooked: Callable[..., HookStage],
) -> None:
    stage = hooked()
    for name in stage.names:
        (stage.folder / "links" / name / "reach").unlink()
    stage.kill("a")
    stage.until_logged("b cannot tell whether a takes writes", "c cannot tell whether a takes")
    assert stage.status().primary == "a"


def test_a_fence_that_failed_stops_the_fail_over(hooked: Callable[..., HookStage]) -> None:
    stage = hooked()
    for name in stage.names:
        stage.hook(name, "fence", "exit 1")
    stage.stop("a")
    stage.kill("a")
    stage.until_logged("whether a is fenced is not known")
    for name in ("b", "c"):
        stage.hook(name, "fence", "exec $GO")
    stage.until_primary("b", "c")


def test_without_a_fence_where_one_is_required_there_is_no_fail_over(
    hooked: Callable[..., HookStage],
) -> None:
    stage = hooked("--require-fence")
    for name in stage.names:
        (stage.folder / "links" / name / "fence").unlink()
    stage.stop("a")
    stage.kill("a")
    stage.until_logged("a cannot be fenced from outside, and require_fence asks for it")
    assert stage.status().primary == "a"


# --- refused at the start ------------------------------------------------------------------------


def test_a_folder_without_executables_is_refused(
    zookeeper: LocalEnsemble, path: str, tmp_path: Path
) -> None:
    words = ["promote", "hooks", path, "--name", "a", "--address", "x", "--hooks", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "zkelect.cli", *words, "--hosts", zookeeper.hosts],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert done.returncode == 1
    missing = "has no executables close, demote, follow, freeze, open, position, promote"
    assert missing in done.stderr
