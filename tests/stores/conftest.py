"""A bearer without an election, and one bench for each store that must keep the contract."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from zkelect.errors import LeadershipLost
from zkelect.stores import MemoryFence, SqliteFence
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

LINEAGE = "1234567890abcdef"
WRITER = Path(__file__).with_name("writer.py")


# --- who claims ----------------------------------------------------------------------------


def make_token(
    czxid: int, *, generation: int = 0, lineage: str = LINEAGE, session_id: int = 7
) -> Token:
    return Token.issue(lineage=lineage, generation=generation, czxid=czxid, session_id=session_id)


class FakeBearer:
    """A leadership whose lease and end the test decides."""

    def __init__(self, token: Token, *, lease: float = 60.0, zxid: int = 1 << 40) -> None:
        self.token, self.lease, self.zxid = token, lease, zxid
        self.ends: list[str] = []

    def check(self) -> Token:
        if self.ends or self.lease <= 0:
            raise LeadershipLost("/elections/d", self.token, (self.ends or ["expired"])[0])
        return self.token

    def remaining(self) -> float:
        return self.lease

    def end(self, reason: str) -> None:
        self.ends.append(reason)


@pytest.fixture
def token() -> Callable[..., Token]:
    return make_token


@pytest.fixture
def bearer() -> Callable[..., FakeBearer]:
    """Make the leadership of the candidate that was created at this czxid."""

    def make(czxid: int, *, lease: float = 60.0, zxid: int = 1 << 40, **fields: Any) -> FakeBearer:
        return FakeBearer(make_token(czxid, **fields), lease=lease, zxid=zxid)

    return make


# --- the stores ----------------------------------------------------------------------------


class Fence(Protocol):
    """What every guarded store has."""

    def claim(self, claimant: Any) -> None: ...

    def transaction(self, claimant: Any) -> AbstractContextManager[Any]: ...

    def status(self) -> Token | None: ...


class Bench(Protocol):
    """One store, seen from outside: what the contract needs beside the fence itself."""

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> Fence:
        """Make a fence; two of one domain share the store, as those of two processes do."""

    def append(self, transaction: Any, token: Token, entry: str) -> None: ...

    def log(self) -> list[tuple[Token, str]]: ...

    def restore(self, mark: Token | None) -> None:
        """Put the mark of domain d back, as an old backup does."""


class MemoryBench:
    def __init__(self) -> None:
        self._fences: dict[str, MemoryFence] = {}

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> MemoryFence:
        if domain not in self._fences:
            self._fences[domain] = MemoryFence(domain=domain, timeout=timeout)
        return self._fences[domain]

    def append(self, transaction: list[object], token: Token, entry: str) -> None:
        transaction.append(entry)

    def log(self) -> list[tuple[Token, str]]:
        return [(token, str(entry)) for token, entry in self.fence().log]

    def restore(self, mark: Token | None) -> None:
        self.fence().restore(mark)


class SqliteBench:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> SqliteFence:
        return SqliteFence(self.path, domain=domain, timeout=timeout)

    def append(self, transaction: Any, token: Token, entry: str) -> None:
        transaction.execute("create table if not exists log (token text, entry text)")
        transaction.execute("insert into log values (?, ?)", (str(token), entry))

    def log(self) -> list[tuple[Token, str]]:
        with closing(sqlite3.connect(self.path, timeout=60.0)) as db:
            known = db.execute("select 1 from sqlite_master where name = 'log'").fetchone()
            rows = db.execute("select token, entry from log order by rowid") if known else ()
            return [(Token.parse(token), entry) for token, entry in rows]

    def restore(self, mark: Token | None) -> None:
        with closing(sqlite3.connect(self.path, timeout=60.0)) as db, db:
            db.execute("delete from zkelect_fence where domain = 'd'")
            if mark is not None:
                db.execute("insert into zkelect_fence values ('d', ?)", (str(mark),))


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return MemoryBench() if request.param == "memory" else SqliteBench(tmp_path / "jobs.db")


@pytest.fixture
def sqlite_bench(tmp_path: Path) -> SqliteBench:
    return SqliteBench(tmp_path / "jobs.db")


# --- processes -----------------------------------------------------------------------------


class Writer:
    """Another process that leads: gives it orders and reads its answers (writer.py)."""

    def __init__(self, path: Path, token: Token, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER), str(path), str(token), *options],
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


@pytest.fixture
def writer(sqlite_bench: SqliteBench) -> Iterator[Callable[..., Writer]]:
    """Start a process that leads with this token on the bench's file."""
    started: list[Writer] = []

    def start(token: Token, *options: str) -> Writer:
        started.append(Writer(sqlite_bench.path, token, *options))
        return started[-1]

    yield start
    for process in started:
        process.close()
