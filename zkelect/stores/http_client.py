"""The leader's side of HTTP: its token on every request, the service's refusal as an error.

Nothing here imports httpx or requests: each is spoken to by the hooks that it calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from zkelect.errors import Fenced, InvalidArgument, Refused, RequestFailed
from zkelect.stores.fence import Claim, Claimant, View, present, raise_mark
from zkelect.stores.http_header import HEADER
from zkelect.stores.http_problem import MEDIA_TYPE, STATUSES, Problem
from zkelect.stores.mark import Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    import httpx
    import requests

    Origin: TypeAlias = tuple[str, str | None, int | None]

__all__ = ["RequestsAuth", "async_httpx_hooks", "httpx_hooks"]

_HOME: Final = "zkelect.home"
_PORTS: Final = {"http": 80, "https": 443}
_READING: Final = {"GET", "HEAD", "OPTIONS"}
# Only these repeat the method and the body at the new place (RFC 9110, 15.4.8 and 15.4.9).
_REPEATING: Final = {307, 308}


# --- httpx --------------------------------------------------------------------------------


def httpx_hooks(claimant: Claimant) -> dict[str, list[Callable[[Any], None]]]:
    """Make the event hooks of an ``httpx.Client`` that belongs to one term.

    ::

        with httpx.Client(event_hooks=stores.httpx_hooks(leadership)) as client:
            client.post("https://billing.example/invoices", json=invoice)

    Before every request the lease is checked, locally: an expired one raises LeadershipLost
    and nothing is sent. What the service's :class:`FencingMiddleware` refuses is raised as the
    error that its store raised; Fenced ends the leadership. Any other answer is left alone.

    The token goes to the origin that the program named, and to no other: a redirect elsewhere
    is followed without it, and one that would repeat a write there raises RequestFailed.

    :param claimant: the leadership, or a token to be passed on.
    :returns: for ``event_hooks=``; its lists take hooks of your own, and ``auth=`` stays free.
        A client that outlives the term sends nothing more: make one for each term.
    :raises LeadershipLost: it is over already.
    :raises InvalidArgument: neither a leadership nor a token.
    """
    term = _Term(claimant)

    def received(response: httpx.Response) -> None:
        if HEADER not in response.request.headers:
            return
        if _may_be_problem(response.status_code, response.headers.get("Content-Type")):
            term.judge(response.request.method, str(response.url), response.read())
        else:
            term.note(response.status_code)

    return {"request": [term.send_httpx], "response": [received]}


def async_httpx_hooks(claimant: Claimant) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """Make the event hooks of an ``httpx.AsyncClient``; see :func:`httpx_hooks`."""
    term = _Term(claimant)

    async def sending(request: httpx.Request) -> None:
        term.send_httpx(request)

    async def received(response: httpx.Response) -> None:
        if HEADER not in response.request.headers:
            return
        if _may_be_problem(response.status_code, response.headers.get("Content-Type")):
            term.judge(response.request.method, str(response.url), await response.aread())
        else:
            term.note(response.status_code)

    return {"request": [sending], "response": [received]}


# --- requests -----------------------------------------------------------------------------


class RequestsAuth:
    """The ``auth=`` of a requests call or session that belongs to one term.

    ::

        auth = stores.RequestsAuth(leadership)
        requests.post("https://billing.example/invoices", json=invoice, auth=auth, timeout=5.0)

    Promises what :func:`httpx_hooks` does, with one difference: requests does not say whether
    it will follow a redirect, so one that would repeat a write at another origin raises
    RequestFailed also where it would not have been followed.

    :param claimant: the leadership, or a token to be passed on.
    :param auth: who else authenticates the request, as ``HTTPBasicAuth("user", "password")``;
        the session's own is asked only where this slot is empty.
    :raises LeadershipLost: it is over already.
    :raises InvalidArgument: neither a leadership nor a token, or ``auth`` cannot be called.
    """

    def __init__(self, claimant: Claimant, auth: Callable[[Any], Any] | None = None) -> None:
        if auth is not None and not callable(auth):
            expected = "an authentication object, as HTTPBasicAuth(user, password)"
            raise InvalidArgument("auth", auth, expected)
        self._term, self._auth = _Term(claimant), auth

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Put the token on a request; requests calls this."""
        if self._auth is not None:
            request = self._auth(request)
        request.headers[HEADER] = self._term.present()
        request.register_hook("response", self._received)
        return request

    def _received(self, response: requests.Response, **_: object) -> None:
        request = response.request
        if HEADER not in request.headers:
            return
        if response.is_redirect:
            self._redirect(response, str(request.method))
        elif _may_be_problem(response.status_code, response.headers.get("Content-Type")):
            self._term.judge(str(request.method), response.url, response.content)
        else:
            self._term.note(response.status_code)

    def _redirect(self, response: requests.Response, method: str) -> None:
        """Requests copies the headers of this request to the next one, after this hook."""
        self._term.present()
        target = urljoin(response.url, response.headers["Location"])
        if _is_at_home(_origin(response.url), target):
            return
        if response.status_code in _REPEATING:
            _refuse_elsewhere(method, target)
        del response.request.headers[HEADER]


# --- one term -----------------------------------------------------------------------------


class _Term:
    """The requests of one claimant, whatever library sends them."""

    def __init__(self, claimant: Claimant) -> None:
        self._claimant, self._token = claimant, present(claimant)
        self._claimed = False

    def present(self) -> str:
        """Return the header's value, if the lease still lets it be shown."""
        return str(present(self._claimant))

    def send_httpx(self, request: httpx.Request) -> None:
        """Put the token on a request, or take it off one that a redirect sent elsewhere.

        httpx hands the extensions of a request on to those that follow from its redirects.
        """
        token, url = self.present(), str(request.url)
        home = request.extensions.setdefault(_HOME, _origin(url))
        if _is_at_home(home, url):
            request.headers[HEADER] = token
        else:
            _refuse_elsewhere(request.method, url)
            request.headers.pop(HEADER, None)

    def note(self, status: int) -> None:
        """Remember that a service has let this token pass."""
        self._claimed |= status < 400

    def judge(self, method: str, url: str, body: bytes) -> None:
        """Raise what a service's problem tells; return if it is not about our token."""
        scheme, host, port = _origin(url)
        problem = Problem.parse(body)
        if problem is None:
            return
        service = f"{scheme}://{host}:{port}"
        error = problem.error(service=service, request=f"{method} {url}", token=self._token)
        if isinstance(error, Refused):
            error = self._verdict(error)
        if isinstance(error, Fenced) and not isinstance(self._claimant, Token):
            self._claimant.end("fenced")
        if error is not None:
            raise error

    def _verdict(self, refusal: Refused) -> Refused:
        """Judge a claim again: the service has the mark, but only we know the ensemble's zxid."""
        claimant, mark = self._claimant, refusal.mark
        if not isinstance(refusal, Fenced) or isinstance(claimant, Token):
            return refusal
        if mark is None or self._claimed:
            return refusal
        seen = Mark(token=mark, holder=refusal.holder)
        view = View(store=refusal.store, domain=refusal.domain, mark=seen)
        try:
            raise_mark(view, Claim(token=self._token, zxid=claimant.zxid))
        except Refused as verdict:
            return verdict
        return refusal


def _may_be_problem(status: int, content_type: str | None) -> bool:
    return status in STATUSES and (content_type or "").partition(";")[0].strip() == MEDIA_TYPE


def _origin(url: str) -> Origin:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _is_at_home(home: Origin, url: str) -> bool:
    """Whether this is the origin that the program named, or the same host's way up to TLS."""
    here = _origin(url)
    return here == home or (home[0] == "http" and home[2] == 80 and here == ("https", home[1], 443))


def _refuse_elsewhere(method: str, url: str) -> None:
    if method not in _READING:
        cause = "a redirect to another origin, to which the token is not sent; name it yourself"
        raise RequestFailed(url, method, cause)
