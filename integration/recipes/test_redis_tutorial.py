"""The tutorial of docs/promotion_redis.md, run as it stands there; only the ports are free ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from recipes.tutorial import commands_of, free_ports, run_tutorial
from servers.packages import program

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[2] / "docs" / "promotion_redis.md"


@pytest.mark.timeout(300)
def test_the_tutorial_for_redis(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    program("redis-server")
    with free_ports("\n".join(commands_of(PAGE)), r"\b6379\d\b") as script:
        run_tutorial(script, zookeeper, tmp_path)
