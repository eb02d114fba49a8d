"""``--serve ADDR``: the port is taken before anything is joined, or nothing is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from zkelect.server import Listener

__all__ = ["listen"]


def listen(address: str) -> Listener:
    """Listen at the address that ``--serve`` names, for :func:`zkelect.server.serve`.

    :raises InvalidArgument: it has another form, is not ours, or is taken.
    :raises click.UsageError: the extra ``server`` is not installed.
    """
    try:
        from zkelect.server import listen, serve  # noqa: F401, PLC0415 - either may be missing
    except ModuleNotFoundError as missing:
        raise click.UsageError(f"--serve: {missing}") from missing
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # it warns of every odd request
    return listen(address)
