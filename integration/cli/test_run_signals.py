"""H70: whatever ends ``zkelect run``, nothing of its command is left, and no znode goes before."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cli.household import HEART, OWN_CGROUP, await_death, stop, without_cgroups
from election.waiting import until

from zkelect.cli.run.keeper.processes import look_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cli.household import Household
    from conftest import Operator

    Begin = Callable[..., Household]

BACKGROUND = "sleep 600 & wait"
DAEMON = "setsid sh -c 'sleep 600 & (sleep 600 &) & sleep 600' & (setsid sleep 600 &) & wait"
DEAF = "trap '' TERM INT HUP QUIT; sleep 600 & wait"
FAMILIES = {"background": (BACKGROUND, 2), "daemons": (DAEMON, 6), "deaf": (DEAF, 2)}


def is_alive(pid: int) -> bool:
    found = look_up(pid)
    return found is not None and found.alive


def groups_of(keeper: int) -> list[Path]:
    """Return its control groups: one, or none."""
    assert OWN_CGROUP is not None, "this machine has no cgroup v2"
    return list(OWN_CGROUP.glob(f"zkelect-run-{keeper}-*"))


every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(params=["cgroup", "tree"])
def how(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Any]]:
    """Where a control group can be made, and where the tree must be walked."""
    with ExitStack() as stack:
        yield {} if request.param == "cgroup" else stack.enter_context(without_cgroups())


@pytest.fixture
def lead(how: Mapping[str, Any], household: Begin) -> Callable[..., Household]:
    """Begin to lead with one of the families; wait until all of it is there."""

    def begin(family: str) -> Household:
        script, size = FAMILIES[family]
        run = household("--grace", "0.2", "--", "sh", "-c", script, how=how)
        run.await_command(size)
        assert bool(groups_of(run.keeper)) == (not how)
        return run

    return begin


# --- signals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("family", ["background", "daemons"])
def test_h70_a_signal_leaves_no_orphan(
    lead: Callable[..., Household], family: str, number: signal.Signals
) -> None:
    run = lead(family)
    run.run.signal(number)
    assert run.end().status == 128 + number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_h70_a_signal_is_passed_on_once_and_the_command_may_live_on(
    household: Begin, number: signal.Signals
) -> None:
    run = household("--", *HEART, number.name)
    assert run.run.line().startswith("born")
    for _ in range(3):
        run.run.signal(number)
        while not (line := run.run.line()).startswith("SIG"):
            assert line.startswith("beat")
        assert line.split()[0] == number.name
    run.run.signal(signal.SIGKILL)
    run.await_none()


def test_h70_the_znode_stays_until_the_last_of_the_tree_is_dead(
    household: Begin, operator: Operator, path: str
) -> None:
    """The command ends at once, what it has left behind only when it is killed."""
    deaf = "trap '' TERM; echo $$; for i in $(seq 60); do sleep 1; done"
    run = household("--grace", "0.5", "--", "sh", "-c", 'sh -c "$0" & wait', deaf)
    last = int(run.run.line())
    run.run.signal(signal.SIGTERM)
    until(lambda: operator.nodes(path) == [], "the znode goes")
    assert not is_alive(last)
    assert run.end().status == 128 + signal.SIGTERM


def test_who_was_told_to_end_does_not_stand_again_after_a_loss(
    household: Begin, operator: Operator, path: str
) -> None:
    run = household("--restart", "--grace", "0.2", "--", *HEART, "SIGTERM")
    run.run.line()
    run.run.signal(signal.SIGTERM)
    while not run.run.line().startswith("SIGTERM"):
        pass
    operator.delete(path, operator.nodes(path)[0])
    assert run.end().status == 70


# --- killed -------------------------------------------------------------------------------------


@every_family
def test_h70_zkelect_killed_leaves_no_orphan(lead: Callable[..., Household], family: str) -> None:
    run = lead(family)
    keeper, folder = run.keeper, run.folder
    run.run.signal(signal.SIGKILL)
    run.await_none()
    assert not folder.exists()
    assert not groups_of(keeper)


@every_family
def test_h70_the_keeper_killed_leaves_no_orphan(
    lead: Callable[..., Household], family: str
) -> None:
    run = lead(family)
    keeper, folder = run.keeper, run.folder
    os.kill(keeper, signal.SIGKILL)
    ended = run.end()
    assert not folder.exists()
    assert not groups_of(keeper)
    assert ended.status == 70
    assert "keeper has ended" in ended.err


def test_the_keeper_killed_while_waiting_is_told_when_it_is_needed(
    household: Begin, operator: Operator, path: str
) -> None:
    ahead = operator.stand(path)
    run = household("--", "sleep", "600")
    until(lambda: len(operator.nodes(path)) == 2, "it waits")
    os.kill(run.keeper, signal.SIGKILL)
    operator.delete(path, ahead)
    assert run.end().status == 70


def test_a_stopped_keeper_is_woken(lead: Callable[..., Household]) -> None:
    run = lead("background")
    keeper = run.keeper
    os.kill(keeper, signal.SIGSTOP)
    until(lambda: (it := look_up(keeper)) is not None and it.state != "T", "it goes on")
    run.run.signal(signal.SIGTERM)
    assert run.end().status == 128 + signal.SIGTERM


def test_h70_a_group_that_is_signalled_as_a_whole_leaves_no_orphan(
    lead: Callable[..., Household],
) -> None:
    """As systemd does with KillMode=control-group: elector, keeper and command at once."""
    run = lead("daemons")
    for pid in run.living():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    run.end()  # whose status depends on who heard it first


def test_h70_both_killed_at_once_take_the_command_itself_along(
    lead: Callable[..., Household],
) -> None:
    """What came of it lives on: the two must not die together. The documentation says so."""
    run = lead("background")
    keeper, elector, folder = run.keeper, run.run.process.pid, run.folder
    (command,) = {each for each in run.living() if (it := look_up(each)) and it.parent == keeper}
    stop(elector)  # first, so that it wakes nobody
    stop(keeper)
    os.kill(elector, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    await_death(command)
    shutil.rmtree(folder)  # nobody is left to do it
