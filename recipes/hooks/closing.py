"""The dead-man's strike: at the deadline its process calls the hook ``close``.

Before that it kills the hook that is under way to make a primary: the lease for it ends, and an
agent that hangs, or is gone, does not kill it.

Whatever goes wrong it goes on: nobody else closes the server then.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.recipes.clock import now
from zkelect.recipes.hooks import tree
from zkelect.recipes.hooks.answer import Said
from zkelect.recipes.hooks.executables import Hooks
from zkelect.recipes.hooks.order import Order, Verb
from zkelect.recipes.member import Member
from zkelect.recipes.notes import decode, encode
from zkelect.recipes.watching import tell

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["describe", "strike", "target_of"]

_HOOKS: Final = "ZKELECT_WATCHED_HOOKS"
_MEMBER: Final = "ZKELECT_WATCHED_MEMBER"
_INSIST: Final = 2.0
"""Seconds in which a hook that failed is called again; a later primary is not to be closed."""
_PAUSE: Final = 0.05


def describe(hooks: Hooks, member: Member) -> dict[str, str]:
    """Return the environment that tells the process whose hooks to call."""
    return {_HOOKS: str(hooks.path), _MEMBER: encode(member).decode()}


def target_of(token: str, process: str) -> str:
    """Return the one word that the process is told with each deadline.

    :param token: of the leadership that ends then; empty: none was claimed.
    :param process: the hook under way, as :func:`.tree.identify` names it; empty: none is.
    """
    return f"{token}|{process}"


def strike(target: str) -> None:
    """Have the server closed."""
    token, _, process = target.partition("|")
    if process:
        _try(lambda: _end_run(process), "the hook under way may go on")
    hooks = Hooks(Path(os.environ[_HOOKS]))
    order = Order(verb=Verb.CLOSE, member=decode(Member, os.environ[_MEMBER].encode()))
    otherwise = f"{order.member.name} is not closed"
    deadline = now() + _INSIST
    while not _try(lambda: hooks.ask(Said, order, deadline, token), otherwise):
        if now() >= deadline:
            return
        time.sleep(_PAUSE)


def _end_run(process: str) -> None:
    if spared := tree.kill_run(process):
        tell(f"zkelect: a hook goes on beside close: {tree.complain(spared)}")


def _try(act: Callable[[], object], otherwise: str) -> bool:
    """Do it, and return whether that went well; else, whatever it was, it is told."""
    try:
        act()
    except Exception as error:  # noqa: BLE001  nobody else closes the server then
        tell(f"zkelect: {otherwise}: {error}")
        return False
    return True
