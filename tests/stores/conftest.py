"""Bearers and benches as fixtures, and processes that write to the bench's file."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stores.bearers import FakeBearer, make_bearer, make_token
from stores.benches import SqliteBench

from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.register_assert_rewrite("stores.contract", "stores.transactions")

WRITER = Path(__file__).with_name("writer.py")


@pytest.fixture
def token() -> Callable[..., Token]:
    return make_token


@pytest.fixture
def bearer() -> Callable[..., FakeBearer]:
    """Make the leadership of the candidate that was created at this czxid."""
    return make_bearer


@pytest.fixture
def sqlite_bench(tmp_path: Path) -> SqliteBench:
    return SqliteBench(tmp_path / "jobs.db")


# --- processes -----------------------------------------------------------------------------


class Writer:
    """Another process that leads: gives it orders and reads its answers (writer.py)."""

    def __init__(self, path: Path, token: Token, *options: str, script: Path = WRITER) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(path), str(token), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid

    def order(self, words: str) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # that it is dead shows in its answer
            print(words, file=self.process.stdin, flush=True)

    def answer(self) -> str:
        """Return the next line, or nothing if the process has died."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def does(self, words: str) -> str:
        self.order(words)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@contextmanager
def starting(path: Path, script: Path = WRITER) -> Iterator[Callable[..., Writer]]:
    """Lend what starts a process that leads with a token on this file; they end with the block."""
    with ExitStack() as started:

        def start(token: Token, *options: str) -> Writer:
            return started.enter_context(closing(Writer(path, token, *options, script=script)))

        yield start


@pytest.fixture
def writer(sqlite_bench: SqliteBench) -> Iterator[Callable[..., Writer]]:
    """Start a process that leads with this token on the bench's file."""
    with starting(sqlite_bench.path) as start:
        yield start
