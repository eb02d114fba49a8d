"""Conducts a run: fault after fault by the plan, peace in between, and an orderly end."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from chaos.faults import SCRIPTED
from chaos.history import boottime
from chaos.processes import wait_until
from chaos.stage import SESSION_TIMEOUT, TICK_TIME, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from chaos.plan import Step

__all__ = ["PEACE", "conduct"]

PEACE: Final = 10.0
"""Seconds without a fault, in which leadership must come to rest."""

_PEACE_EVERY: Final = 120.0
_CALLS: Final = 3
_CALL_EVERY: Final = 0.3
_EMPTY_WITHIN: Final = 3 * SESSION_TIMEOUT
_LOOK_EVERY: Final = 0.02


def conduct(
    stage: Stage, plan: Iterable[Step], *, seconds: float = 0.0, kinds: Collection[str] = ()
) -> None:
    """Inflict the plan for so long, and until each kind of fault was there; or to its end.

    :param kinds: what must have been inflicted. None: a script, which needs no peace either.
    """
    setting = stage.setting
    stage.history.write(
        "begun",
        seed=setting.seed,
        path=setting.path,
        stores=list(setting.stores),
        session_timeout=SESSION_TIMEOUT,
        tick_time=TICK_TIME,
        faults=sorted(kinds),
    )
    wait_until(lambda: stage.operations > 0, "somebody leads, and writes")
    began = peace = boottime()
    missing = set(kinds)
    for step in plan:
        _wait_for_operations(stage, step)
        if kinds and not missing and boottime() - began > seconds:
            break
        _inflict(stage, step, began)
        missing.difference_update(step.kinds)
        if boottime() - peace > _PEACE_EVERY:
            _keep_peace(stage)
            peace = boottime()
    if kinds:
        _keep_peace(stage)
    _end(stage)


def _wait_for_operations(stage: Stage, step: Step) -> None:
    """Wait for the step's number of operations; in a deadlock the next fault comes all the same."""
    wanted, deadline = stage.operations + step.operations, boottime() + step.patience
    while stage.operations < wanted and boottime() < deadline:
        time.sleep(_LOOK_EVERY)


def _inflict(stage: Stage, step: Step, began: float) -> None:
    dice = random.Random(step.choice)
    with ExitStack() as faults:
        for kind in step.kinds:
            stage.history.write("inflicting", fault=kind)
            struck = faults.enter_context(SCRIPTED[kind](stage, dice))
            stage.history.write("inflicted", fault=kind, struck=struck, seconds=step.seconds)
            at = f"{boottime() - began:7.1f} s"
            print(f"{at}  {kind}: {struck}, for {step.seconds:.1f} s", flush=True)
        time.sleep(step.seconds)
    stage.revive()
    stage.history.write("mended", faults=list(step.kinds))
    stage.wait_served()
    stage.history.write("healed", faults=list(step.kinds))


def _keep_peace(stage: Stage) -> None:
    stage.history.write("calmed")
    time.sleep(PEACE)
    for _ in range(_CALLS):
        stage.call_the_roll("peace")
        time.sleep(_CALL_EVERY)
    stage.history.write("alarmed")


def _end(stage: Stage) -> None:
    """Let everybody leave; then nothing of theirs may be left, at once or when sessions end."""
    stage.history.write("ending")
    stage.leave()
    deadline = boottime() + _EMPTY_WITHIN
    while boottime() < deadline:
        if _call_the_last_roll(stage) == 0:
            break
    stage.history.write("finished")


def _call_the_last_roll(stage: Stage) -> int:
    """Return how many are still there."""
    calls = len(stage.rolls)
    stage.call_the_roll("end")
    wait_until(lambda: len(stage.rolls) > calls, "the observer answers")
    return stage.rolls[-1]
