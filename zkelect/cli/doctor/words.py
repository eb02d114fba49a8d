"""Four letter words: what a server tells of itself, where it is allowed to.

ZooKeeper Administrator's Guide, "The Four Letter Words": one word for each connection, and
``4lw.commands.whitelist`` says which are answered; by default only ``srvr``.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any, Final

from zkelect.cli.doctor.facts import WORDS
from zkelect.cli.doctor.handshake import dial

__all__ = ["ask_word", "read_words"]

_REFUSED: Final = ("is not executed because it is not in the whitelist", "not currently serving")
_VERSION: Final = re.compile(r"^Zookeeper version: (\d+(?:\.\d+)+)", re.MULTILINE)
_MODE: Final = re.compile(r"^Mode: (\S+)", re.MULTILINE)
_TICK: Final = re.compile(r"^tickTime=(\d+)", re.MULTILINE)
_SYNCED: Final = re.compile(r"^zk_synced_followers\t(\d+)", re.MULTILINE)
_SESSION: Final = re.compile(r"\bsid=0x([0-9a-f]+)")


def ask_word(
    address: tuple[str, int], word: str, tls: ssl.SSLContext | None, timeout: float
) -> str | None:
    """Return a server's answer, None when it does not give one.

    :param timeout: seconds for the connection, and for each piece of the answer.
    """
    try:
        with dial(address, tls, timeout) as connection:
            connection.sendall(word.encode("ascii"))
            with connection.makefile("rb") as answer:
                text = answer.read().decode("utf-8", "replace")
    except OSError:
        return None
    return None if not text or any(refusal in text for refusal in _REFUSED) else text


def read_words(answers: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what the answers tell, as fields of :class:`~zkelect.cli.doctor.facts.Server`.

    :param answers: by word; None for one that was not answered.
    """
    told = {word: answers.get(word) or "" for word in WORDS}
    tick, synced = _find(_TICK, told["conf"]), _find(_SYNCED, told["mntr"])
    return {
        "version": _find(_VERSION, told["srvr"]),
        "mode": _find(_MODE, told["srvr"]),
        "tick": None if tick is None else int(tick) / 1000,
        "synced": None if synced is None else int(synced),
        "sessions": _sessions(answers.get("cons")),
        "silent": tuple(word for word, answer in answers.items() if answer is None),
    }


def _find(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


def _sessions(text: str | None) -> frozenset[int] | None:
    """Return who is connected, session ids signed as in a stat."""
    if text is None:
        return None
    unsigned = (int(number, 16) for number in _SESSION.findall(text))
    return frozenset(each - 2**64 if each >= 2**63 else each for each in unsigned)
