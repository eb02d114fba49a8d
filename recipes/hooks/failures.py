"""What goes wrong with a hook."""

from __future__ import annotations

from zkelect import ZkelectError

__all__ = ["HookFailed", "HookMissing"]


class HookFailed(ZkelectError):
    """A hook did not do what it was asked for.

    :ivar verb: what that was. :ivar why: how it went, with what the hook said on stderr.
    """

    def __init__(self, verb: str, why: str) -> None:
        self.verb = verb
        self.why = why
        super().__init__(f"the hook {verb} {why}")


class HookMissing(HookFailed):
    """There is no hook for that verb."""
