"""What must be so before an agent looks after a server; each refusal says what to change."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from redis.exceptions import ResponseError

from zkelect.recipes.redis.asking import NoAnswer, connect
from zkelect.recipes.redis.process import ensure_running, identify
from zkelect.recipes.resource import NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from redis import Redis

    from zkelect.recipes.redis.place import Place

__all__ = ["check", "check_commands", "check_encryption", "starts_as_replica"]

_MAJOR: Final = "7"
_LINE: Final = "replicaof 127.0.0.1 0"
_NEEDED: Final = (
    "REPLICAOF NO ONE",
    "CLIENT PAUSE 0 WRITE",
    "CLIENT UNPAUSE",
    "CONFIG SET min-replicas-to-write 0",
    "PSYNC ? -1",
    "MULTI",
    "EXEC",
    "EVAL return 1 zkelect",
    "EVALSHA 0 1 zkelect",
    "GET zkelect",
    "SET zkelect 0",
)
"""What is asked for later, when it is too late to find that it is refused."""
_FAMILIES: Final = ("CLIENT", "CONFIG")


def check(place: Place, deadline: float) -> None:
    """Look at the server; one that is down is started.

    :raises Unfit: it cannot be looked after; the text says what to change.
    """
    if not place.record.parent.is_dir():
        raise Unfit(f"there is no folder {place.record.parent} to keep {place.record.name} in")
    try:
        ensure_running(place, deadline)
        with connect(place.url, deadline) as client:
            _check_server(client)
            settings = {str(key): str(value) for key, value in client.config_get("*").items()}
            _check_settings(settings)
            check_encryption(place.url, settings)
            check_commands(client)
    except NotNow as error:
        raise Unfit(_told(error)) from error


def starts_as_replica(config: Path) -> bool:
    """Tell whether a file that the configuration includes makes the server start as a replica.

    In the configuration itself the line would not last: CONFIG REWRITE, by whomever, takes it
    away while the server is the primary. Files that are included it leaves alone.
    """
    lines = _lines(config)
    return any(
        words[:1] == ["replicaof"]
        for name, *rest in lines
        if name == "include" and rest
        for file in _included(config, rest[0])
        for words in _lines(file)
    )


def _told(error: NotNow) -> str:
    if isinstance(error, NoAnswer) and isinstance(error.error, ResponseError):
        return (
            f"the server refuses: {error}; give this user the right to every command, +@all ~*,"
            " and take away rename-command"
        )
    return f"the server is not there: {error}"


def _check_server(client: Redis) -> None:
    info = client.info()
    if str(info["redis_version"]).partition(".")[0] != _MAJOR:
        raise Unfit(f"the server is Redis {info['redis_version']}; this recipe knows {_MAJOR}")
    if info["redis_mode"] != "standalone":
        raise Unfit(f"the server runs as {info['redis_mode']}, and that looks after itself")
    try:
        identify(int(info["process_id"]))
    except ProcessLookupError:
        raise Unfit(
            f"process {info['process_id']} of the server is not to be seen from here: run the agent"
            " on the server's host, and in the same container or pod with a shared process space"
        ) from None
    _check_config(str(info["config_file"]))


def _check_config(config: str) -> None:
    """Make sure that a restart, by whomever, is a replica."""
    if not config:
        raise Unfit("the server was started without a configuration file: give it one")
    try:
        fit = starts_as_replica(Path(config))
    except OSError as error:
        raise Unfit(f"the configuration cannot be read here: {error}") from error
    if not fit:
        raise Unfit(
            f"when it is started anew this server would take writes: include a file in {config}"
            f" that has the line '{_LINE}'"
        )


def _check_settings(settings: Mapping[str, str]) -> None:
    if settings["replica-read-only"] != "yes":
        raise Unfit("replica-read-only is 'no': set it to 'yes', or replicas take writes")
    if settings["requirepass"] and not settings["masterauth"]:
        raise Unfit("requirepass is set and masterauth is not: set it, or it cannot follow others")
    if settings["maxmemory"] != "0" and settings["maxmemory-policy"].startswith("allkeys"):
        raise Unfit(
            f"maxmemory-policy {settings['maxmemory-policy']} may evict the fence's mark: set a"
            " policy volatile-… or noeviction"
        )


def check_encryption(url: str, settings: Mapping[str, str]) -> None:
    """Look whether the server follows others at the addresses by which agents reach them.

    :raises Unfit: it asks for encryption where there is none, or the other way round.
    """
    scheme = url.partition(":")[0]
    found, wanted = settings.get("tls-replication", "no"), "yes" if scheme == "rediss" else "no"
    if found != wanted:
        raise Unfit(
            f"tls-replication is {found!r}: set it to {wanted!r}, or it cannot follow the others,"
            f" who are reached by {scheme}://"
        )


def check_commands(client: Redis) -> None:
    """Look whether the server knows all that it will be told, and takes it from this user.

    A user who may not ask what it may do is believed.

    :raises Unfit: it does not.
    """
    names = [_name(line) for line in _NEEDED]
    known = client.execute_command("COMMAND INFO", *names)
    missing = [name for name, found in zip(names, known, strict=True) if found is None]
    if missing:
        told = ", ".join(missing).upper().replace("|", " ")
        raise Unfit(f"the server does not know {told}: take away rename-command")
    with suppress(ResponseError):
        _check_rights(client)


def _check_rights(client: Redis) -> None:
    user = str(client.acl_whoami())
    for line in _NEEDED:
        answer = str(client.acl_dryrun(user, *line.split()))
        if answer != "OK":
            raise Unfit(
                f"user {user!r} may not run '{line}': {answer}; give it the right to every"
                " command, +@all ~*"
            )


def _name(line: str) -> str:
    """Return a command as Redis names it, with the second word if it belongs to the name."""
    first, *rest = line.split()
    return (f"{first}|{rest[0]}" if first in _FAMILIES else first).lower()


def _included(config: Path, pattern: str) -> Iterator[Path]:
    """Yield the files that an include line names.

    A relative one is meant from where the server was started, which it does not tell; so it is
    looked for beside the configuration.
    """
    path = Path(pattern)
    folder = Path(path.anchor) if path.is_absolute() else config.parent
    yield from folder.glob(str(path.relative_to(path.anchor)))


def _lines(file: Path) -> list[list[str]]:
    found = []
    for line in file.read_text("utf-8", "replace").splitlines():
        words = shlex.split(line) if line.strip() and not line.lstrip().startswith("#") else []
        if words:
            found.append([words[0].lower(), *words[1:]])
    return found
