"""A member's name as PostgreSQL has it: of an application, and of a replication slot."""

from __future__ import annotations

from typing import Final

from zkelect import InvalidArgument

__all__ = ["check_name", "slot_of"]

_LONGEST: Final = 63
"""Bytes that PostgreSQL keeps of a name (NAMEDATALEN)."""
_EVERYBODY: Final = "*"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


def check_name(name: str, *, slots: bool) -> None:
    """Look whether the primary will know the member by this name, and by no other.

    It takes other characters than printable ASCII for question marks, cuts what is too long
    (``application_name``), and waits for anybody at all when told to wait for ``*``.

    :param slots: whether there will be a slot of that name.
    :raises InvalidArgument: it will not.
    """
    printable = name.isascii() and name.isprintable()
    if not (printable and 0 < len(name) <= _LONGEST) or name == _EVERYBODY:
        expected = f"1 to {_LONGEST} printable ASCII characters, and not {_EVERYBODY!r}"
        raise InvalidArgument("name", name, expected)
    if slots and len(slot_of(name)) > _LONGEST:
        expected = f"a shorter one: its replication slot would be {slot_of(name)!r}"
        raise InvalidArgument("name", name, expected)


def slot_of(name: str) -> str:
    """Return the name of a member's slot: of lower case letters, digits and underscores.

    Each other character is written by its number, so that no two members have the same.
    """
    return "zkelect_" + "".join(each if each in _PLAIN else f"_{ord(each):02x}" for each in name)
