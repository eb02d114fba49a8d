"""Names for candidates: drawn here, because the core knows no chance."""

from __future__ import annotations

import uuid

__all__ = ["new_uuid"]


def new_uuid() -> str:
    """Return a fresh candidate uuid: random, marked as ours by its version (RFC 9562)."""
    drawn = uuid.uuid4().hex
    return f"{drawn[:12]}8{drawn[13:]}"
