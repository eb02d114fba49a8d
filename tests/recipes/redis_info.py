"""What INFO of a Redis server says, as redis-py hands it out."""

from __future__ import annotations

from typing import Any

from zkelect.recipes.redis.state import State

__all__ = ["INFO", "REPLICA", "A", "B", "C", "state"]

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
INFO: dict[str, Any] = {
    "run_id": "d" * 40,
    "process_id": 1,
    "role": "master",
    "loading": 0,
    "master_replid": A,
    "master_repl_offset": 100,
    "master_replid2": 0,  # what redis-py makes of forty zeros
    "second_repl_offset": -1,
    "repl_backlog_active": 1,
    "connected_slaves": 0,
}
REPLICA: dict[str, Any] = {
    **INFO,
    "role": "slave",
    "master_host": "10.0.0.1",
    "master_port": 6379,
    "master_link_status": "up",
    "master_sync_in_progress": 0,
    "slave_repl_offset": 100,
}


def state(info: dict[str, Any] = INFO, **changed: Any) -> State:
    return State.of({**info, **changed})
