"""How a server stands at the moment, by one INFO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from zkelect.recipes.redis.asking import connect
from zkelect.recipes.redis.place import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis import Redis

__all__ = ["Follower", "State", "look", "read_state"]

_NO_ID: Final = "0" * 40


@attrs.frozen
class Follower:
    """One that receives from this server.

    :ivar address: where it listens, as it says. :ivar offset: up to where it has said to have all.
    """

    address: str
    online: bool
    offset: int


@attrs.frozen(kw_only=True)
class State:
    """What a server that answers says of itself; see Redis, "INFO" and "Replication".

    :ivar run: id of this run of the process. :ivar pid: the process.
    :ivar master: it follows nobody, not even nowhere, and takes writes if it is open.
    :ivar follows: host and port of whom it is told to follow, None of a master.
    :ivar linked: it receives from there. :ivar loading: its data are being read from the disk.
    :ivar copying: it is being given a full copy.
    :ivar replid: the branch of history. :ivar offset: how much of it is here.
    :ivar replid2: the branch before, empty without. :ivar fork: the last offset that they share.
    :ivar whole: the data are what ``offset`` says; not so once a full copy has begun.
    :ivar counting: it counts what it writes; without a backlog Redis does not.
    :ivar followers: who receives from here.
    """

    run: str
    pid: int
    master: bool
    follows: tuple[str, int] | None
    linked: bool
    loading: bool
    copying: bool
    replid: str
    offset: int
    replid2: str
    fork: int
    whole: bool
    counting: bool
    followers: tuple[Follower, ...]

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Self:
        """Read the reply of INFO as redis-py hands it out."""
        master = info["role"] == "master"
        replid2 = _id(info["master_replid2"])
        copying = bool(info.get("master_sync_in_progress", 0))
        return cls(
            run=_id(info["run_id"]),
            pid=int(info["process_id"]),
            master=master,
            follows=None if master else (str(info["master_host"]), int(info["master_port"])),
            linked=info.get("master_link_status") == "up",
            loading=bool(info["loading"]),
            copying=copying,
            replid=_id(info["master_replid"]),
            offset=int(info["master_repl_offset"]),
            replid2="" if replid2 == _NO_ID else replid2,
            fork=int(info["second_repl_offset"]) - 1,  # Redis names the first that is not shared
            whole=master
            or (not copying and info["slave_repl_offset"] == info["master_repl_offset"]),
            counting=bool(info["repl_backlog_active"]),
            followers=tuple(_followers(info)),
        )

    @property
    def demoted(self) -> bool:
        """Whether it follows nobody and takes no writes."""
        return self.follows == NOWHERE


def look(client: Redis) -> State:
    """Ask through this connection."""
    return State.of(client.info())


def read_state(url: str, deadline: float) -> State:
    """Ask the server.

    :raises NoAnswer: it does not answer.
    """
    with connect(url, deadline) as client:
        return look(client)


def _id(told: object) -> str:
    """Undo that redis-py takes an id without letters for a number."""
    return str(told).zfill(len(_NO_ID))


def _followers(info: Mapping[str, Any]) -> list[Follower]:
    found = []
    for number in range(int(info["connected_slaves"])):
        told = info.get(f"slave{number}")
        if told is not None:
            host = f"[{told['ip']}]" if ":" in str(told["ip"]) else told["ip"]
            address = f"{host}:{told['port']}"
            found.append(Follower(address, told["state"] == "online", int(told["offset"])))
    return found
