"""A primary takes no writes any more: it follows nowhere, with all that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.redis.asking import connect
from zkelect.recipes.redis.place import NOWHERE
from zkelect.recipes.redis.state import Follower, State, look, read_state
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from redis import Redis

    from zkelect.recipes.redis.place import Place

__all__ = ["detach", "hand_over"]

_SETTLE: Final = 1.0
_PAUSE: Final = 4.0


def detach(client: Redis) -> None:
    """Follow nowhere: Redis keeps data, replication id and offset, and refuses writes."""
    client.replicaof(*NOWHERE)


def hand_over(place: Place, deadline: float) -> int:
    """Hold the writers, until the followers have everything; then detach.

    :returns: the offset up to which there are writes. What Redis may add while they are held are
        pings and questions to followers.
    :raises NotNow: nobody follows, or not closely; the writers go on.
    """
    with connect(place.url, deadline) as client:
        held_until = now() + _PAUSE
        client.client_pause(round(_PAUSE * 1000), all=False)
        try:
            handed = look(client)
            _await_followers(place, client, handed, min(deadline, now() + _SETTLE))
            detach(client)
            # Writers that were let go before that have written more.
            return handed.offset if now() < held_until else look(client).offset
        finally:
            client.client_unpause()


def _await_followers(place: Place, client: Redis, handed: State, deadline: float) -> None:
    """Wait until all have it; for one, when the others take too long."""

    def all_have_it() -> bool:
        followers = look(client).followers
        return 0 < len(followers) == _having(place, followers, handed, deadline)

    try:
        wait_until(all_have_it, deadline, "every follower has all of it")
    except NotNow:
        if not _having(place, look(client).followers, handed, now() + _SETTLE):
            raise


def _having(place: Place, followers: tuple[Follower, ...], handed: State, deadline: float) -> int:
    """Return how many followers have it: they report once a second, so they are asked too."""
    return sum(
        each.online and (each.offset >= handed.offset or _has(place, each, handed, deadline))
        for each in followers
    )


def _has(place: Place, follower: Follower, handed: State, deadline: float) -> bool:
    try:
        state = read_state(place.remote(follower.address), deadline)
    except NotNow:
        return False
    return state.replid == handed.replid and state.offset >= handed.offset
