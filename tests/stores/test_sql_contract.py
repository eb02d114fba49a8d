"""The contract and open transactions, on the SQL fence over SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.sql_bench import SqlBench, engine_of
from stores.transactions import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[SqlBench]:
    with engine_of(f"sqlite:///{tmp_path}/jobs.db") as engine:
        yield SqlBench(engine)
