"""The configuration file: where the servers are, who we are, and which stores there are.

TOML; everything may be left out::

    hosts = "zk1:2181,zk2:2181,zk3:2181/app"
    session_timeout = 10.0
    tick_time = 2.0
    acl = ["sasl:ops:cdrwa"]

    [digest]                    # or [sasl], with mechanism and service as well
    user = "ops"
    password = "..."

    [tls]
    ca = "/etc/ssl/zookeeper.pem"

    [stores]
    billing = "postgresql+psycopg://ops:...@db/billing"

A file that holds a secret must be its owner's alone. What is in it never gets into a message.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from zkelect.cli.exits import USAGE

__all__ = ["ConfigRefused", "read_config"]

_NUMBER: Final = (int, float)
_KEYS: Final[dict[str, Any]] = {
    "hosts": str,
    "session_timeout": _NUMBER,
    "tick_time": _NUMBER,
    "acl": list,
    "digest": {"user": str, "password": str},
    "sasl": {"mechanism": str, "user": str, "password": str, "service": str},
    "tls": {
        "ca": str,
        "certfile": str,
        "keyfile": str,
        "keyfile_password": str,
        "check_hostname": bool,
    },
    "stores": str,  # of any names
}
_SECRETS: Final = frozenset({"password", "keyfile_password"})
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_NAMES: Final = {str: "a text in quotes", list: "a list", bool: "true or false", dict: "a table"}


class ConfigRefused(click.ClickException):
    """The configuration file is not what it should be; nothing was done."""

    exit_code = USAGE

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")


def read_config(given: Path | None) -> Mapping[str, Any]:
    """Read the file given, or the first one that is there; empty when there is none.

    :param given: must be there, when it is not None.
    :raises ConfigRefused: it cannot be read, is no TOML, has a key we do not know, a value of
        the wrong kind, or secrets that others can read.
    """
    if given is not None:
        return _read(given)
    there = next(filter(_exists, _usual_places()), None)
    return {} if there is None else _read(there)


def _usual_places() -> Iterator[Path]:
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    with suppress(RuntimeError):  # a container's user often has no home
        yield Path(home).expanduser() / "zkelect" / "config.toml"
    yield Path("/etc/zkelect/config.toml")


def _exists(place: Path) -> bool:
    """Whether it is there for us: a service may have a home that it may not enter."""
    try:
        return place.exists()
    except PermissionError:
        return False


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            found = tomllib.load(file)
    except OSError as error:
        raise ConfigRefused(path, f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigRefused(path, f"is no TOML: {error}") from None
    except RecursionError:
        raise ConfigRefused(path, "is no TOML of ours: it is nested too deeply") from None
    _check(path, found, _KEYS, "")
    _check_complete(path, found)
    if _holds_secret(found):
        _check_private(path, status)
    return found


def _check(path: Path, found: Mapping[str, Any], keys: Mapping[str, Any], within: str) -> None:
    for key, value in found.items():
        if key not in keys:
            known = ", ".join(keys)
            raise ConfigRefused(path, f"there is no key {within}{key}; there are {known}")
        _check_value(path, value, keys[key], f"{within}{key}")


def _check_value(path: Path, value: Any, kind: Any, name: str) -> None:
    if name == "stores" and isinstance(value, dict):
        for store, url in value.items():
            _check_value(path, url, str, f"stores.{store}")
    elif isinstance(kind, dict) and isinstance(value, dict):
        _check(path, value, kind, f"{name}.")
    elif isinstance(kind, dict) or name == "stores":
        raise ConfigRefused(path, f"{name} must be a table: [{name}]")
    elif not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ConfigRefused(path, f"{name} must be {_NAMES.get(kind, 'a number')}")


def _check_complete(path: Path, found: Mapping[str, Any]) -> None:
    """An empty user or password is a typo, and would be told late: as a missing permission."""
    if "digest" in found and not all(found["digest"].get(key) for key in _KEYS["digest"]):
        raise ConfigRefused(path, "[digest] needs a user and a password")


def _holds_secret(found: Mapping[str, Any]) -> bool:
    tables = (table for table in found.values() if isinstance(table, dict))
    return "stores" in found or any(_SECRETS & table.keys() for table in tables)


def _check_private(path: Path, status: os.stat_result) -> None:
    if status.st_mode & _OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise ConfigRefused(
            path, f"holds credentials, and others may read it (mode {mode:04o}): chmod 600 {path}"
        )
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigRefused(
            path, f"holds credentials, and belongs to somebody else (uid {status.st_uid})"
        )
