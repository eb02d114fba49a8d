"""Paths that are the same for every process: the dead-man's, and servers, work in the root."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["absolute"]


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return the path as it is from here; links in it stay."""
    return Path(path).absolute()
