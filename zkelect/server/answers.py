"""Yes or no over HTTP, with the reasons as JSON: what all pages have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["METHODS", "NOT_FOUND", "application_of", "tell"]

METHODS: Final = ["GET", "HEAD", "OPTIONS"]
NOT_FOUND: Final = 404
_OK: Final = 200
_UNAVAILABLE: Final = 503
_NO_STORE: Final = {"Cache-Control": "no-store"}


def application_of(routes: list[Route]) -> Starlette:
    """Make an ASGI application that refuses in JSON, too."""
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refuse})
    app.router.redirect_slashes = False  # a probe follows no redirect
    return app


def tell(request: Request, holds: bool, told: Mapping[str, object]) -> Response:
    """Answer 200 if it holds, else 503; OPTIONS, HAProxy's own question, like all others."""
    allow = {"Allow": ", ".join(METHODS)} if request.method == "OPTIONS" else {}
    return _answer(_OK if holds else _UNAVAILABLE, told, allow)


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for it alone
    return _answer(error.status_code, {"error": error.detail}, error.headers or {})


def _answer(status: int, told: Mapping[str, object], headers: Any) -> Response:
    """JSON in ASCII: whatever is in a name, it does a terminal no harm."""
    text = json.dumps(told) + "\n"
    fields = {**headers, **_NO_STORE}
    return Response(text, status, headers=fields, media_type="application/json")
