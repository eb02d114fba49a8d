"""Election paths: one right spelling, so that two spellings never make two elections."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import is_normalized

from zkelect.core.record import RECORD_SUFFIX
from zkelect.errors import InvalidArgument

__all__ = ["NAME_LIMIT", "check_name", "normalize"]

NAME_LIMIT: Final = 8192
_FORM: Final = "an absolute znode path such as '/elections/billing'"
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def normalize(path: str) -> str:
    """Return the path without a trailing slash.

    :param path: absolute, below the chroot of the session.
    :raises InvalidArgument: not a path that can hold an election; the rules for names
        are ZooKeeper's (Programmer's Guide, "The ZooKeeper Data Model"), and that two paths
        must not look the same.
    """
    if not isinstance(path, str):
        raise InvalidArgument("path", path, f"text (str); give {_FORM}")
    for wrong, why in _REFUSALS:
        if wrong(path):
            raise InvalidArgument("path", path, f"{why}; give {_FORM}")
    return path.rstrip("/")


def check_name(name: str, argument: str = "name") -> bytes:
    """Return a name or an address as the bytes that are written to ZooKeeper.

    :param argument: what to call it in the error.
    :raises InvalidArgument: longer than 8 KiB of UTF-8, or not text that UTF-8 can hold.
    """
    if not isinstance(name, str):
        raise InvalidArgument(argument, name, "text (str)")
    try:
        data = name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument(argument, name, f"text that UTF-8 can hold ({error})") from error
    if len(data) > NAME_LIMIT:
        raise InvalidArgument(argument, name, f"at most {NAME_LIMIT} bytes, not {len(data)}")
    return data


def _parts(path: str) -> list[str]:
    return path.rstrip("/").split("/")[1:]


_REFUSALS: Final = (
    (lambda path: not path.startswith("/"), "a relative path"),
    (lambda path: not _parts(path), "the root cannot hold an election"),
    (lambda path: "" in _parts(path), "an empty part between slashes"),
    (lambda path: {".", ".."} & set(_parts(path)), "'.' and '..' are not resolved"),
    (_UNSAFE.search, "a character ZooKeeper does not allow"),
    (lambda path: not path.isprintable(), "an invisible character"),
    (
        lambda path: any(part != part.strip() for part in _parts(path)),
        "a space at an end of a part",
    ),
    (
        lambda path: not is_normalized("NFC", path),
        "a letter and its accent apart (it is not in Unicode's normal form C)",
    ),
    (lambda path: _parts(path)[0] == "zookeeper", "/zookeeper belongs to the servers"),
    (
        lambda path: any(part.endswith(RECORD_SUFFIX) for part in _parts(path)),
        f"a name ending in {RECORD_SUFFIX} is where the record of an election beside it lives",
    ),
)
