"""What the tests of the recipes share: a ZooKeeper, a path of each test's own, and a stage."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

pytest.register_assert_rewrite("recipes.stage")

from recipes.kinds import KINDS  # noqa: E402  the stage's asserts are rewritten first
from recipes.postgres_node import PostgresNode  # noqa: E402  as above
from recipes.redis_node import RedisNode  # noqa: E402  as above
from recipes.stage import Stage, staged  # noqa: E402  as above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recipes.node import Node

    from zkelect.testing import LocalEnsemble


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Node]:
    """Each kind of servers in turn: a test that asks for it is of the contract."""
    return KINDS[request.param]


@pytest.fixture
def stage(
    kind: type[Node], zookeeper: LocalEnsemble, path: str
) -> Iterator[Callable[..., Stage[Any]]]:
    """Set a stage with each kind of servers; options as for ``staged``."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(staged(kind, zookeeper, path, **options))


@pytest.fixture
def postgres_stage(
    zookeeper: LocalEnsemble, path: str
) -> Iterator[Callable[..., Stage[PostgresNode]]]:
    """Set a stage with PostgreSQL, for what is no other's; options as for ``staged``."""
    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(staged(PostgresNode, zookeeper, path, **given))


@pytest.fixture
def redis_stage(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Stage[RedisNode]]]:
    """Set a stage with Redis, for what is no other's; options as for ``staged``."""
    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(staged(RedisNode, zookeeper, path, **given))
