"""Which elections there are below a znode: found by their records, and by their candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from zkelect.core.paths import normalize
from zkelect.core.record import RECORD_SUFFIX
from zkelect.core.znodes import KAZOO
from zkelect.errors import InvalidArgument, PermissionDenied
from zkelect.session.gateway import Failure, Fault
from zkelect.session.overview import ask_all
from zkelect.session.pages import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zkelect.session.overview import Question
    from zkelect.session.session import Session

__all__ = ["Catalog", "check_root", "find_elections"]

MOST: Final = 10_000
"""Znodes that are looked at: whoever asks about a whole forest of them did not mean to."""

_SERVERS: Final = "/zookeeper"


@attrs.frozen(kw_only=True)
class Catalog:
    """What was found.

    :ivar paths: of the elections, sorted. :ivar hidden: znodes whose children we may not read.
    :ivar asked: how many znodes were looked at, one request each.
    """

    paths: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    asked: int = 0


def check_root(root: str) -> str:
    """Return a root in its one right spelling.

    :raises InvalidArgument: it is neither ``/`` nor the path of an election.
    """
    return root if root == "/" else normalize(root)


def find_elections(session: Session, root: str, depth: int, timeout: float) -> Catalog:
    """Look at a znode and what is below it, level by level.

    An election is a path beside which there is a record of ours, or below which somebody
    stands, of whatever library; their locks look the same.

    :param root: in its one right spelling; itself perhaps an election.
    :param depth: levels of znodes whose children are read, the root's included; from 1.
    :raises InvalidArgument: there is no such znode, or too many are below it.
    :raises PermissionDenied: its children may not be read.
    """
    level = [root]
    found: set[str] = set()
    failed: dict[str, Fault] = {}
    asked = 0
    for _ in range(depth):
        asked += len(level)
        if asked > MOST:
            expected = f"a root with fewer than {MOST} znodes below it, or a smaller --depth"
            raise InvalidArgument("root", root, expected)
        level = [*_descend(session, level, found, failed, timeout)]
    if failed.get(root) is Fault.NO_NODE:
        expected = "there is no such znode; look at the path, and at the chroot of the session"
        raise InvalidArgument("root", root, expected)
    if failed.get(root) is Fault.DENIED:
        raise PermissionDenied(root, "read", session.schemes)
    hidden = tuple(path for path, fault in failed.items() if fault is Fault.DENIED)
    return Catalog(paths=tuple(sorted(found)), hidden=hidden, asked=asked)


def _descend(
    session: Session,
    level: list[str],
    found: set[str],
    failed: dict[str, Fault],
    timeout: float,
) -> Iterator[str]:
    """Look at each znode of a level, note the elections, and give what is worth a look below."""
    answers = ask_all(session, [*map(_children, level)], timeout)
    for path, answer in zip(level, answers, strict=True):
        if isinstance(answer, Failure) and answer.fault in (Fault.DENIED, Fault.NO_NODE):
            failed[path] = answer.fault
        else:
            yield from _note(path, value_of(session, path, "read", answer), found)


def _children(path: str) -> Question:
    return lambda gateway, done: gateway.children(path, done)


def _note(path: str, children: Iterable[str], found: set[str]) -> Iterator[str]:
    roll = KAZOO.read(children)
    if roll.entries:
        found.add(path)
    for child in roll.strangers:
        below = f"{path.rstrip('/')}/{child}"
        if child.endswith(RECORD_SUFFIX):
            found.add(below.removesuffix(RECORD_SUFFIX))
        elif below != _SERVERS:
            yield below
