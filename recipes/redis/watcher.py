"""The process of the dead-man's switch for Redis: ``python -m zkelect.recipes.redis.watcher``.

At the deadline it has the server follow nowhere, so that its data are kept; one that does not
obey at once is killed.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from zkelect.recipes.clock import now
from zkelect.recipes.redis.asking import connect
from zkelect.recipes.redis.demoting import detach
from zkelect.recipes.redis.place import URL
from zkelect.recipes.redis.process import find, kill
from zkelect.recipes.watching import keep_watch

__all__ = ["strike"]

_OBEY: Final = 0.05


def strike(target: str) -> None:
    """Stop the server from taking writes: killed, when anything is in the way of asking it.

    :param target: its process, as :func:`.process.identify` names it.
    """
    handle = find(target)
    if handle is None:
        return  # that run has ended, and the next one is a replica
    try:
        with connect(os.environ[URL], now() + _OBEY) as client:
            detach(client)
    except Exception:  # noqa: BLE001  # also when we were held up and no time is left to ask
        kill(handle)
    finally:
        os.close(handle)


if __name__ == "__main__":
    keep_watch(sys.stdin.buffer, strike)
