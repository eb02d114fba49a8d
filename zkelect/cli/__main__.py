"""``python -m zkelect.cli``: the ``zkelect`` command, where its script is not on PATH."""

from __future__ import annotations

from zkelect.cli import start

if __name__ == "__main__":
    start()
