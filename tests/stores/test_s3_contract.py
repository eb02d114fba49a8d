"""The contract, on moto's S3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.s3_bench import S3Bench, moto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stores.benches import Bench


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    with moto() as server:
        yield server.options


@pytest.fixture
def bench(options: dict[str, str]) -> Bench:
    return S3Bench(options)
