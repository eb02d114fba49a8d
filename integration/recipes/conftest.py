"""What the tests of the recipes share: a ZooKeeper, and a path of each test's own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

pytest.register_assert_rewrite("recipes.postgres_stage", "recipes.redis_stage")

from recipes.postgres_stage import Stage, staged  # noqa: E402  its asserts are rewritten first
from recipes.redis_stage import RedisStage, redis_staged  # noqa: E402  as above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble


@pytest.fixture
def stage(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., Stage]]:
    """Set a stage with PostgreSQL; options as for ``staged``."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(staged(zookeeper, path, **options))


@pytest.fixture
def redis_stage(zookeeper: LocalEnsemble, path: str) -> Iterator[Callable[..., RedisStage]]:
    """Set a stage with Redis; options as for ``redis_staged``."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(redis_staged(zookeeper, path, **options))
