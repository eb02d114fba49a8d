"""The HTTP face: tells load balancers and probes whether this very process leads.

Import costs nothing until a name is used; ``application`` and ``serve`` need the extra ``server``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zkelect.server.listener import Listener, listen
    from zkelect.server.pages import Page, Source, application
    from zkelect.server.serving import serve, serve_pages

__all__ = ["Listener", "Page", "Source", "application", "listen", "serve", "serve_pages"]

_MODULES: Final = {
    "Listener": "listener",
    "Page": "pages",
    "Source": "pages",
    "application": "pages",
    "listen": "listener",
    "serve": "serving",
    "serve_pages": "serving",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("zkelect"):
            raise
        extra = "pip install 'zkelect[server]'"
        message = f"{__name__}.{name} needs {error.name}, which is not installed: {extra}"
        raise ModuleNotFoundError(message, name=error.name) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
