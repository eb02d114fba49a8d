"""Directories of servers, which Ctrl-C shall not leave behind."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

__all__ = ["unmade"]


def unmade(prefix: str) -> Path:
    """Return where a new directory may be made; nobody else has one there.

    ``tempfile.mkdtemp`` makes it, too: when Ctrl-C comes before its caller has seen to its
    removal, it stays for ever. First choose, then arrange the removal, then make it.
    """
    return Path(tempfile.gettempdir(), f"{prefix}{uuid.uuid4().hex[:12]}")
