"""One request to an application, without a server: WSGI and ASGI, and what came back."""

from __future__ import annotations

import asyncio
import io
import json
import warnings
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import WSGIWarning, validator

import attrs

from zkelect.stores.http_header import HEADER
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import WSGIApplication, WSGIEnvironment

    Values = Token | str | tuple[str, ...] | None


@attrs.frozen
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        fields: dict[str, Any] = json.loads(self.body)
        assert fields["status"] == self.status
        return fields

    @property
    def kind(self) -> str:
        kind: str = self.problem["type"]
        assert kind.startswith("urn:zkelect:problem:")
        return kind.rpartition(":")[2]


class Unreadable(io.BytesIO):
    """A request body that nobody may touch."""

    def read(self, *_: object) -> bytes:
        raise AssertionError("the request's body was read")

    readline = read


def environment(method: str, values: Values = None) -> WSGIEnvironment:
    environ: WSGIEnvironment = {"REQUEST_METHOD": method, "QUERY_STRING": ""}
    setup_testing_defaults(environ)
    if values is not None:
        every = values if isinstance(values, tuple) else (str(values),)
        environ["HTTP_" + HEADER.upper().replace("-", "_")] = ",".join(every)
    return environ


def ask(app: WSGIApplication, method: str, values: Values = None) -> Answer:
    """Make one WSGI request, and see that both sides keep to PEP 3333."""
    told: list[Any] = []
    environ = environment(method, values)
    environ["wsgi.input"] = Unreadable()

    def start(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
        told.extend((status, headers))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WSGIWarning)  # it has not heard of PROPFIND
        body = validator(app)(environ, start)
    try:
        content = b"".join(body)
    finally:
        body.close()  # type: ignore[attr-defined]  # the validator's has one
    return _answer(int(told[0].split()[0]), told[1], content)


def _answer(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    return Answer(status, {name.lower(): value for name, value in headers}, body)


class Exchange:
    """One ASGI request: what the application was asked, and what it sent."""

    def __init__(self, kind: str = "http", method: str = "POST", values: Values = None) -> None:
        every = values if isinstance(values, tuple) else () if values is None else (str(values),)
        headers = [(HEADER.lower().encode(), value.encode()) for value in every]
        self.scope: dict[str, Any] = {"type": kind, "method": method, "headers": headers}
        self.sent: list[Any] = []
        self.has_connected = False

    async def run(self, app: Any) -> None:
        await app(self.scope, self._receive, self._send)

    async def _receive(self) -> Any:
        if self.scope["type"] == "websocket" and not self.has_connected:
            self.has_connected = True
            return {"type": "websocket.connect"}
        raise AssertionError("the request's body was read")

    async def _send(self, message: Any) -> None:
        assert self.has_connected or self.scope["type"] != "websocket"
        self.sent.append(message)

    @property
    def answer(self) -> Answer:
        start, *bodies = self.sent
        headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
        return _answer(start["status"], headers, b"".join(body["body"] for body in bodies))


def ask_asgi(app: Any, method: str, values: Values = None) -> Answer:
    exchange = Exchange(method=method, values=values)
    asyncio.run(exchange.run(app))
    return exchange.answer
