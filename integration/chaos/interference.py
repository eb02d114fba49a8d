"""The operator: does by hand what breaks a lease, when a candidate orders it.

He is near the servers, behind no proxy: deletes a leader's znode, closes a leader's session.
"""

from __future__ import annotations

import json
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from zkelect.errors import ConnectFailed
from zkelect.testing import expire

if TYPE_CHECKING:
    from chaos.history import Writer

__all__ = ["Operator"]

_TIMEOUT: Final = 5.0
_DONE: Final = None


@attrs.frozen(kw_only=True)
class _Victim:
    """A session that somebody else holds, as ``expire`` wants to have it."""

    hosts: str
    session_id: int
    password: bytes

    def credentials(self) -> tuple[int, bytes]:
        return self.session_id, self.password


class Operator:
    """Takes orders from any thread and carries them out one after the other, on its own.

    :param hosts: the servers themselves. :param path: the election.
    """

    def __init__(self, hosts: str, path: str, history: Writer) -> None:
        self._hosts, self._path, self._history = hosts, path, history
        self._orders: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.put(_DONE)
        self._thread.join(2 * _TIMEOUT)

    def order(self, line: str) -> None:
        """Take a candidate's order: a JSON object with ``act``, ``token`` and what it needs."""
        self._orders.put(json.loads(line))

    def _work(self) -> None:
        kazoo = KazooClient(self._hosts, timeout=10.0)
        kazoo.start_async()
        while (order := self._orders.get()) is not _DONE:
            outcome = self._delete(kazoo, order) if order["act"] == "delete" else self._end(order)
            self._history.write("obeyed", act=order["act"], token=order["token"], outcome=outcome)
        with suppress(KazooException, KazooTimeoutError):
            kazoo.stop()
            kazoo.close()

    def _delete(self, kazoo: KazooClient, order: dict[str, Any]) -> str:
        try:
            kazoo.delete_async(f"{self._path}/{order['node']}").get(timeout=_TIMEOUT)
        except (KazooException, KazooTimeoutError) as error:
            return type(error).__name__
        return "done"

    def _end(self, order: dict[str, Any]) -> str:
        victim = _Victim(
            hosts=self._hosts,
            session_id=order["session"],
            password=bytes.fromhex(order["password"]),
        )
        try:
            expire(victim, timeout=_TIMEOUT)
        except ConnectFailed as error:
            return type(error).__name__
        return "done"
