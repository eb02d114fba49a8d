"""Text from elsewhere, made harmless for a terminal.

Names are up to 8 KiB of anything. Shown as they are, control characters would move the
cursor, and bidirectional ones would change what a line seems to say.
"""

from __future__ import annotations

from typing import Final

__all__ = ["printable"]

_JOINER: Final = "\u200d"  # within emoji of several code points


def printable(text: str) -> str:
    """Return the text with whatever is not a visible character as its escape."""
    return "".join(letter if _is_shown(letter) else _escape(letter) for letter in text)


def _is_shown(letter: str) -> bool:
    return letter.isprintable() or letter == _JOINER


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
