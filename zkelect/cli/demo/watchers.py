"""Who is woken when a znode goes: asked of the servers themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from zkelect.testing.server import ask

__all__ = ["parse_watches", "watchers"]


def watchers(addresses: Iterable[str], *paths: str) -> set[str]:
    """Return the sessions that have a watch on one of the paths.

    A server knows only the watches of its own clients, so all of them are asked (ZooKeeper
    Administrator's Guide, "The Four Letter Words": wchp).
    """
    found = [parse_watches(ask(address, "wchp")) for address in addresses]
    return {session for watches in found for path in paths for session in watches[path]}


def parse_watches(answer: str) -> defaultdict[str, set[str]]:
    """Read the answer to wchp: a path, then each session that watches it, indented."""
    watches = defaultdict[str, set[str]](set)
    path = ""
    for line in answer.splitlines():
        if line.startswith("\t"):
            watches[path].add(line.strip())
        else:
            path = line.strip()
    return watches
