"""Which requests need a token, and what a middleware asks of the store that keeps its mark."""

from __future__ import annotations

import inspect
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from zkelect.errors import InvalidArgument, Refused, Unreachable
from zkelect.stores.http_header import HEADER, read_token
from zkelect.stores.http_problem import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from zkelect.token import Token

__all__ = ["SAFE", "Inadmissible", "MarkStore", "Rule"]

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing (RFC 9110, 9.2.1), and so may come without a token."""

_log: Final = logging.getLogger("zkelect.stores")


class MarkStore(Protocol):
    """A guarded store; one that has ``transaction`` too can be held while a handler runs."""

    def claim(self, claimant: Any, /) -> Any:
        """Raise the mark to this token, or refuse it."""


class Inadmissible(Exception):
    """A request that must not reach the handler, and what is answered in its place."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.title)


class Rule:
    """What of a middleware does not depend on WSGI or ASGI.

    :raises InvalidArgument: the store cannot do what is asked of it, or ``safe`` is no set of
        methods.
    """

    def __init__(self, mark: MarkStore, *, hold: bool, safe: Collection[str]) -> None:
        if not callable(getattr(mark, "claim", None)):
            raise InvalidArgument("mark", mark, "a guarded store, as SqliteFence")
        if hold and not callable(getattr(mark, "transaction", None)):
            expected = (
                "False with this store: it has no transaction to be held while a handler runs"
            )
            raise InvalidArgument("hold", hold, expected)
        if isinstance(safe, str):
            raise InvalidArgument("safe", safe, "a collection of methods, as {'GET', 'HEAD'}")
        self.mark, self._hold = mark, hold
        self._safe = frozenset(method.upper() for method in safe)

    @property
    def waits(self) -> bool:
        """Whether the store is one of asyncio."""
        return inspect.iscoroutinefunction(self.mark.claim)

    def token(self, method: str, values: Sequence[str | bytes]) -> Token | None:
        """Return the request's token; None if it has none and needs none.

        :param values: all that the header of the token says.
        :raises Inadmissible: it needs one, or it is none.
        """
        if not values and method.upper() in self._safe:
            return None
        try:
            return read_token([(HEADER, value) for value in values])
        except InvalidArgument as error:
            raise Inadmissible(Problem.of(error)) from error

    def holds(self, method: str) -> bool:
        """Whether the store is held while the handler of this method runs."""
        return self._hold and method.upper() not in self._safe

    @contextmanager
    def judging(self) -> Iterator[None]:
        """Turn what the store says against a token into what the leader is answered."""
        try:
            yield
        except Refused as refusal:
            _log.info("request refused: %s", refusal)
            raise Inadmissible(Problem.of(refusal)) from refusal
        except Unreachable as failure:
            _log.exception("request refused: the store of the marks could not be asked")
            raise Inadmissible(Problem.of(failure)) from failure
