"""What a leader does: claim; then again and again read, sometimes sleep, write, roll dice.

A write that slept has checked its lease before and goes on with the bare token, as one does
whose process was stopped between the check and the write. Only the store can refuse it.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

import zkelect
from chaos.history import boottime
from chaos.stores import Row
from zkelect import errors

if TYPE_CHECKING:
    import random
    import threading
    from collections.abc import Mapping

    from chaos.history import Writer
    from chaos.stores import Store
    from zkelect.stores.fence import Claimant

__all__ = ["Habits", "Rounds"]

_FORK_WITHIN: Final = 10
_CLAIM_AGAIN_AFTER: Final = 0.05


@attrs.frozen(kw_only=True)
class Habits:
    """How often a leader does what in a round; shares, 0 … 1, and seconds.

    :ivar longest_sleep: between a check and the write that it was for.
    :ivar claims_late: read first, then wait so long, then claim; None: as one should.
    """

    sleeps: float = 0.05
    resigns: float = 0.10
    forks: float = 0.02
    is_deleted: float = 0.01
    is_closed: float = 0.01
    longest_sleep: float = 3.0
    pause: float = 0.03
    claims_late: float | None = None


class Rounds:
    """The work of one candidate process, over all its terms.

    :ivar resign: leaves the election; set once there is one.
    """

    def __init__(
        self,
        session: zkelect.Session,
        *,
        history: Writer,
        stores: Mapping[str, Store],
        process: str,
        dice: random.Random,
        habits: Habits,
        stop: threading.Event,
    ) -> None:
        self.resign: Callable[[], None] = lambda: None
        self._session = session
        self._history = history
        self._stores = stores
        self._process = process
        self._dice = dice
        self._habits = habits
        self._stop = stop
        self._numbers = itertools.count(1)
        self._read_early: dict[str, str] = {}

    def lead(self, leadership: zkelect.Leadership) -> None:
        """Lead until this term is over."""
        print("leads", flush=True)
        self._read_early = self._read_all(leadership)
        for name, store in self._stores.items():
            self._claim(name, store, leadership)
        while leadership.reason is None and not self._stop.is_set():
            for name, store in self._stores.items():
                self._read_and_write(name, store, leadership)
            self._roll_dice(leadership)
            leadership.wait_lost(self._habits.pause)

    def finish(self, leadership: zkelect.Leadership) -> None:
        """Try once more what was under way when the term ended: the zombie's write."""
        if leadership.reason in (None, zkelect.Reason.RESIGNED) or self._dice.random() < 0.5:
            return
        self._stop.wait(self._dice.uniform(0, self._habits.longest_sleep / 4))
        for name, store in self._stores.items():
            if (after := self._read(store)) is not None:
                self._write(name, store, leadership.token, leadership.token, after)

    # --- claim, read, write -----------------------------------------------------------------

    def _read_all(self, leadership: zkelect.Leadership) -> dict[str, str]:
        """Read before the claim, which is the mistake of one control."""
        if self._habits.claims_late is None:
            return {}
        found = {name: self._read(store) or "" for name, store in self._stores.items()}
        leadership.wait_lost(self._habits.claims_late)
        return found

    def _claim(self, name: str, store: Store, leadership: zkelect.Leadership) -> None:
        """Claim, again while the outcome is unknown or the store is busy."""
        while leadership.reason is None:
            asked = self._ask("claim", name, leadership.token)
            if self._answer(asked, lambda: store.claim(leadership)) not in _UNDECIDED:
                return
            leadership.wait_lost(_CLAIM_AGAIN_AFTER)

    def _read_and_write(self, name: str, store: Store, leadership: zkelect.Leadership) -> None:
        after = self._read_early.pop(name, None) or self._read(store)
        if after is None or leadership.reason is not None:
            return
        claimant: Claimant = leadership
        if self._dice.random() < self._habits.sleeps:
            claimant = leadership.token
            self._stop.wait(self._dice.uniform(0, self._habits.longest_sleep))
        if self._write(name, store, claimant, leadership.token, after) == "unknown":
            self._claim(name, store, leadership)  # waits for what may still be under way

    def _read(self, store: Store) -> str | None:
        try:
            return store.read()
        except Exception:  # noqa: BLE001  # a read that fails is made anew in the next round
            return None

    def _write(
        self, name: str, store: Store, claimant: Claimant, token: zkelect.Token, after: str
    ) -> str:
        asked = self._ask("write", name, token, bare=claimant is token)
        row = Row(op=asked, after=after, token=str(token))
        outcome = self._answer(asked, lambda: store.append(claimant, row))
        print("wrote", flush=True)
        return outcome

    def _ask(self, what: str, store: str, token: zkelect.Token, *, bare: bool = False) -> str:
        op = f"{self._process}-{next(self._numbers)}"
        self._history.write("asked", op=op, what=what, store=store, token=str(token), bare=bare)
        return op

    def _answer(self, op: str, act: Callable[[], None]) -> str:
        began = boottime()
        outcome, error = _outcome_of(act)
        latency = boottime() - began
        self._history.write("answered", op=op, outcome=outcome, latency=latency, error=error)
        return outcome

    # --- dice -------------------------------------------------------------------------------

    def _roll_dice(self, leadership: zkelect.Leadership) -> None:
        if self._dice.random() < self._habits.resigns:
            self._history.write("resigned", token=str(leadership.token))
            self.resign()
        if self._dice.random() < self._habits.forks:
            self._fork(leadership)
        if self._dice.random() < self._habits.is_deleted:
            self._order(leadership, "delete", node=leadership.node)
        if self._dice.random() < self._habits.is_closed:
            self._order_close(leadership)

    def _order(self, leadership: zkelect.Leadership, act: str, **what: str | int) -> None:
        """Have the operator do it; it is written before, so that no consequence precedes it."""
        self._history.write("ordered", act=act, token=str(leadership.token))
        print(json.dumps({"act": act, "token": str(leadership.token), **what}), flush=True)

    def _order_close(self, leadership: zkelect.Leadership) -> None:
        with suppress(zkelect.Misuse):  # there is no connection: nobody can know its password
            session_id, password = self._session.credentials()
            self._order(leadership, "close", session=session_id, password=password.hex())

    def _fork(self, leadership: zkelect.Leadership) -> None:
        """Let a child try to lead on; it must find its leadership void."""
        pid = os.fork()
        if pid == 0:
            signal.alarm(_FORK_WITHIN)
            try:
                self._be_child(leadership)
            finally:
                os._exit(0)  # nothing of the parent's may run at its exit
        os.waitpid(pid, 0)

    def _be_child(self, leadership: zkelect.Leadership) -> None:
        checked, _ = _outcome_of(leadership.check)
        row = Row(op=f"{self._process}-fork", after="", token=str(leadership.token))
        tried = {
            name: _outcome_of(partial(store.append, leadership, row))[0]
            for name, store in self._stores.items()
        }
        self._history.write("forked", token=row.token, checked=checked, tried=tried)


_UNDECIDED: Final = ("unknown", "busy")


def _outcome_of(act: Callable[[], object]) -> tuple[str, str | None]:
    """Do it, and tell how it went: all but done and unknown promise that nothing was written."""
    try:
        act()
    except errors.Fenced as error:
        return "fenced", str(error)
    except errors.Lost as error:
        return "lost", str(error)
    except errors.StoreBusy as error:
        return "busy", str(error)
    except errors.Refused as error:
        return "refused", f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # whatever else a store raises tells nothing
        return "unknown", f"{type(error).__name__}: {error}"
    return "done", None
