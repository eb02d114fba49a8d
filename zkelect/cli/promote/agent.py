"""Running an agent until a signal ends it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Final

import click

from zkelect.cli.failures import tell
from zkelect.recipes.agent import Agent
from zkelect.recipes.resource import Unfit

if TYPE_CHECKING:
    from zkelect.cli.connection import Target
    from zkelect.recipes.choice import Policy
    from zkelect.recipes.resource import Resource

__all__ = ["run_agent"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_agent(target: Target, path: str, resource: Resource, policy: Policy) -> None:
    """Look after the server until a signal comes; then a primary is demoted, in good order.

    :raises click.ClickException: the server cannot be looked after; the text says what to change.
    :raises click.exceptions.Exit: a signal, with the shell's status, 128 + its number.
    """
    stop = threading.Event()
    heard: list[int] = []

    def heed(number: int, _: object) -> None:
        heard.append(number)
        stop.set()

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, heed)
    try:
        with target.session() as session:
            tell(f"{path}: looking after {resource.member.name}")
            Agent(session, path, resource, policy=policy).run(stop)
    except Unfit as unfit:
        raise click.ClickException(str(unfit)) from unfit
    if heard:
        raise click.exceptions.Exit(128 + heard[0])
