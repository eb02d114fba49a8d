"""A user's coroutine as a task: cancelled when it must stop, and always awaited to its end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from zkelect.aio_leadership import AsyncLeadership
from zkelect.errors import InvalidArgument

__all__ = ["answer", "awaited", "end", "work"]

_Result = TypeVar("_Result")


async def work(
    leadership: AsyncLeadership, lead: Callable[[AsyncLeadership], Awaitable[_Result]]
) -> _Result:
    """Await the body, cancel it when the leadership is lost, and wait for its end."""
    body = asyncio.ensure_future(awaited("lead", lead, lead(leadership)))
    lost = asyncio.ensure_future(leadership.lost())
    try:
        await asyncio.wait({body, lost}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        lost.cancel()
        await end(body)
    if body.cancelled():
        leadership.leadership.check()  # raises, if the loss is why
    result = body.result()
    if leadership.reason is not None:
        leadership.check()
    return result


async def end(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end; who cancels us meanwhile waits for it, too."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def answer(value: Any) -> Any:
    """Return what a function gave that may be a coroutine function or an ordinary one."""
    return await value if inspect.isawaitable(value) else value


def awaited(argument: str, function: object, value: Awaitable[_Result]) -> Awaitable[_Result]:
    """Return what a function gave, if it can be awaited: only now can that be told of some."""
    if not inspect.isawaitable(value):
        form = f"a coroutine function (async def); this one returned {value!r}"
        raise InvalidArgument(argument, function, form)
    return value
