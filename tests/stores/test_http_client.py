"""The leader's side: what httpx and requests send for it, and what it is told."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import requests
from requests.auth import HTTPBasicAuth
from stores.bearers import FakeBearer, make_bearer, make_token
from stores.http_bench import WITHIN, Ledger, dropping, served

from zkelect.errors import (
    EnsembleWentBack,
    Fenced,
    InvalidArgument,
    LeadershipLost,
    RequestFailed,
    StoreBusy,
    UnfitStore,
)
from zkelect.stores import MemoryFence
from zkelect.stores.http_client import RequestsAuth, async_httpx_hooks, httpx_hooks
from zkelect.stores.http_header import HEADER
from zkelect.stores.http_problem import Problem
from zkelect.stores.http_wsgi import FencingMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.stores.fence import Claimant

    Send = Callable[..., int]

BASIC = "Basic dXNlcjpwYXNzd29yZA=="


class Upstream:
    """A service that answers as the test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None, str | None]] = []
        self.answers: dict[str, tuple[str, dict[str, str], bytes]] = {}
        self.before: Callable[[], None] = lambda: None
        self.url = ""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        self.before()
        headers = (environ.get("HTTP_FENCING_TOKEN"), environ.get("HTTP_AUTHORIZATION"))
        self.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], *headers))
        status, said, body = self.answers.get(environ["PATH_INFO"], ("200 OK", {}, b"done"))
        start_response(status, list(said.items()))
        return [body]

    def redirect(self, path: str, status: int, target: str) -> None:
        self.answers[path] = (f"{status} Elsewhere", {"Location": target}, b"")

    def refuse(self, status: int, body: bytes, kind: str = "application/problem+json") -> None:
        self.answers["/"] = (f"{status} No", {"Content-Type": kind}, body)

    @property
    def tokens(self) -> list[str | None]:
        return [token for _, _, token, _ in self.asked]


@pytest.fixture
def here() -> Iterator[Upstream]:
    upstream = Upstream()
    with served(upstream) as upstream.url:
        yield upstream


@pytest.fixture
def elsewhere() -> Iterator[Upstream]:
    """Another origin: it differs by its port."""
    upstream = Upstream()
    with served(upstream) as upstream.url:
        yield upstream


# --- three libraries, one way to be called -----------------------------------------------------


class Term:
    """What one library keeps for one term: sends, and returns the status."""

    def __init__(self, library: str, claimant: Claimant) -> None:
        self._library = library
        make: dict[str, Callable[[Claimant], Any]] = {
            "httpx": httpx_hooks,
            "asyncio": async_httpx_hooks,
            "requests": RequestsAuth,
        }
        self._bound = make[library](claimant)

    def send(self, url: str, method: str = "POST") -> int:
        if self._library == "asyncio":
            return asyncio.run(self._asyncio(url, method))
        return self._httpx(url, method) if self._library == "httpx" else self._requests(url, method)

    def _httpx(self, url: str, method: str) -> int:
        options = {"timeout": WITHIN, "trust_env": False, "follow_redirects": True}
        with httpx.Client(event_hooks=self._bound, **options) as client:  # type: ignore[arg-type]
            return client.request(method, url, content=b"x", auth=("user", "password")).status_code

    async def _asyncio(self, url: str, method: str) -> int:
        options = {"timeout": WITHIN, "trust_env": False, "follow_redirects": True}
        async with httpx.AsyncClient(event_hooks=self._bound, **options) as client:  # type: ignore[arg-type]
            answer = await client.request(method, url, content=b"x", auth=("user", "password"))
            return answer.status_code

    def _requests(self, url: str, method: str) -> int:
        with requests.Session() as session:
            session.trust_env = False
            auth = self._bound
            return session.request(method, url, data=b"x", auth=auth, timeout=WITHIN).status_code


@pytest.fixture(params=["httpx", "asyncio", "requests"])
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def leader() -> FakeBearer:
    return make_bearer(5)


@pytest.fixture
def term(library: str, leader: FakeBearer) -> Term:
    return Term(library, leader)


# --- the token, and the lease ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_every_request_carries_the_token(
    term: Term, here: Upstream, leader: FakeBearer, method: str
) -> None:
    assert term.send(here.url, method) == 200
    assert here.tokens == [str(leader.token)]


def test_an_expired_lease_sends_nothing(term: Term, here: Upstream, leader: FakeBearer) -> None:
    leader.lease = 0.0
    with pytest.raises(LeadershipLost):
        term.send(here.url)
    assert here.asked == []


def test_a_leadership_that_is_over_gets_no_client(library: str) -> None:
    with pytest.raises(LeadershipLost):
        Term(library, make_bearer(5, lease=0.0))


@pytest.mark.parametrize("claimant", [None, "00000000", object()])
def test_who_is_no_claimant_gets_no_client(library: str, claimant: Any) -> None:
    with pytest.raises(InvalidArgument, match="claimant"):
        Term(library, claimant)


def test_a_token_is_passed_on(library: str, here: Upstream) -> None:
    Term(library, make_token(7)).send(here.url)
    assert here.tokens == [str(make_token(7))]


# --- what the service refuses ------------------------------------------------------------------


def problem(leader: FakeBearer, **changes: Any) -> bytes:
    fields = {
        "type": "urn:zkelect:problem:fenced",
        "status": 412,
        "title": "t",
        "detail": "",
        "store": "redis",
        "domain": "billing",
        "token": str(leader.token),
        "mark": str(make_token(6)),
        "holder": "host-b",
    }
    return json.dumps({**fields, **changes}).encode()


def test_fenced_arrives_with_all_it_says_and_ends_the_leadership(
    term: Term, here: Upstream, leader: FakeBearer
) -> None:
    here.refuse(412, problem(leader))
    with pytest.raises(Fenced, match="host-b") as caught:
        term.send(here.url)
    told = caught.value
    assert told.store == f"{here.url} (redis)"
    assert (told.domain, told.holder, told.token) == ("billing", "host-b", leader.token)
    assert (told.mark, leader.ends) == (make_token(6), ["fenced"])


def test_what_a_bare_token_is_refused_ends_nothing(library: str, here: Upstream) -> None:
    here.refuse(412, problem(make_bearer(5)))
    with pytest.raises(Fenced):
        Term(library, make_token(5)).send(here.url)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (412, b"If-Match failed", "text/plain"),
        (412, problem(make_bearer(5)), "text/plain"),
        (412, b"no JSON", "application/problem+json"),
        (412, b"[" * 100_000, "application/problem+json"),
        (412, b"[]", "application/problem+json"),
        (412, b'{"type": "about:blank", "status": 412}', "application/problem+json"),
        (412, problem(make_bearer(5), type="urn:zkelect:problem:new"), "application/problem+json"),
        (412, problem(make_bearer(5), type="fenced"), "application/problem+json"),
        (412, problem(make_bearer(5), token=str(make_token(4))), "application/problem+json"),
        (412, problem(make_bearer(5), mark="garbage"), "application/problem+json"),
        (409, problem(make_bearer(5)), "application/problem+json"),
        (500, problem(make_bearer(5)), "application/problem+json"),
    ],
)
def test_what_is_not_about_our_token_is_left_alone(
    term: Term, here: Upstream, leader: FakeBearer, status: int, body: bytes, kind: str
) -> None:
    here.refuse(status, body, kind)
    assert (term.send(here.url), leader.ends) == (status, [])


def test_a_busy_store_is_raised(term: Term, here: Upstream, leader: FakeBearer) -> None:
    busy = problem(leader, type="urn:zkelect:problem:store-busy", status=503, detail="waited 5 s")
    here.refuse(503, busy)
    with pytest.raises(StoreBusy, match="waited 5 s"):
        term.send(here.url)
    assert leader.ends == []


def test_a_store_that_could_not_be_asked_is_raised(
    term: Term, here: Upstream, leader: FakeBearer
) -> None:
    body = Problem.of(RequestFailed("/srv/marks.db", "begin", "disk I/O error")).encode()
    here.refuse(503, body, "application/problem+json; charset=utf-8")
    with pytest.raises(RequestFailed, match=r"http://127.*POST http://127.*not begun"):
        term.send(here.url)
    assert leader.ends == []


def test_h59_a_claim_below_a_mark_of_the_future_is_told_as_such(
    library: str, here: Upstream
) -> None:
    restored = make_bearer(5, zxid=5)
    here.refuse(412, problem(restored))
    with pytest.raises(EnsembleWentBack, match="adopt") as caught:
        Term(library, restored).send(here.url)
    assert (caught.value.holder, restored.ends) == ("host-b", [])


def test_after_a_claim_that_passed_the_higher_mark_is_a_successors(
    library: str, here: Upstream
) -> None:
    leader = make_bearer(5, zxid=5)  # its probes are old: it was frozen
    term = Term(library, leader)
    term.send(here.url)
    here.refuse(412, problem(leader))
    with pytest.raises(Fenced):
        term.send(here.url)
    assert leader.ends == ["fenced"]


# --- H58: a proxy that drops the header --------------------------------------------------------


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def guarded(ledger: Ledger) -> Iterator[str]:
    mark = MemoryFence(domain="billing")
    with served(FencingMiddleware(ledger.wsgi, mark=mark)) as url:
        yield url


def test_h58_a_proxy_that_drops_the_header_lets_nothing_pass(
    term: Term, leader: FakeBearer, guarded: str, ledger: Ledger
) -> None:
    with dropping(guarded, HEADER) as proxy:
        assert httpx.post(proxy, trust_env=False).status_code == 428
        with pytest.raises(UnfitStore, match="Fencing-Token header did not arrive"):
            term.send(proxy)
    assert (ledger.entries, leader.ends) == ([], [])


def test_h58_the_same_proxy_without_that_fault_lets_it_pass(
    term: Term, leader: FakeBearer, guarded: str, ledger: Ledger
) -> None:
    with dropping(guarded) as proxy:
        assert term.send(proxy) == 200
    assert ledger.entries == [(leader.token, "x")]


# --- redirects ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [303, 307])
def test_a_redirect_of_the_same_origin_keeps_the_token(
    term: Term, here: Upstream, leader: FakeBearer, status: int
) -> None:
    here.redirect("/", status, "/there")
    assert term.send(f"{here.url}/") == 200
    assert here.tokens == [str(leader.token)] * 2


@pytest.mark.parametrize(("method", "status"), [("POST", 303), ("GET", 302), ("GET", 307)])
def test_another_origin_does_not_get_the_token(
    term: Term,
    here: Upstream,
    elsewhere: Upstream,
    leader: FakeBearer,
    method: str,
    status: int,
) -> None:
    here.redirect("/", status, f"{elsewhere.url}/result")
    assert term.send(f"{here.url}/", method) == 200
    assert here.tokens == [str(leader.token)]
    assert [(verb, token) for verb, _, token, _ in elsewhere.asked] == [("GET", None)]


@pytest.mark.parametrize("status", [307, 308])
def test_a_write_is_not_repeated_at_another_origin(
    term: Term, here: Upstream, elsewhere: Upstream, status: int
) -> None:
    here.redirect("/", status, f"{elsewhere.url}/")
    with pytest.raises(RequestFailed, match="another origin"):
        term.send(f"{here.url}/")
    assert elsewhere.asked == []


def test_after_a_detour_the_token_is_at_home_again(
    library: str, term: Term, here: Upstream, elsewhere: Upstream, leader: FakeBearer
) -> None:
    """With requests it is not: nothing of ours is called between the two."""
    here.redirect("/", 303, f"{elsewhere.url}/")
    elsewhere.redirect("/", 302, f"{here.url}/there")
    assert term.send(f"{here.url}/") == 200
    again = None if library == "requests" else str(leader.token)
    assert (elsewhere.tokens, here.tokens) == ([None], [str(leader.token), again])


def test_a_refusal_of_another_origin_is_not_ours(
    term: Term, here: Upstream, elsewhere: Upstream, leader: FakeBearer
) -> None:
    here.redirect("/", 303, f"{elsewhere.url}/")
    elsewhere.refuse(412, problem(leader))
    assert (term.send(f"{here.url}/"), leader.ends) == (412, [])


def test_a_lease_that_ends_on_the_way_stops_at_the_redirect(
    term: Term, here: Upstream, leader: FakeBearer
) -> None:
    here.redirect("/", 307, "/there")
    here.before = lambda: setattr(leader, "lease", 0.0)
    with pytest.raises(LeadershipLost):
        term.send(f"{here.url}/")
    assert len(here.asked) == 1


@pytest.mark.parametrize(
    ("url", "location", "shown"),
    [
        ("http://a/", "https://a/", True),
        ("http://a:8080/", "https://a/", False),
        ("http://a/", "https://a:8443/", False),
        ("https://a/", "http://a/", False),
        ("https://a/", "https://a:443/x", True),
        ("https://a/", "https://A/", True),
        ("https://a/", "https://a.evil/", False),
        ("https://a/", "https://a@evil/", False),
        ("https://a/", "//evil/", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(
    leader: FakeBearer, url: str, location: str, shown: bool
) -> None:
    """The way up to TLS on the same host is let be, as both libraries do for credentials."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        headers = {"Location": location}
        return httpx.Response(303, headers=headers) if len(seen) == 1 else httpx.Response(200)

    transport, hooks = httpx.MockTransport(answer), httpx_hooks(leader)
    with httpx.Client(transport=transport, event_hooks=hooks, follow_redirects=True) as client:
        client.post(url)
    assert [HEADER in request.headers for request in seen] == [True, shown]


# --- beside other authentication ---------------------------------------------------------------


@pytest.mark.parametrize("library", ["httpx", "asyncio"])
def test_the_slot_of_auth_stays_free(term: Term, here: Upstream) -> None:
    term.send(here.url)
    assert [authorization for *_, authorization in here.asked] == [BASIC]


def test_requests_authenticates_too(here: Upstream, leader: FakeBearer) -> None:
    auth = RequestsAuth(leader, HTTPBasicAuth("user", "password"))
    requests.post(here.url, auth=auth, timeout=WITHIN)
    assert here.asked == [("POST", "/", str(leader.token), BASIC)]


def test_requests_needs_an_object_that_authenticates(leader: FakeBearer) -> None:
    with pytest.raises(InvalidArgument, match="HTTPBasicAuth"):
        RequestsAuth(leader, ("user", "password"))  # type: ignore[arg-type]  # that is the point


def test_a_redirect_that_is_not_followed_is_left_alone(here: Upstream, leader: FakeBearer) -> None:
    here.redirect("/", 307, "http://elsewhere.invalid/")
    with httpx.Client(event_hooks=httpx_hooks(leader), trust_env=False) as client:
        assert client.post(here.url).status_code == 307


# --- cost --------------------------------------------------------------------------------------


def test_a_body_that_is_no_refusal_is_not_read(here: Upstream, leader: FakeBearer) -> None:
    with httpx.Client(event_hooks=httpx_hooks(leader), trust_env=False) as client:  # noqa: SIM117
        with client.stream("POST", here.url) as response:
            assert not response.is_stream_consumed
    auth = RequestsAuth(leader)
    with requests.post(here.url, auth=auth, stream=True, timeout=WITHIN) as answer:
        assert answer.raw.tell() == 0


ALONE = """
import sys
import zkelect.stores.http_client, zkelect.stores.http_wsgi, zkelect.stores.http_asgi
print({"httpx", "requests", "starlette", "kazoo"} & set(sys.modules))
"""


def test_no_library_of_http_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")
