"""What catches a writer in mid-transaction, and what a leader does after it."""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from chaos.history import Writer, read
from chaos.rounds import Habits, Rounds
from chaos.stores import SMALL, STORES, Place, Row, open_store
from chaos.traps import FALLS, Trap, fall
from zkelect.token import Token

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.stores import Store

TOKEN = Token.parse(f"00000001-{1:016x}-{1:016x}-{1:016x}")


def test_a_trap_catches_one_writer_while_it_is_laid(tmp_path: Path) -> None:
    laid, met = (Trap(tmp_path / "trap", ("first", "second")) for _ in range(2))
    assert met.spring() == ""
    with laid.laid():
        assert [met.spring(), met.spring()] == ["first", ""]
    with laid.laid():
        pass
    assert met.spring() == ""
    with laid.laid():
        assert met.spring() == "first"


def test_who_is_caught_falls_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *what: sent.append(what))
    for end in ("", *FALLS):
        fall(end)
    assert sent == [(os.getpid(), signal.SIGKILL), (os.getpid(), signal.SIGSTOP)]


@pytest.mark.parametrize("name", SMALL)
def test_the_smoke_run_needs_no_server_of_a_stores_own(tmp_path: Path, name: str) -> None:
    assert open_store(name, Place(directory=tmp_path, hosts="")) is not None
    assert name in STORES


# --- leaders ---------------------------------------------------------------------------------


class Ended:
    """A leadership that ends at the first pause, and whose writes fail without a word."""

    token = TOKEN
    reason: str | None = None

    def wait_lost(self, _: float) -> bool:
        self.reason = "expired"
        return True


class Told:
    """A store that notes what it is asked, and has lost its connection."""

    def __init__(self, *, readable: bool = True) -> None:
        self.asked: list[str] = []
        self._readable = readable

    def claim(self, _: object) -> None:
        self.asked.append("claim")

    def read(self) -> str:
        self.asked.append("read")
        if not self._readable:
            raise ConnectionError
        return "1"

    def append(self, _: object, __: Row) -> None:
        self.asked.append("append")
        raise ConnectionError


def rounds(directory: Path, store: Told) -> Rounds:
    return Rounds(
        cast("Any", None),
        history=Writer(directory, "c1.1"),
        stores={"s": cast("Store", store)},
        process="c1.1",
        dice=random.Random(0),
        habits=Habits(sleeps=0, resigns=0, forks=0, is_deleted=0, is_closed=0, longest_sleep=0),
        stop=threading.Event(),
    )


def test_after_an_unknown_outcome_a_leader_claims_again_before_it_reads(tmp_path: Path) -> None:
    store = Told()
    rounds(tmp_path, store).lead(cast("Any", Ended()))
    assert store.asked == ["claim", "read", "append", "claim"]
    answers = [event for event in read(tmp_path).events if event.kind == "answered"]
    assert [event["outcome"] for event in answers] == ["done", "unknown", "done"]


@pytest.mark.parametrize(("readable", "asked"), [(True, ["read", "append"]), (False, ["read"])])
def test_a_late_write_is_tried_after_a_value_that_was_read(
    tmp_path: Path, readable: bool, asked: list[str]
) -> None:
    store, over = Told(readable=readable), Ended()
    over.wait_lost(0)
    rounds(tmp_path, store).finish(cast("Any", over))
    assert store.asked == asked
