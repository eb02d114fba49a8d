"""The acts of the PostgreSQL recipe, called by hand: without an engine, so in any order."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from election.waiting import until

from zkelect.recipes.clock import now
from zkelect.recipes.postgres import Postgres
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.cluster import Cluster
    from recipes.postgres_node import PostgresNode

__all__ = ["follow", "resources", "soon", "switch_over", "take_over"]

WITHIN = 30.0


def soon() -> float:
    """Return a deadline that is only there so that a test ends."""
    return now() + WITHIN


@contextmanager
def resources(cluster: Cluster[PostgresNode]) -> Iterator[dict[str, Postgres]]:
    """Lend a resource for each server, with the first one opened as the primary."""
    made = {
        name: Postgres(node.member(), node.place, domain="acts")
        for name, node in cluster.nodes.items()
    }
    first = next(iter(made.values()))
    first.promote(soon())
    first.open(soon())
    try:
        yield made
    finally:
        for each in made.values():
            each.close()


def switch_over(old: Postgres, new: Postgres) -> None:
    """Do what the engine does in a planned switch, and let the old one follow."""
    new.freeze(old.demote(planned=True, deadline=soon()), soon())
    new.catch_up(soon())
    new.promote(soon())
    new.open(soon())
    follow(old, new)


def take_over(new: Postgres) -> None:
    """Let a standby be the primary, whatever the old one does."""
    new.freeze(None, soon())
    new.catch_up(soon())
    new.promote(soon())
    new.open(soon())


def follow(server: Postgres, primary: Postgres) -> None:
    """Ask until it follows, as an agent does: one call waits for a few seconds only."""

    def follows() -> bool:
        try:
            server.follow(primary.member, None, soon())
        except NotNow:
            return False
        return True

    until(follows, f"{server.member.name} follows {primary.member.name}")
