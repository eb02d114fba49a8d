"""The SQL fence keeps the contract on MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.sql_bench import SqlBench, engine_of
from stores.transactions import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.mariadb import MariaDb


@pytest.fixture
def bench(mariadb: MariaDb, mariadb_database: str) -> Iterator[SqlBench]:
    with engine_of(mariadb.url(database=mariadb_database)) as engine:
        yield SqlBench(engine)
