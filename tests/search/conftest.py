"""The mark of what takes a minute."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", 'search: thousands of histories, a minute or two; leave out with -m "not search"'
    )
