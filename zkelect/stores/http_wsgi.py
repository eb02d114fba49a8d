"""The service's side of HTTP, for WSGI: no request of a stale leader reaches the handler."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from zkelect.errors import InvalidArgument
from zkelect.stores.http_header import HEADER
from zkelect.stores.http_rule import SAFE, Inadmissible, MarkStore, Rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from zkelect.stores.http_problem import Problem
    from zkelect.token import Token

__all__ = ["FencingMiddleware"]

_VARIABLE: Final = "HTTP_" + HEADER.upper().replace("-", "_")


class FencingMiddleware:
    """Lets a WSGI application see only requests of the present leader.

    ::

        marks = stores.SqliteFence("marks.db", domain="billing")
        app.wsgi_app = stores.FencingMiddleware(app.wsgi_app, mark=marks)

    The token comes in the header ``Fencing-Token``. The first request with a higher one is the
    claim: from then on lower ones are refused. A request that may change something needs a
    token; one of a safe method may come without, and if it has one it is judged too, so that
    a leader's first GET claims before it reads.

    Promises, with ``hold``: the store's guarded transaction is open while the handler runs and
    its response is iterated, so no newer token claims meanwhile, and when one has claimed, no
    handler of an older one runs or starts. Handlers run one at a time where the store has one
    writer (SQLite, memory), those of one leader side by side where it shares (SQL). One that
    runs longer than the mark's ``timeout`` makes a newer leader's claim fail, 503, until it
    ends; a server that ends idle transactions may end the hold before it. That is raised when
    the handler is done, out of the response's ``close()``: the server logs it.

    Promises, without: a token that is lower than one seen is refused before its handler begins.
    A handler that has begun may still write after a newer leader's.

    Does not promise: that handler and mark are committed together. Only the store of the data
    can do that: give it ``environ["zkelect.token"]`` (``fence.transaction(token)``), with
    ``hold=False`` if the mark's fence is that same one, since it would wait for itself. Work
    that the handler leaves to another thread or to a queue is not waited for.

    What is lost when the store loses its mark, its isolation, and what it costs: as that store
    says; a claim per request without ``hold``, else one transaction. No request body is read.

    A refused request is answered by RFC 9457 problem details that name store, domain, token,
    mark and holder, which httpx_hooks and RequestsAuth raise again as errors: 412 (refused by
    the mark), 428 (no token: a proxy may have dropped it), 400 (malformed, or two of them),
    503 with Retry-After (the store is busy, or could not be asked). The handler has not run.

    Put it inside whatever changes methods or headers. Where it stands, the server's thread must
    stay the same from call to ``close()``, as it does in wsgiref, gunicorn and waitress.

    :param app: the application. :param mark: the store that keeps the mark, any of
        :mod:`zkelect.stores` that has ``claim``.
    :param hold: hold the mark while handlers of unsafe methods run; needs ``transaction``.
    :param safe: methods that may come without a token.
    :raises InvalidArgument: ``app`` is ASGI, or the store is one of asyncio, or cannot be held.
    """

    def __init__(
        self,
        app: WSGIApplication,
        *,
        mark: MarkStore,
        hold: bool = True,
        safe: Collection[str] = SAFE,
    ) -> None:
        self._rule = Rule(mark, hold=hold, safe=safe)
        if self._rule.waits:
            raise InvalidArgument("mark", mark, "a blocking store, or AsyncFencingMiddleware")
        self._app = _valid_app(app)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request; the server calls this."""
        method, values = environ["REQUEST_METHOD"], _values(environ)
        with ExitStack() as held:
            try:
                token = self._rule.token(method, values)
                if token is not None:
                    self._admit(token, method, held)
            except Inadmissible as refusal:
                return _answer(refusal.problem, method, start_response)
            environ["zkelect.token"] = token
            body = self._app(environ, start_response)
            return _Body(body, held.pop_all()) if self._rule.holds(method) else body

    def _admit(self, token: Token, method: str, held: ExitStack) -> None:
        mark: Any = self._rule.mark
        with self._rule.judging():
            if self._rule.holds(method):
                held.enter_context(mark.transaction(token))
            else:
                mark.claim(token)


class _Body:
    """A response during which the mark is held: a handler may write while it is iterated."""

    def __init__(self, body: Iterable[bytes], held: ExitStack) -> None:
        self._body, self._held = body, held

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        with self._held:
            if (close := getattr(self._body, "close", None)) is not None:
                close()


def _values(environ: WSGIEnvironment) -> list[str]:
    """Return what the header says; servers join two of them by a comma, which no token has."""
    value = environ.get(_VARIABLE)
    return [] if value is None else [value]


def _answer(problem: Problem, method: str, start_response: StartResponse) -> list[bytes]:
    body = problem.encode()
    status = HTTPStatus(problem.status)
    headers = [*problem.headers, ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [] if method == "HEAD" else [body]


def _valid_app(app: WSGIApplication) -> WSGIApplication:
    if not callable(app) or _is_asgi(app):
        raise InvalidArgument("app", app, "a WSGI application; ASGI: AsyncFencingMiddleware")
    return app


def _is_asgi(app: object) -> bool:
    call = getattr(app, "__call__", None)  # noqa: B004  # its kind is asked, not its presence
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(call)
