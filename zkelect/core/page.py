"""Pages: what is written beside an election is JSON, so that a person can read it with any client.

Numbers that could outgrow a float travel as text.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["dump", "load"]


def dump(value: Any) -> bytes:
    """Return the page's bytes, all of them ASCII."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def load(data: bytes) -> Any:
    """Return what the page says; None when it is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
