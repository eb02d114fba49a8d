"""How thorough to be: the usual run is quick, ``ZKELECT_THOROUGH=1`` takes the full numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from election.actor import TICK

from zkelect.testing import LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def roomy() -> Iterator[LocalEnsemble]:
    """A server that grants the session timeout people use: 10 s."""
    with LocalEnsemble(tick_time=TICK, max_session_timeout=20.0) as started:
        yield started
