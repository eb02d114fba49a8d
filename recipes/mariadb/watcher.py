"""The process of the dead-man's switch: ``python -m zkelect.recipes.mariadb.watcher``.

It kills the server of a data directory when the agent does not renew its deadline; the agent may
hang, be frozen, or be gone. The server is closed when it is started anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from zkelect.recipes.clock import now
from zkelect.recipes.mariadb.process import kill
from zkelect.recipes.watching import keep_watch

__all__ = ["strike"]


def strike(data_directory: str) -> None:
    """Kill the server that has this data directory, if one runs."""
    kill(Path(data_directory), now())


if __name__ == "__main__":
    keep_watch(sys.stdin.buffer, strike)
