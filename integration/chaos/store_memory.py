"""MemoryFence in a process of its own, which five candidates reach over a local socket.

So a token arrives over the wire, as at any service that guards itself: the client checks
its lease, then sends the token.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from chaos.processes import Process, wait_until
from chaos.stores import DOMAIN, Row
from zkelect import errors
from zkelect.stores.fence import bearing
from zkelect.token import Token

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Sequence

    from chaos.stores import Place, Store
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 3.0


class _Memory:
    def __init__(self, place: Place) -> None:
        self._address = str(place.directory / "memory.sock")
        self._stream: io.BufferedRWPair | None = None
        self._lock = threading.Lock()

    @contextmanager
    def serve(self) -> Iterator[None]:
        process = Process("memory", {"address": self._address})
        try:
            wait_until(self._answers, "the memory store answers")
            yield
        finally:
            process.kill()

    def claim(self, claimant: Claimant) -> None:
        with bearing(claimant) as token:
            self._ask("claim", token=str(token))

    def read(self) -> str:
        return str(self._ask("read"))

    def append(self, claimant: Claimant, row: Row) -> None:
        with bearing(claimant) as token:
            self._ask("append", token=str(token), row=attrs.asdict(row))

    def log(self) -> Sequence[Row]:
        return [Row(**row) for row in self._ask("log")]

    @contextmanager
    def disturb(self) -> Iterator[None]:
        self._ask("disturb", on=True)
        try:
            yield
        finally:
            self._ask("disturb", on=False)

    def _answers(self) -> bool:
        with suppress(OSError):
            return bool(self._ask("read") == "")
        return False

    def _ask(self, what: str, **fields: Any) -> Any:
        """Ask once; after an error the next question gets a new connection."""
        with self._lock:
            try:
                answer = self._exchange({"what": what, **fields})
            except (OSError, ValueError):
                self._stream = None
                raise
        if "refused" in answer:
            raise _refusal(answer)
        return answer["value"]

    def _exchange(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._stream is None:
            self._stream = _connect(self._address)
        self._stream.write(f"{json.dumps(question)}\n".encode())
        self._stream.flush()
        answer = self._stream.readline()
        if not answer:
            raise ConnectionResetError("the memory store closed the connection")
        parsed: dict[str, Any] = json.loads(answer)
        return parsed


def _connect(address: str) -> io.BufferedRWPair:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT)
        connection.connect(address)
        return connection.makefile("rwb")  # keeps the connection open


def _refusal(answer: dict[str, Any]) -> errors.Refused:
    kind: type[errors.Refused] = getattr(errors, answer["refused"])
    mark = answer["mark"]
    return kind(
        store="memory",
        domain=DOMAIN,
        token=Token.parse(answer["token"]),
        mark=None if mark is None else Token.parse(mark),
    )


def make(place: Place) -> Store:
    """Return the store whose socket is in the run's folder."""
    return _Memory(place)
