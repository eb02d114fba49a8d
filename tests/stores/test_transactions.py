"""Open transactions, on the stores that need no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.benches import MemoryBench, SqliteBench
from stores.transactions import *  # noqa: F403  # collected here, with this module's bench

if TYPE_CHECKING:
    from pathlib import Path

    from stores.benches import TransactionBench


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> TransactionBench:
    return MemoryBench() if request.param == "memory" else SqliteBench(tmp_path / "jobs.db")
