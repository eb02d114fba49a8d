"""A function that only ever runs as the leader."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from zkelect.aio import AsyncElection
from zkelect.aio_leadership import AsyncLeadership
from zkelect.election import Election
from zkelect.errors import InvalidArgument
from zkelect.session.functions import check_callable
from zkelect.session.leadership import Leadership
from zkelect.session.limits import check_timeout

__all__ = ["leader_only"]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class _Decorator(Protocol):
    def __call__(
        self, function: Callable[Concatenate[Leadership, _Given], _Result]
    ) -> Callable[_Given, _Result]: ...


class _AsyncDecorator(Protocol):
    def __call__(
        self, function: Callable[Concatenate[AsyncLeadership, _Given], Awaitable[_Result]]
    ) -> Callable[_Given, Coroutine[Any, Any, _Result]]: ...


@overload
def leader_only(election: Election, *, timeout: float | None = None) -> _Decorator: ...
@overload
def leader_only(election: AsyncElection, *, timeout: float | None = None) -> _AsyncDecorator: ...
def leader_only(election: Election | AsyncElection, *, timeout: float | None = None) -> Any:
    """Let each call of a function stand for election, lead, and resign.

    The function gets the leadership of that call as its first argument; who calls it gives
    the others. It is :meth:`Election.run` around each call: no call ever borrows the
    leadership of another one.

    :param election: an Election for an ordinary function, an AsyncElection for a coroutine
        function, whose body is cancelled when the leadership is lost.
    :param timeout: seconds each call waits to be elected; None: for ever.
    :raises InvalidArgument: the two do not fit, or the function takes no argument.

    A call raises NotElected, LeadershipLost, and CampaignInProgress while another call of the
    same election is under way.
    """
    if not isinstance(election, Election | AsyncElection):
        form = "an Election or AsyncElection; write @leader_only(election) above the function"
        raise InvalidArgument("election", election, form)
    check_timeout(timeout)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = _without_leadership(function)
        if isinstance(election, AsyncElection):
            call = _awaited(election, function, timeout)
        else:
            call = _called(election, function, timeout)
        call.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
        return call

    return decorate


def _called(
    election: Election, function: Callable[..., Any], timeout: float | None
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        raise InvalidArgument("function", function, "an AsyncElection, for a coroutine function")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return election.run(lambda leadership: function(leadership, *args, **kwargs), timeout)

    return call


def _awaited(
    election: AsyncElection, function: Callable[..., Any], timeout: float | None
) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(function):
        raise InvalidArgument("function", function, "a coroutine function, for an AsyncElection")

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await election.run(lambda leadership: function(leadership, *args, **kwargs), timeout)

    return call


def _without_leadership(function: Callable[..., Any]) -> inspect.Signature:
    check_callable("function", function, "a function that takes the leadership first")
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind in (
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    ):
        raise InvalidArgument("function", function, "a function that takes the leadership first")
    if parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        del parameters[0]
    return signature.replace(parameters=parameters)
