"""The root of all errors, and how a value is shown in a message."""

from __future__ import annotations

__all__ = ["ZkelectError", "shortened"]


class ZkelectError(Exception):
    """The root: ``except ZkelectError`` catches all that this library raises on purpose."""


def shortened(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
