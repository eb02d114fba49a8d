"""Who may write to a master: nobody until it is opened.

The lock is ``min-replicas-to-write``, with more followers than there can be. It was chosen over
CLIENT PAUSE, which ends by itself and would hold our own first write too; over ACLs, which are
the operator's, and could not be given back as they were; and over a closed port, by which the
others ask, and followers come. It refuses at once (``-NOREPLICAS``), scripts too, whoever asks;
readers go on. It need not survive a restart: a server that is restarted is a replica.

What it does not stop is who may run CONFIG SET.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from redis import Redis

    from zkelect.recipes.redis.place import Place

__all__ = ["CLOSED", "LOCK", "close", "is_open", "open_for_writes"]

LOCK: Final = "min-replicas-to-write"
CLOSED: Final = "2147483647"
"""The greatest number of followers that Redis can be told to ask for."""
_LAG: Final = "min-replicas-max-lag"


def close(client: Redis) -> None:
    """Let nobody write."""
    client.config_set(LOCK, CLOSED, _LAG, "10")  # a lag of 0 would turn the lock off


def is_open(client: Redis) -> bool:
    """Tell whether the lock is off."""
    return str(client.config_get(LOCK)[LOCK]) != CLOSED


def open_for_writes(client: Redis, place: Place) -> None:
    """Let everybody write, as long as there are followers enough."""
    client.config_set(_LAG, str(place.max_lag), LOCK, str(place.min_replicas))
