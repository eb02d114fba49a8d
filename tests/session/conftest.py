"""An ensemble in memory, and candidates on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from session.troupe import TICK, Troupe

from zkelect.testing import FakeEnsemble


@pytest.fixture
def fake() -> Iterator[FakeEnsemble]:
    with FakeEnsemble(3, tick_time=TICK) as made:
        yield made


@pytest.fixture
def troupe(fake: FakeEnsemble, monkeypatch: pytest.MonkeyPatch) -> Troupe:
    return Troupe(fake, monkeypatch)
