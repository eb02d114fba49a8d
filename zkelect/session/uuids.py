"""Names for candidates: drawn here, because the core knows no chance."""

from __future__ import annotations

import uuid

from zkelect.core.znodes import ranked

__all__ = ["new_uuid"]


def new_uuid() -> str:
    """Return a fresh candidate uuid: random, marked as ours by its version (RFC 9562).

    Its priority is 0; another one is written into it where it is used.
    """
    drawn = uuid.uuid4().hex
    return ranked(f"{drawn[:12]}8{drawn[13:]}", 0)
