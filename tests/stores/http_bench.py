"""A service behind the middleware, its servers and proxies, and leaders that send to it."""

from __future__ import annotations

import asyncio
import http.client
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import httpx
import requests
from stores.benches import SqliteBench

from zkelect.stores.http_asgi import AsyncFencingMiddleware
from zkelect.stores.http_client import RequestsAuth, async_httpx_hooks, httpx_hooks
from zkelect.stores.http_wsgi import FencingMiddleware
from zkelect.stores.sqlite import SqliteFence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from zkelect.stores import Mark
    from zkelect.stores.fence import Claimant
    from zkelect.token import Token

WITHIN = 60.0


# --- servers ---------------------------------------------------------------------------------


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep the test's output for what fails."""


@contextmanager
def served(app: WSGIApplication) -> Iterator[str]:
    """Serve a WSGI application on a free port, a thread for each connection; lend its URL."""
    with make_server("127.0.0.1", 0, app, _Server, _Handler) as server, _running(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def dropping(
    upstream: str, *headers: str, before: Callable[[str, str], object] = lambda *_: None
) -> Iterator[str]:
    """Run a proxy that forwards requests without these headers; lend its URL.

    :param before: called with method and path before a request is forwarded.
    """
    address = urlsplit(upstream).netloc
    dropped = {header.lower() for header in headers} | {"connection", "expect"}

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # or "Expect: 100-continue" would wait for a second

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if self.raw_requestline and self.parse_request():
                self._forward()
            self.close_connection = True

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
            before(self.command, self.path)
            onward = http.client.HTTPConnection(address, timeout=WITHIN)
            onward.request(self.command, self.path, body, kept)
            answer = onward.getresponse()
            content = answer.read()
            onward.close()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"connection", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server, _running(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def _running(server: Any) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


# --- the service -----------------------------------------------------------------------------


class Ledger:
    """What reached the service, in order, with the token that its handler was given."""

    def __init__(self) -> None:
        self.entries: list[tuple[Token, str]] = []

    def wsgi(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        if environ["REQUEST_METHOD"] == "POST":
            length = int(environ.get("CONTENT_LENGTH") or 0)
            entry = environ["wsgi.input"].read(length).decode()
            self.entries.append((environ["zkelect.token"], entry))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"done"]

    async def asgi(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            body = (await receive())["body"]
            self.entries.append((scope["zkelect"]["token"], body.decode()))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


class Sender:
    """One client library: sends a request of a claimant to one service."""

    def __init__(self, marks: SqliteFence, send: Callable[[Any, str, str], object]) -> None:
        self._marks, self._send = marks, send

    def claim(self, claimant: Claimant) -> None:
        self._send(claimant, "GET", "")

    def write(self, claimant: Claimant, entry: str) -> None:
        self._send(claimant, "POST", entry)

    def status(self) -> Mark | None:
        return self._marks.status()


class HttpBench:
    """Services that share a file of marks and a ledger, as processes of one service do.

    :param library: what the leaders send with: httpx, requests, or httpx on asyncio.
    """

    volatile = False

    def __init__(self, path: Path, url: str, library: str) -> None:
        self._path, self._url = path, url
        self._library = library
        self._ledger = Ledger()
        self.apps: dict[str, WSGIApplication] = {}

    def fence(self, *, domain: str = "d", timeout: float = WITHIN) -> Sender:
        marks = SqliteFence(self._path, domain=domain, timeout=timeout)
        if self._library == "asgi":
            return Sender(marks, _Asgi(AsyncFencingMiddleware(self._ledger.asgi, mark=marks)))
        name = str(len(self.apps))
        self.apps[name] = FencingMiddleware(self._ledger.wsgi, mark=marks)
        kind = _Httpx if self._library == "httpx" else _Requests
        return Sender(marks, kind(f"{self._url}/{name}"))

    def write(self, fence: Sender, claimant: Claimant, entry: str) -> None:
        fence.write(claimant, entry)

    def log(self) -> list[tuple[Token, str]]:
        return list(self._ledger.entries)

    def restore(self, mark: Token | None) -> None:
        SqliteBench(self._path).restore(mark)


class Terms(dict[int, Any]):
    """What a library keeps for each claimant while its term lasts."""

    def __init__(self, make: Callable[[Claimant], Any]) -> None:
        self._make = make

    def of(self, claimant: Claimant) -> Any:
        if id(claimant) not in self:
            self[id(claimant)] = self._make(claimant)
        return self[id(claimant)]


class _Httpx:
    def __init__(self, url: str) -> None:
        self._url, self._terms = url, Terms(httpx_hooks)

    def __call__(self, claimant: Claimant, method: str, entry: str) -> None:
        hooks = self._terms.of(claimant)
        with httpx.Client(event_hooks=hooks, timeout=WITHIN, trust_env=False) as client:
            client.request(method, self._url, content=entry).raise_for_status()


class _Requests:
    def __init__(self, url: str) -> None:
        self._url, self._terms = url, Terms(RequestsAuth)

    def __call__(self, claimant: Claimant, method: str, entry: str) -> None:
        auth = self._terms.of(claimant)
        with requests.Session() as session:
            session.trust_env = False
            answer = session.request(method, self._url, data=entry, auth=auth, timeout=WITHIN)
            answer.raise_for_status()


class _Asgi:
    def __init__(self, app: Any) -> None:
        self._app, self._terms = app, Terms(async_httpx_hooks)

    def __call__(self, claimant: Claimant, method: str, entry: str) -> None:
        asyncio.run(self._send(self._terms.of(claimant), method, entry))

    async def _send(self, hooks: Any, method: str, entry: str) -> None:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, event_hooks=hooks) as client:
            answer = await client.request(method, "http://service/", content=entry)
            answer.raise_for_status()


@contextmanager
def http_bench(path: Path, library: str) -> Iterator[HttpBench]:
    def dispatch(environ: WSGIEnvironment, start_response: StartResponse) -> Collection[bytes]:
        return bench.apps[environ["PATH_INFO"].strip("/")](environ, start_response)  # type: ignore[return-value]  # wsgiref takes any iterable

    with served(dispatch) as url:
        bench = HttpBench(path, url, library)
        yield bench
