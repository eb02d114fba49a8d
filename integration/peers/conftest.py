"""Candidates of each library as processes, in the election of the test."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.actor import SESSION_TIMEOUT, TICK
from peers.candidate import Candidate
from peers.java import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

PROGRAM = Path(__file__).with_name("program.py")


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Program.java, compiled once."""
    return Program(tmp_path_factory.mktemp("classes"))


@pytest.fixture
def enlist(
    zookeeper: LocalEnsemble, path: str, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Candidate]]:
    """Start a candidate: a kind of peer, or ``zkelect`` in a dialect."""
    with ExitStack() as stack:

        def enlist(
            kind: str, name: str = "peer", *, dialect: str = "kazoo", hosts: str = zookeeper.hosts
        ) -> Candidate:
            what = (kind, hosts, path, name)
            if kind.startswith(("kazoo", "zkelect")):
                times = (f"--session-timeout={SESSION_TIMEOUT}", f"--tick-time={TICK}")
                command = [sys.executable, str(PROGRAM), *what, *times, f"--dialect={dialect}"]
            else:
                program: Program = request.getfixturevalue("java")
                command = program.command(*what, str(int(1000 * SESSION_TIMEOUT)))
            candidate = Candidate(command)
            stack.callback(candidate.kill)
            return candidate

        yield enlist
