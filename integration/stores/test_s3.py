"""S3 on a real server: the contract, and the race between a stale writer and its successor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from servers.seaweedfs import SeaweedFs
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.s3_bench import S3Bench
from stores.s3_race import *  # noqa: F403  # the same

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def seaweedfs() -> Iterator[SeaweedFs]:
    with SeaweedFs() as server:
        yield server


@pytest.fixture
def bench(seaweedfs: SeaweedFs) -> S3Bench:
    return S3Bench(seaweedfs.options())
