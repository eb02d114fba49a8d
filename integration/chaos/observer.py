"""The observer: asks the servers who stands and whose term is written, with a client of
its own and none of the library's, so that its word is independent.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from chaos.history import Writer
from chaos.pulse import PULSE

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["observe"]

_LOOK_EVERY: Final = 0.05
_TIMEOUT: Final = 2.0


def observe(*, hosts: str, path: str, directory: str) -> None:
    """Write each change of the leader, and the roll whenever standard input names a moment."""
    history = Writer(Path(directory), "observer")
    kazoo = KazooClient(hosts, timeout=10.0)
    kazoo.start_async()
    left = threading.Event()
    looking = threading.Thread(target=_look, args=(kazoo, path, history, left))
    looking.start()
    for line in sys.stdin:
        _write_roll(kazoo, path, history, line.strip())
    left.set()
    looking.join()
    kazoo.stop()
    kazoo.close()


def _look(kazoo: KazooClient, path: str, history: Writer, left: threading.Event) -> None:
    """Write who leads, whenever that is news; a server that does not answer tells nothing."""
    told: object = ""
    while not left.wait(_LOOK_EVERY):
        try:
            token = _leader(kazoo, path)
        except (KazooException, KazooTimeoutError):
            continue
        if token != told:
            told = token
            history.write("seen", token=token)


def _leader(kazoo: KazooClient, path: str) -> str | None:
    try:
        term: dict[str, Any] = json.loads(_get(kazoo, f"{path}.zkelect/term")[0] or b"{}")
        _get(kazoo, f"{path}/{term.get('node', '')}")
    except NoNodeError:
        return None
    return term.get("token") if term.get("ended") is None else None


def _write_roll(kazoo: KazooClient, path: str, history: Writer, moment: str) -> None:
    """Write who stands, as a quorum has it; nothing when no server answers.

    A write comes first, since a sync is answered without a quorum (ZOOKEEPER-2136): what is
    read behind it on the same session is no older.
    """
    while True:
        try:
            kazoo.set_async(PULSE, b"").get(timeout=_TIMEOUT)
            roll = list(_roll(kazoo, path))
        except (KazooException, KazooTimeoutError):
            continue
        history.write("called", moment=moment, roll=roll)
        print(len(roll), flush=True)
        return


def _roll(kazoo: KazooClient, path: str) -> Iterator[tuple[str, str, str]]:
    for node in sorted(kazoo.get_children_async(path).get(timeout=_TIMEOUT)):
        try:
            data, stat = _get(kazoo, f"{path}/{node}")
        except NoNodeError:
            continue  # it left while we were reading
        yield node, f"{stat.ephemeralOwner:#x}", data.decode("utf-8", "replace")


def _get(kazoo: KazooClient, path: str) -> Any:
    return kazoo.get_async(path.rstrip("/")).get(timeout=_TIMEOUT)
