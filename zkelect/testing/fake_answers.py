"""What a fake client hands out: answers to come, watch events, transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from zkelect.session.link import reply_error
from zkelect.testing.fake_server import Question
from zkelect.testing.fake_tree import Check, Create, Delete, Happened, Operation, Put, Refusal

if TYPE_CHECKING:
    from zkelect.testing.fake_client import FakeClient

__all__ = ["Batch", "Event", "Pending", "Result", "Socket"]


@attrs.define(eq=False)
class Result:
    """An answer to come, as kazoo hands it out. ``steps``: how often it is handed on."""

    queue: Callable[[Callable[[], None]], None]
    steps: int = 1
    value: Any = None
    exception: Exception | None = None
    _ready: bool = False
    _callback: Callable[[Any], None] | None = None
    _arrived: threading.Event = attrs.field(factory=threading.Event)

    def rawlink(self, callback: Callable[[Any], None]) -> None:
        self._callback = callback
        if self._ready:
            self._hand_on(self.steps)

    def wait(self, timeout: float | None = None) -> bool:
        return self._arrived.wait(timeout)

    def set(self, value: Any) -> None:
        if isinstance(value, Refusal):
            self.exception = reply_error(value.code)
        else:
            self.value = value
        self._ready = True
        self._arrived.set()
        if self._callback is not None:
            self._hand_on(self.steps)

    def _hand_on(self, steps: int) -> None:
        last = self._callback if steps == 1 else lambda _: self._hand_on(steps - 1)
        assert last is not None  # somebody waits for it
        self.queue(partial(last, self))


@attrs.define(eq=False)
class Pending:
    """A question that is asked and not answered yet."""

    question: Question
    result: Result
    watcher: Any = None


@attrs.frozen
class Event:
    """A watch event as kazoo shows it."""

    type: Happened
    path: str | None


@attrs.frozen
class Socket:
    """What can be done to the client's socket by whoever observes it."""

    client: FakeClient

    def shutdown(self, how: int) -> None:
        self.client.shut()


class Batch:
    """kazoo's transaction request."""

    def __init__(self, client: FakeClient) -> None:
        self._client = client
        self._operations: list[Operation] = []

    def check(self, path: str, version: int) -> None:
        self._operations.append(Check(path=path, version=version))

    def set_data(self, path: str, value: bytes, version: int = -1) -> None:
        self._operations.append(Put(path=path, data=value, version=version))

    def create(
        self,
        path: str,
        value: bytes = b"",
        acl: Sequence[Any] | None = None,
        *,
        ephemeral: bool = False,
    ) -> None:
        self._operations.append(Create(path=path, data=value, ephemeral=ephemeral))

    def delete(self, path: str, version: int = -1) -> None:
        self._operations.append(Delete(path=path, version=version))

    def commit_async(self) -> Any:
        question = Question(name="multi", operations=tuple(self._operations))
        return self._client.send(question)
