"""The dead-man of a Redis server when its agent has ended, in good order or not."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import termios
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until
from recipes.cluster import Cluster
from recipes.redis_node import RedisNode

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def node() -> Iterator[RedisNode]:
    """A master."""
    with Cluster(RedisNode, ["alpha"]) as cluster:
        yield cluster["alpha"]


def test_the_dead_man_strikes_also_when_the_agent_is_gone(node: RedisNode) -> None:
    with agent_of(node, armed_for=5, then="pass") as agent:
        end(agent)
    until(lambda: node.told("role") == "slave", "it is demoted")


def test_a_primary_that_is_left_alone_is_not_struck(node: RedisNode) -> None:
    """With an order left the dead-man would wait for its deadline, though the agent has ended.

    It has read that order before it is taken back; else it might never have known of it.
    """
    with agent_of(node, armed_for=2 * WITHIN, then="server.disarm()") as agent:
        dead_man = child_of(agent)
        until(lambda: unread(dead_man) == 0, "the dead-man has its order")
        handle = os.pidfd_open(dead_man)
        end(agent)
        ended, _, _ = select.select([handle], [], [], WITHIN)
        os.close(handle)
    assert ended, "it still waits for the deadline"
    assert node.told("role") == "master"


@contextmanager
def agent_of(node: RedisNode, *, armed_for: float, then: str) -> Iterator[subprocess.Popen[str]]:
    """Have a process arm the server's dead-man; see :func:`end`.

    :param then: what it does at its end.
    """
    program = (
        "import os, sys; from pathlib import Path; from zkelect.recipes.clock import now;"
        "from zkelect.recipes.member import Member;"
        "from zkelect.recipes.redis import Place, RedisServer;"
        "server = RedisServer(Member(name='alpha', address=sys.argv[1]),"
        " Place(url=f'redis://{sys.argv[1]}/0', record=Path(sys.argv[2])), domain='acts');"
        f"server.observe(); server.arm(now() + {armed_for});"
        f"print('armed', flush=True); input(); {then}; os._exit(9)"
    )
    with (
        (node.folder / "agent.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", program, node.address, str(node.folder / "record")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as agent,
    ):
        assert agent.stdout is not None
        assert agent.stdout.readline() == "armed\n"
        yield agent


def end(agent: subprocess.Popen[str]) -> None:
    """Let it end, without a word to its dead-man, and wait until it has."""
    assert agent.stdin is not None
    agent.stdin.write("\n")
    agent.stdin.flush()
    assert agent.wait(WITHIN) == 9


def child_of(agent: subprocess.Popen[str]) -> int:
    """Return the only process that it has started."""
    (child,) = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    return int(child)


def unread(process: int) -> int:
    """Return how many bytes of its standard input, a pipe, are still to be read."""
    with Path(f"/proc/{process}/fd/0").open("rb", buffering=0) as pipe:
        told = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    return int.from_bytes(told, sys.byteorder)
