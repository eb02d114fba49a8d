"""The dead-man's process strikes at the last deadline it was told, also when nobody is left."""

from __future__ import annotations

import os
from typing import BinaryIO

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.watching import NEVER, keep_watch


def watch(*orders: str) -> list[str]:
    """Give orders all at once and be gone; return who was struck."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as heard, os.fdopen(writer, "wb") as given:
        given.write("".join(f"{order}\n" for order in orders).encode())
        given.close()
        return _keep(heard)


def _keep(heard: BinaryIO) -> list[str]:
    struck: list[str] = []
    keep_watch(heard, struck.append)
    return struck


def order(seconds: float, target: str) -> str:
    return f"{now() + seconds!r} {target}"


def test_an_agent_that_is_gone_leaves_its_last_deadline_behind() -> None:
    deadline = order(0.2, "a")
    assert watch(deadline) == ["a"]
    assert now() >= float(deadline.split()[0])


@pytest.mark.parametrize(
    ("orders", "struck"),
    [
        ((), []),
        ((NEVER,), []),
        ((order(-1, "a"), order(-1, "b")), ["b"]),
        ((order(-1, "a"), NEVER), []),
        ((NEVER, order(-1, "a")), ["a"]),
    ],
)
def test_the_last_order_counts(orders: tuple[str, ...], struck: list[str]) -> None:
    assert watch(*orders) == struck


def test_one_whose_strike_fails_is_struck_again() -> None:
    struck: list[str] = []

    def strike(target: str) -> None:
        struck.append(target)
        if len(struck) < 3:
            raise OSError("too many open files")

    reader, writer = os.pipe()
    os.write(writer, f"{order(-1, 'a')}\n".encode())
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as heard:
        keep_watch(heard, strike)
    assert struck == ["a"] * 3


def test_an_order_that_is_taken_back_is_not_tried_again() -> None:
    reader, writer = os.pipe()
    os.write(writer, f"{order(-1, 'a')}\n".encode())
    struck: list[str] = []

    def strike(target: str) -> None:
        struck.append(target)
        if len(struck) == 9:
            pytest.fail("it goes on")
        if len(struck) == 1:
            os.write(writer, f"{NEVER}\n".encode())
            os.close(writer)
        raise OSError("too many open files")

    with os.fdopen(reader, "rb", buffering=0) as heard:
        keep_watch(heard, strike)
    assert struck == ["a"]
