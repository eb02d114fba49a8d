"""The contract, on the stores that need no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.benches import MemoryBench, SqliteBench
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.file_bench import FileBench

if TYPE_CHECKING:
    from pathlib import Path

    from stores.benches import Bench


@pytest.fixture(params=["memory", "sqlite", "file"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    match request.param:
        case "memory":
            return MemoryBench()
        case "sqlite":
            return SqliteBench(tmp_path / "jobs.db")
        case _:
            return FileBench(tmp_path)
