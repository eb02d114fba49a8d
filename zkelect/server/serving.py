"""The pages on a thread of their own, beside whatever the program does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from zkelect.group import ElectionGroup
from zkelect.server.listener import Listener, listen
from zkelect.server.pages import Page, Source, application, application_for

__all__ = ["serve", "serve_pages"]

_NAME: Final = "zkelect-server"
_GRACE: Final = 1
"""Seconds for answers that are on their way when the block is left."""


@contextmanager
def serve(address: str | Listener, *elections: Source | ElectionGroup) -> Iterator[Listener]:
    """Answer ``/leader`` and ``/health`` over HTTP while the block lasts.

    ::

        with zkelect.server.serve(":8008", election):
            election.run_forever(lead)

    A daemon thread of its own answers; no signal handler is touched. Keep the block around all
    that stands and leads: a probe that gets no answer takes this process for dead.

    :param address: as for :func:`listen`, or what it returned, which is closed at the end.
    :param elections: as for :func:`application`.
    :returns: where it listens.
    :raises InvalidArgument: as :func:`listen` and :func:`application` do; nothing is served.
    """
    with _serving(address, application(*elections)) as listener:
        yield listener


@contextmanager
def serve_pages(address: str | Listener, pages: Mapping[str, Page]) -> Iterator[Listener]:
    """Answer pages of one's own while the block lasts, as :func:`serve` does.

    ::

        with zkelect.server.serve_pages(":8008", {"/primary": lambda: (serves(), {})}):
            ...

    :param pages: by path; what each calls must answer at once, for all share one thread.
    :raises InvalidArgument: as :func:`listen` does; nothing is served.
    """
    with _serving(address, application_for(pages)) as listener:
        yield listener


@contextmanager
def _serving(address: str | Listener, app: Any) -> Iterator[Listener]:
    listener = address if isinstance(address, Listener) else listen(address)
    server = uvicorn.Server(_config(app))
    thread = threading.Thread(target=_run, args=(server, listener), name=_NAME, daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _run(server: uvicorn.Server, listener: Listener) -> None:
    asyncio.run(_answer(server, list(listener.sockets)))


async def _answer(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    await server.serve(sockets)
    for deaf in tuple(server.server_state.connections):  # who has not read for the grace
        deaf.transport.abort()
    await asyncio.sleep(0)  # it is closed by the loop


class _Quiet(H11Protocol):
    """Without a line in the log for every poll.

    uvicorn's own ``access_log=False`` would silence every uvicorn server of the process: it
    turns the logger off.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False


def _config(app: Any) -> uvicorn.Config:
    """Leave alone what is the program's: its loggers above all."""
    return uvicorn.Config(
        app,
        http=_Quiet,
        ws="none",
        lifespan="off",
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )
