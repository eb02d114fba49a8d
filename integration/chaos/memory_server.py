"""The process that holds the MemoryFence: one JSON line asks, one JSON line answers."""

from __future__ import annotations

import itertools
import json
import socketserver
from typing import Any, Final

import attrs

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from zkelect.errors import Refused
from zkelect.stores import MemoryFence
from zkelect.token import Token

__all__ = ["serve"]

_TIMEOUT: Final = 2.0


class _Cut(Exception):
    """The connection is lost in mid-transaction."""


class _Held:
    """The fence, and what is to go wrong with it."""

    def __init__(self) -> None:
        self.fence = MemoryFence(domain=DOMAIN, timeout=_TIMEOUT)
        self._disturbed = False
        self._cuts = itertools.count()

    def claim(self, token: str) -> None:
        self.fence.claim(Token.parse(token))

    def read(self) -> str:
        return next((row.op for _, row in self.fence.log[-1:] if isinstance(row, Row)), "")

    def append(self, token: str, row: dict[str, Any]) -> None:
        """Append; when it is to be disturbed, cut before the commit and after it by turns."""
        cut = next(self._cuts) % 2 if self._disturbed else None
        self._disturbed = False
        with self.fence.transaction(Token.parse(token)) as writes:
            if cut == 0:
                raise _Cut
            writes.append(Row(**{**row, "at": boottime()}))
        if cut == 1:
            raise _Cut

    def log(self) -> list[dict[str, Any]]:
        return [attrs.asdict(row) for _, row in self.fence.log if isinstance(row, Row)]

    def disturb(self, on: bool) -> None:
        self._disturbed = on


def serve(address: str) -> None:
    """Serve until the process is killed."""
    held = _Held()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                try:
                    answer = _answer(held, json.loads(line))
                except _Cut:
                    return
                self.wfile.write(f"{json.dumps(answer)}\n".encode())

    with socketserver.ThreadingUnixStreamServer(address, Handler) as server:
        server.daemon_threads = True
        server.serve_forever()


def _answer(held: _Held, question: dict[str, Any]) -> dict[str, Any]:
    what = question.pop("what")
    try:
        return {"value": getattr(held, what)(**question)}
    except Refused as refusal:
        mark = None if refusal.mark is None else str(refusal.mark)
        token = question.get("token")
        return {"refused": type(refusal).__name__, "token": token, "mark": mark}
