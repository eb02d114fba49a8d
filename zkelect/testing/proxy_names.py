"""The names by which a fault proxy's rules know requests."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from zkelect.errors import InvalidArgument
from zkelect.session import wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["FAMILIES", "READS", "WRITES", "names_meant", "names_of"]

READS: Final = frozenset(
    {
        "exists", "getData", "getACL", "getChildren", "getChildren2", "sync", "multiRead",
        "getEphemerals", "getAllChildrenNumber", "whoAmI",
    }
)  # fmt: skip
WRITES: Final = frozenset(
    {
        "create", "create2", "createContainer", "createTTL", "delete", "deleteContainer",
        "setData", "setACL", "multi", "check", "reconfig", "createSession", "closeSession",
    }
)  # fmt: skip
"""What takes a quorum; a multi of checks alone does, too."""

FAMILIES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "create": frozenset({"create", "create2", "createContainer", "createTTL"}),
        "getChildren": frozenset({"getChildren", "getChildren2"}),
        "read": READS,
        "write": WRITES,
        "any": READS | WRITES,
    }
)
"""Names that stand for several requests; every other name stands for itself."""


def names_meant(name: str, also: Iterable[str] = ()) -> frozenset[str]:
    """Return the requests that a name stands for.

    :param also: what else may be named, such as ``event`` among the replies.
    :raises InvalidArgument: there is no such request.
    """
    known = {*wire.OPCODES.values(), *FAMILIES, *also}
    if name not in known:
        raise InvalidArgument("name", name, f"one of {', '.join(sorted(known))}")
    return FAMILIES.get(name, frozenset({name}))


def names_of(family: frozenset[str], name: str) -> frozenset[str]:
    """Return the requests that a name stands for, if all are of a kind.

    :raises InvalidArgument: one is not.
    """
    meant = names_meant(name, family)
    if not meant <= family:
        raise InvalidArgument("name", name, f"one of {', '.join(sorted(family))}")
    return meant
