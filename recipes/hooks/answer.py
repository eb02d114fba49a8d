"""What a hook says: its exit status, then one JSON object on its output."""

from __future__ import annotations

import json
from typing import Final, TypeVar

import attrs

from zkelect.recipes.hooks.failures import HookFailed, HookMissing
from zkelect.recipes.hooks.order import Verb
from zkelect.recipes.member import Answer
from zkelect.recipes.notes import decode
from zkelect.recipes.position import Position
from zkelect.recipes.resource import NotNow

__all__ = ["NOT_NOW", "UNKNOWN_VERB", "Said", "check_status", "read"]

UNKNOWN_VERB: Final = 64
"""EX_USAGE of sysexits.h: the program does not know the verb."""
NOT_NOW: Final = 75
"""EX_TEMPFAIL of sysexits.h: it cannot be done at present, and is worth trying again."""
_SHOWN: Final = 500

_Kind = TypeVar("_Kind")


@attrs.frozen(kw_only=True)
class Said:
    """The answer to every verb but ``position``, whose answer is an ``Observed``.

    :ivar position: where the server stands then. :ivar answer: of ``reach`` and ``fence``.
    :ivar rebuild: of ``follow``: why the server cannot join this history any more.
    """

    position: Position | None = None
    answer: Answer | None = None
    rebuild: str = ""


def check_status(verb: Verb, status: int, complaint: bytes, *, alone: bool) -> None:
    """Return when the hook ended well.

    :param status: negative: the signal that ended it. :param complaint: its stderr.
    :param alone: it is for this verb alone, and so knows it, whatever it ends with.
    :raises NotNow: it says that it cannot be done at present.
    :raises HookMissing: it does not know the verb. :raises HookFailed: anything else.
    """
    if status == 0:
        return
    told = _shown(complaint)
    if status == NOT_NOW:
        raise NotNow(f"the hook {verb} says: not now{told}")
    if status == UNKNOWN_VERB and not alone:
        raise HookMissing(verb, f"is unknown to the program: exit status {status}{told}")
    how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
    raise HookFailed(verb, f"{how}{told}")


def read(kind: type[_Kind], verb: Verb, output: bytes) -> _Kind:
    """Return the answer that the hook printed.

    :raises HookFailed: that is no JSON object, or one with other values than it may have.
    """
    try:
        found = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise HookFailed(verb, f"printed no JSON{_shown(output)}") from error
    if not isinstance(found, dict):
        raise HookFailed(verb, f"printed JSON that is no object{_shown(output)}")
    try:
        return decode(kind, output)
    except ValueError as error:
        raise HookFailed(verb, f"printed an answer that cannot be read: {error}") from error


def _shown(output: bytes) -> str:
    """Return the end of it, in one line: there stands what went wrong."""
    text = " ".join(output.decode("utf-8", "replace").split())
    return f": {text[-_SHOWN:]}" if text else ""
