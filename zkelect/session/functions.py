"""Functions that users give: what cannot be called is told before anything is done."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MethodType
from typing import Any, Final

from zkelect.errors import InvalidArgument

__all__ = [
    "check_async_stop",
    "check_blocking",
    "check_callable",
    "check_callbacks",
    "check_coroutine",
    "check_stop",
]

_CALLBACKS: Final = ("elected", "suspended", "deposed")


def check_callable(argument: str, function: object, form: str) -> None:
    """Refuse what is no function.

    :param form: what it should be, for the message.
    """
    if not callable(function):
        raise InvalidArgument(argument, function, form)


def check_blocking(argument: str, function: object, form: str) -> None:
    """Refuse a coroutine function: called by a thread it would do nothing, and look true."""
    check_callable(argument, function, form)
    if _is_coroutine_function(function):
        raise InvalidArgument(
            argument, function, f"{form}; a coroutine function needs an AsyncElection"
        )


def check_coroutine(argument: str, function: object, form: str) -> None:
    """Refuse an ordinary function: it would stop the event loop.

    A lambda, or an object of another library's that can be called, may return something to
    await: that shows only when it is called.
    """
    check_callable(argument, function, form)
    innermost = _bare(function)
    if isinstance(innermost, FunctionType) and not (
        _is_coroutine_function(function)
        or inspect.iscoroutinefunction(innermost)
        or innermost.__name__ == "<lambda>"
    ):
        raise InvalidArgument(argument, function, f"{form}; an ordinary one needs an Election")


def check_callbacks(callbacks: object) -> None:
    """Refuse what has not all three methods: the one that lacks would be missed when it counts."""
    for name in _CALLBACKS:
        form = f"an object with methods {', '.join(_CALLBACKS)}, each taking the leadership"
        method = getattr(callbacks, name, None)
        if isinstance(callbacks, type) or not callable(method):
            raise InvalidArgument("callbacks", callbacks, f"{form}; {_lack(callbacks, name)}")
        check_blocking(f"callbacks.{name}", method, "an ordinary method")


def check_stop(stop: object) -> None:
    """Refuse what is no event of threads or processes."""
    looked_at = callable(getattr(stop, "is_set", None))
    if stop is not None and (not looked_at or _is_awaited(stop)):
        raise InvalidArgument("stop", stop, "a threading.Event, or None")


def check_async_stop(stop: object) -> None:
    """Refuse what cannot be awaited: a threading.Event would stop the event loop."""
    if stop is not None and not _is_awaited(stop):
        raise InvalidArgument("stop", stop, "an asyncio.Event, or None")


def _lack(callbacks: object, name: str) -> str:
    return "this is a class" if isinstance(callbacks, type) else f"there is no {name}()"


def _is_awaited(stop: object) -> bool:
    return inspect.iscoroutinefunction(getattr(stop, "wait", None))


def _is_coroutine_function(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    called = getattr(function, "__call__", None)  # noqa: B004  # an object may have an async one
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _bare(function: Any) -> Any:
    """Return the function within partials, methods and decorators that name what they wrap."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, FunctionType) and hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return function
