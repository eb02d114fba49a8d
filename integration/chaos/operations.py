"""Claims and guarded writes, put together from what was asked and what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from chaos.history import Event

__all__ = ["Operation", "Operations"]

_NOTHING_WRITTEN: Final = frozenset({"fenced", "lost", "busy", "refused"})


@attrs.define(kw_only=True)
class Operation:
    """One claim or guarded write.

    :ivar outcome: ``done``; ``fenced``, ``lost``, ``busy``, ``refused``, which promise that
        nothing was written; or ``unknown``, as long as nobody has answered.
    :ivar answered: when; None: never.
    """

    op: str
    what: str
    store: str
    token: str
    asked: float
    outcome: str = "unknown"
    answered: float | None = None
    latency: float | None = None

    @property
    def accepted(self) -> bool:
        return self.outcome == "done"

    @property
    def left_nothing(self) -> bool:
        return self.outcome in _NOTHING_WRITTEN


class Operations:
    """Every operation of the history so far, by its number."""

    def __init__(self) -> None:
        self.all: dict[str, Operation] = {}

    def hear(self, event: Event) -> Operation | None:
        """Take the next event; return the operation that has just been answered, if one was."""
        if event.kind == "asked":
            self.all[event["op"]] = Operation(
                op=event["op"],
                what=event["what"],
                store=event["store"],
                token=event["token"],
                asked=event.at,
            )
        if event.kind != "answered" or event["op"] not in self.all:
            return None
        operation = self.all[event["op"]]
        operation.outcome, operation.answered = event["outcome"], event.at
        operation.latency = event.get("latency")
        return operation
