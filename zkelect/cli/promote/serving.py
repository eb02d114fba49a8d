"""``--serve ADDR`` of the agents: where load balancers ask what their server is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import click

from zkelect.cli.serving import listen
from zkelect.recipes.standing import pages_of

if TYPE_CHECKING:
    from zkelect.recipes.agent import Agent
    from zkelect.server import Listener

__all__ = ["serve", "serving", "taken"]

serving: Final = click.option(
    "--serve",
    metavar="ADDR",
    help="Answer /primary, /replica and /health over HTTP at ADDR: :8008, 127.0.0.1:8008, "
    "[::1]:8008.",
)
"""The option, as an argument ``serve``."""


def taken(address: str | None, opened: ExitStack) -> Listener | None:
    """Take the port before anything is joined, so that one that cannot be had is told.

    :raises InvalidArgument: it cannot. :raises click.UsageError: the extra is not installed.
    """
    if address is None:
        return None
    listener = listen(address)
    opened.callback(listener.close)
    return listener


def serve(listener: Listener | None, agent: Agent, opened: ExitStack) -> None:
    """Answer for this agent from now on, until all that is opened is closed."""
    if listener is not None:
        from zkelect.server import serve_pages  # noqa: PLC0415  needs the extra "server"

        opened.enter_context(serve_pages(listener, pages_of(agent)))
