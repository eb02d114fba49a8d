"""How thorough the searches are."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest


@pytest.fixture
def times() -> Callable[[int, int], int]:
    """Choose how much to look at: so much as a rule, or as much as is promised."""
    thorough = os.environ.get("ZKELECT_THOROUGH", "") not in ("", "0")
    return lambda quick, promised: promised if thorough else quick
