"""The process of the dead-man's switch: ``python -m zkelect.recipes.hooks.watcher``."""

from __future__ import annotations

import sys

from zkelect.recipes.hooks.closing import strike
from zkelect.recipes.watching import keep_watch

if __name__ == "__main__":
    keep_watch(sys.stdin.buffer, strike)
