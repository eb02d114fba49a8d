"""The middlewares: who is let through, what the others are answered, and when the mark is held."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from stores.bearers import make_token
from stores.http_requests import Exchange, ask, ask_asgi, environment

from zkelect.errors import Fenced, InvalidArgument, RequestFailed, StoreBusy
from zkelect.stores import MemoryFence, SqliteFence
from zkelect.stores.http_asgi import AsyncFencingMiddleware
from zkelect.stores.http_wsgi import FencingMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from stores.http_requests import Answer, Values

    from zkelect.token import Token

WITHIN = 60.0
OLD, NEW = make_token(5), make_token(6)
MALFORMED: list[Values] = [
    "",
    "5",
    str(NEW)[:-1],
    f"{NEW} ",
    str(NEW).upper(),
    (str(NEW), str(NEW)),
]


class Service:
    """One middleware over a handler that remembers; WSGI and ASGI look the same from here."""

    def __init__(self, kind: str, mark: Any, **options: Any) -> None:
        self.seen: list[Token | None] = []
        self._asgi = kind == "asgi"
        make: Any = AsyncFencingMiddleware if self._asgi else FencingMiddleware
        self._app = make(self._asgi_handler if self._asgi else self._handler, mark=mark, **options)

    def ask(self, method: str, values: Values = None) -> Answer:
        return ask_asgi(self._app, method, values) if self._asgi else ask(self._app, method, values)

    def _handler(self, environ: Any, start_response: Any) -> list[bytes]:
        self.seen.append(environ["zkelect.token"])
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else b"done"]

    async def _asgi_handler(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(scope["zkelect"]["token"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture(params=["wsgi", "asgi"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mark() -> MemoryFence:
    return MemoryFence(domain="billing")


# --- who is let through ------------------------------------------------------------------------


def test_a_token_that_is_present_reaches_the_handler(kind: str, mark: MemoryFence) -> None:
    service = Service(kind, mark)
    for token in (OLD, OLD, NEW):
        assert service.ask("POST", token).status == 200
    assert service.seen == [OLD, OLD, NEW]


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("method", ["GET", "POST", "PROPFIND"])
def test_a_stale_token_is_refused_whatever_the_method(
    kind: str, mark: MemoryFence, method: str, hold: bool
) -> None:
    service = Service(kind, mark, hold=hold)
    service.ask("POST", NEW)
    answer = service.ask(method, OLD)
    assert (answer.status, answer.kind, service.seen) == (412, "fenced", [NEW])
    assert answer.problem == {
        "type": "urn:zkelect:problem:fenced",
        "status": 412,
        "title": "A newer leader has claimed this domain",
        "detail": "",
        "store": "memory",
        "domain": "billing",
        "token": str(OLD),
        "mark": str(NEW),
        "holder": "",
    }
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "post", "PUT", "PATCH", "DELETE", "PROPFIND"])
def test_h58_a_request_without_a_token_is_refused(
    kind: str, mark: MemoryFence, method: str
) -> None:
    service = Service(kind, mark)
    answer = service.ask(method)
    assert (answer.status, answer.kind, service.seen) == (428, "token-missing", [])


@pytest.mark.parametrize("values", MALFORMED)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_malformed_token_is_refused(
    kind: str, mark: MemoryFence, method: str, values: Values
) -> None:
    service = Service(kind, mark)
    answer = service.ask(method, values)
    assert (answer.status, answer.kind, service.seen) == (400, "token-malformed", [])
    assert mark.status() is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_safe_method_may_come_without_a_token(kind: str, mark: MemoryFence, method: str) -> None:
    service = Service(kind, mark)
    assert service.ask(method).status == 200
    assert (service.seen, mark.status()) == ([None], None)


def test_what_is_safe_can_be_said(kind: str, mark: MemoryFence) -> None:
    service = Service(kind, mark, safe={"report"})
    assert service.ask("REPORT").status == 200
    assert service.ask("GET").kind == "token-missing"


def test_h51_a_read_with_a_token_is_its_claim(kind: str, mark: MemoryFence) -> None:
    service = Service(kind, mark)
    service.ask("GET", NEW)
    assert service.ask("POST", OLD).kind == "fenced"


def test_the_refusal_of_a_head_has_no_body(kind: str, mark: MemoryFence) -> None:
    service = Service(kind, mark)
    service.ask("POST", NEW)
    answer = service.ask("HEAD", OLD)
    assert (answer.status, answer.body) == (412, b"")
    assert int(answer.headers["content-length"]) > 0


def test_another_lineage_has_a_type_of_its_own(kind: str, mark: MemoryFence) -> None:
    service = Service(kind, mark)
    service.ask("POST", OLD)
    answer = service.ask("POST", make_token(9, lineage="f" * 16))
    assert (answer.status, answer.kind) == (412, "lineage-mismatch")


def test_a_lost_mark_is_told(kind: str, mark: MemoryFence) -> None:
    service = Service(kind, mark)
    service.ask("POST", OLD)
    mark.restore(None)
    assert service.ask("POST", OLD).kind == "fence-state-lost"


# --- a store that cannot answer ----------------------------------------------------------------


def test_a_busy_store_is_told_as_such(kind: str) -> None:
    mark = MemoryFence(domain="billing", timeout=0.05)
    mark.claim(OLD)
    service = Service(kind, mark)
    with mark.transaction(OLD):
        answer = service.ask("POST", NEW)
    assert (answer.status, answer.kind, answer.headers["retry-after"]) == (503, "store-busy", "1")
    assert "0.05 s" in answer.problem["detail"]
    assert service.seen == []


@pytest.mark.parametrize("hold", [True, False])
def test_a_store_that_fails_is_logged_and_its_words_stay_here(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, hold: bool
) -> None:
    service = Service(kind, SqliteFence(tmp_path / "no" / "marks.db", domain="d"), hold=hold)
    answer = service.ask("POST", NEW)
    assert (answer.status, answer.kind) == (503, "store-unreachable")
    assert answer.headers["retry-after"] == "1"
    assert str(tmp_path) not in answer.body.decode()
    assert str(tmp_path) in caplog.text
    assert service.seen == []


# --- holding the mark --------------------------------------------------------------------------


class Pausing:
    """A handler that waits inside for the test, and a log of what it did."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.log: list[str] = []

    @contextmanager
    def releasing(self) -> Iterator[None]:
        """Keep no handler waiting when the test fails."""
        try:
            yield
        finally:
            self.go_on.set()

    def wsgi(self, environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        self._handle(environ["zkelect.token"])
        return []

    def lazy(self, environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [])
        self._handle(environ["zkelect.token"])
        yield b"done"

    async def asgi(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(self._handle, scope["zkelect"]["token"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def _handle(self, token: Token) -> None:
        if token == OLD:
            self.began.set()
            assert self.go_on.wait(WITHIN)
        self.log.append("old" if token == OLD else "new")


def serve(app: Any, token: Token) -> None:
    """Make one request as a server does, without the test's validator."""
    body = app(environment("POST", token), lambda *_: None)
    try:
        list(body)
    finally:
        getattr(body, "close", lambda: None)()


def serve_asgi(app: Any, token: Token) -> None:
    exchange = Exchange(values=token)
    asyncio.run(exchange.run(app))
    assert exchange.answer.status == 200


def handlers(paused: Pausing, **options: Any) -> dict[str, tuple[Any, Callable[..., None]]]:
    wsgi, lazy = (
        FencingMiddleware(paused.wsgi, **options),
        FencingMiddleware(paused.lazy, **options),
    )
    asgi = AsyncFencingMiddleware(paused.asgi, **options)
    return {"wsgi": (wsgi, serve), "lazy": (lazy, serve), "asgi": (asgi, serve_asgi)}


@pytest.mark.parametrize("how", ["wsgi", "lazy", "asgi"])
def test_a_newer_leader_waits_for_the_handler_that_has_begun(how: str, tmp_path: Path) -> None:
    """Its request is in the middleware when the old one's handler goes on, and comes after it."""
    paused, asked = Pausing(), threading.Event()

    class Told(SqliteFence):
        def claim(self, claimant: Any) -> None:
            asked.set() if claimant == NEW else None
            super().claim(claimant)

    mark = Told(tmp_path / "marks.db", domain="d", timeout=WITHIN)
    app, request = handlers(paused, mark=mark)[how]
    with ThreadPoolExecutor(2) as pool, paused.releasing():
        old = pool.submit(request, app, OLD)
        assert paused.began.wait(WITHIN)
        with pytest.raises(StoreBusy):
            SqliteFence(tmp_path / "marks.db", domain="d", timeout=0.05).claim(NEW)
        new = pool.submit(request, app, NEW)
        assert asked.wait(WITHIN)
        paused.go_on.set()
        old.result()
        new.result()
    assert paused.log == ["old", "new"]


@pytest.mark.parametrize("how", ["wsgi", "lazy", "asgi"])
def test_without_hold_the_handler_that_has_begun_is_overtaken(how: str, tmp_path: Path) -> None:
    """The gap that hold=True closes: the same two requests, in the other order."""
    paused = Pausing()
    mark = SqliteFence(tmp_path / "marks.db", domain="d")
    app, request = handlers(paused, mark=mark, hold=False)[how]
    with ThreadPoolExecutor(1) as pool, paused.releasing():
        old = pool.submit(request, app, OLD)
        assert paused.began.wait(WITHIN)
        request(app, NEW)
        paused.go_on.set()
        old.result()
    assert paused.log == ["new", "old"]


def is_free(mark: MemoryFence) -> bool:
    """Whether nobody holds the mark."""
    try:
        MemoryFence.claim(mark, NEW)
    except StoreBusy:
        return False
    return True


def test_the_hold_ends_with_the_response(kind: str) -> None:
    mark = MemoryFence(domain="d", timeout=0.05)
    Service(kind, mark).ask("POST", OLD)
    assert is_free(mark)


def test_the_hold_ends_with_a_handler_that_fails(kind: str) -> None:
    mark = MemoryFence(domain="d", timeout=0.05)
    error = Fenced(store="the handler's own", domain="x")

    def fail(*_: object) -> list[bytes]:
        raise error

    async def fail_too(*_: object) -> None:
        raise error

    app: Any = FencingMiddleware(fail, mark=mark)
    if kind == "asgi":
        app = AsyncFencingMiddleware(fail_too, mark=mark)
    with pytest.raises(Fenced) as caught:
        (serve_asgi if kind == "asgi" else serve)(app, OLD)
    assert caught.value is error
    assert is_free(mark)


class Breaking(MemoryFence):
    """A store that loses the transaction it lends, as a server that ends idle ones."""

    @contextmanager
    def transaction(self, claimant: Any) -> Iterator[Any]:
        with super().transaction(claimant) as writes:
            yield writes
        raise RequestFailed("store", "commit", "terminated, idle in transaction")


def test_a_hold_that_was_lost_meanwhile_is_raised_to_the_server(kind: str) -> None:
    mark = Breaking(domain="d")
    with pytest.raises(RequestFailed, match="idle in transaction"):
        Service(kind, mark).ask("POST", OLD)


def test_a_read_holds_nothing(kind: str) -> None:
    assert Service(kind, Breaking(domain="d")).ask("GET", OLD).status == 200


class Claiming:
    """A store that has no transactions."""

    def __init__(self) -> None:
        self.claims: list[Token] = []

    def claim(self, claimant: Token) -> None:
        self.claims.append(claimant)


def test_a_store_without_transactions_cannot_be_held(kind: str) -> None:
    with pytest.raises(InvalidArgument, match="hold=True: False with this store"):
        Service(kind, Claiming())
    mark = Claiming()
    assert Service(kind, mark, hold=False).ask("POST", OLD).status == 200
    assert mark.claims == [OLD]


@pytest.mark.parametrize("mark", [None, object(), "marks.db"])
def test_what_is_no_store_is_refused(kind: str, mark: object) -> None:
    with pytest.raises(InvalidArgument, match="mark"):
        Service(kind, mark)


def test_safe_is_a_collection_of_methods(kind: str, mark: MemoryFence) -> None:
    with pytest.raises(InvalidArgument, match="safe"):
        Service(kind, mark, safe="GET")


# --- WSGI --------------------------------------------------------------------------------------


def test_an_asgi_application_is_told_to_use_the_other_one(mark: MemoryFence) -> None:
    class Asgi:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    async def asgi(scope: Any, receive: Any, send: Any) -> None: ...

    for app in (Asgi(), asgi):
        with pytest.raises(InvalidArgument, match="AsyncFencingMiddleware"):
            FencingMiddleware(app, mark=mark)  # type: ignore[arg-type]  # that is the point


def test_a_store_of_asyncio_is_told_to_use_the_other_one() -> None:
    with pytest.raises(InvalidArgument, match="AsyncFencingMiddleware"):
        FencingMiddleware(Pausing().wsgi, mark=AsyncStore())


def test_a_body_is_closed_and_then_the_hold_ends() -> None:
    mark = MemoryFence(domain="d", timeout=0.05)
    free: list[bool] = []

    class Body(list[bytes]):
        def close(self) -> None:
            free.append(is_free(mark))

    app = FencingMiddleware(lambda *_: Body(), mark=mark)
    body = app(environment("POST", OLD), lambda *_: lambda _: None)
    body.close()  # type: ignore[attr-defined]  # it has one
    assert (free, is_free(mark)) == ([False], True)


# --- ASGI --------------------------------------------------------------------------------------


class AsyncStore:
    """A store of asyncio, over the memory model."""

    def __init__(self) -> None:
        self.memory = MemoryFence(domain="d", timeout=0.05)

    async def claim(self, claimant: Token) -> None:
        self.memory.claim(claimant)

    @asynccontextmanager
    async def transaction(self, claimant: Token) -> AsyncIterator[Any]:
        with self.memory.transaction(claimant) as writes:
            yield writes


@pytest.mark.parametrize("hold", [True, False])
def test_a_store_of_asyncio_is_awaited(hold: bool) -> None:
    mark, free = AsyncStore(), []

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        free.append(is_free(mark.memory))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    app = AsyncFencingMiddleware(handler, mark=mark, hold=hold)
    assert ask_asgi(app, "POST", OLD).status == 200
    assert free == [not hold]
    assert is_free(mark.memory)
    assert ask_asgi(app, "POST", OLD).kind == "fenced"


def test_lifespan_passes(mark: MemoryFence) -> None:
    seen = []

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(Exchange("lifespan").run(AsyncFencingMiddleware(handler, mark=mark)))
    assert seen == ["lifespan"]


async def accepting(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})


def test_a_websocket_is_judged_at_its_opening_and_holds_nothing() -> None:
    mark, free = MemoryFence(domain="d", timeout=0.05), []

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        free.append((scope["zkelect"]["token"], is_free(mark)))

    asyncio.run(Exchange("websocket", values=OLD).run(AsyncFencingMiddleware(handler, mark=mark)))
    assert free == [(OLD, True)]


def test_a_websocket_needs_a_token_at_its_opening(mark: MemoryFence) -> None:
    app = AsyncFencingMiddleware(accepting, mark=mark)
    opening, refused = Exchange("websocket", values=NEW), Exchange("websocket")
    asyncio.run(opening.run(app))
    asyncio.run(refused.run(app))
    assert opening.sent == [{"type": "websocket.accept"}]
    closed = {"type": "websocket.close", "code": 1008, "reason": "No Fencing-Token header"}
    assert refused.sent == [closed]


def test_a_websocket_is_answered_in_full_where_the_server_can(mark: MemoryFence) -> None:
    mark.claim(NEW)
    refused = Exchange("websocket", values=OLD)
    refused.scope["extensions"] = {"websocket.http.response": {}}
    asyncio.run(refused.run(AsyncFencingMiddleware(accepting, mark=mark)))
    assert refused.sent[0]["type"] == "websocket.http.response.start"
    assert (refused.answer.status, refused.answer.kind) == (412, "fenced")


def test_a_websocket_can_be_let_be(mark: MemoryFence) -> None:
    opening = Exchange("websocket")
    app = AsyncFencingMiddleware(accepting, mark=mark, safe={"GET", "WEBSOCKET"})
    asyncio.run(opening.run(app))
    assert opening.sent == [{"type": "websocket.accept"}]


def test_a_request_that_is_cancelled_lets_the_mark_go() -> None:
    mark = MemoryFence(domain="d", timeout=WITHIN)

    async def scene() -> None:
        began = asyncio.Event()

        async def handler(*_: object) -> None:
            began.set()
            await asyncio.Event().wait()

        request = asyncio.create_task(
            Exchange(values=OLD).run(AsyncFencingMiddleware(handler, mark=mark))
        )
        await began.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await asyncio.to_thread(mark.claim, NEW)

    asyncio.run(scene())
    assert mark.status() is not None


def test_a_request_that_is_cancelled_while_it_waits_never_gets_the_mark() -> None:
    mark = MemoryFence(domain="d", timeout=WITHIN)
    mark.claim(OLD)
    ended = threading.Event()

    class Told(MemoryFence):
        @contextmanager
        def transaction(self, claimant: Any) -> Iterator[Any]:
            asked.set()
            try:
                with mark.transaction(claimant) as writes:
                    yield writes
            finally:
                ended.set()

    asked = threading.Event()

    async def scene() -> None:
        app = AsyncFencingMiddleware(accepting, mark=Told(domain="d"))
        request = asyncio.create_task(Exchange(values=OLD).run(app))
        await asyncio.to_thread(asked.wait, WITHIN)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    with mark.transaction(OLD):
        asyncio.run(scene())
    assert ended.wait(WITHIN)
    mark.claim(NEW)


def test_waiting_requests_take_no_thread_from_the_handler() -> None:
    """More of them wait than asyncio has threads; the one that is let in needs one of those."""
    mark = MemoryFence(domain="d", timeout=WITHIN)
    done: list[Token] = []

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(done.append, scope["zkelect"]["token"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def scene() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        app = AsyncFencingMiddleware(handler, mark=mark)
        async with asyncio.TaskGroup() as group:
            for _ in range(48):
                group.create_task(Exchange(values=OLD).run(app))

    asyncio.run(scene())
    assert done == [OLD] * 48
