"""A process that leads and replaces a file as it is told; see writer.py for how it is told.

    file_writer.py FILE TOKEN [--unguarded] [--die-at STEP]

``--die-at`` kills the process (SIGKILL) just before that one of its FATAL calls, from 0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from zkelect.errors import ZkelectError
from zkelect.stores.fence import Gate
from zkelect.stores.file import FileFence
from zkelect.token import Token

FATAL = {"open", "write", "pwrite", "ftruncate", "fsync", "fchmod", "rename", "unlink", "close"}


class MortalSystem:
    """The module os, until a certain call."""

    def __init__(self, last: int) -> None:
        self._calls, self._last = itertools.count(), last

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in FATAL:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            if next(self._calls) == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call


class Writer:
    def __init__(self, path: Path, token: Token) -> None:
        self.token = token
        self.fence = FileFence(path, domain="d", timeout=60.0)

    def claim(self) -> str:
        self.fence.claim(self.token)
        return "claimed"

    def append(self, entry: str = "") -> str:
        content = self.fence.read(self.token)
        rows = [*json.loads(content or b"[]"), (str(self.token), entry)]
        self.fence.replace(self.token, json.dumps(rows).encode())
        return "appended"

    def hammer(self) -> str:
        """Append until refused."""
        while True:
            print(self.append(), flush=True)

    def hold(self) -> str:
        """Append, and wait for the next line when all is ready but the rename."""

        def rename(*arguments: Any, **options: Any) -> None:
            print("holding", flush=True)
            sys.stdin.readline()
            real(*arguments, **options)

        self.claim()
        real = os.rename
        with mock.patch("os.rename", rename):
            return self.append("held")

    def obey(self, order: str, *words: str) -> str:
        try:
            answer: str = getattr(self, order)(*words)
        except ZkelectError as error:
            return type(error).__name__
        return answer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("token", type=Token.parse)
    parser.add_argument("--unguarded", action="store_true")
    parser.add_argument("--die-at", type=int, default=-1)
    given = parser.parse_args()
    if given.unguarded:
        mock.patch.object(Gate, "guard").start()
    if given.die_at >= 0:
        mortal = MortalSystem(given.die_at)
        for module in ("folder", "flock"):
            mock.patch(f"zkelect.stores.{module}.os", mortal).start()
    writer = Writer(given.file, given.token)
    for line in iter(sys.stdin.readline, ""):
        print(writer.obey(*line.split()), flush=True)


if __name__ == "__main__":
    main()
