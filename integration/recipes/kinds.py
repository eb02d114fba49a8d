"""The kinds of servers that there are recipes for: each passes the whole contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recipes.mariadb_node import MariaDBNode
from recipes.postgres_node import PostgresNode
from recipes.redis_node import RedisNode

if TYPE_CHECKING:
    from recipes.node import Node

__all__ = ["KINDS"]

KINDS: Final[dict[str, type[Node]]] = {
    "postgres": PostgresNode,
    "redis": RedisNode,
    "mariadb": MariaDBNode,
}
