"""Options of the tests, and the way to the modules they share."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# importlib mode puts no folder of tests on the path; theatre.py is shared by several.
sys.path.append(str(Path(__file__).parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-stories",
        action="store_true",
        help="write tests/stories/*.txt anew as they go now; read the diff before you commit it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """On a busy machine an example may take any time: hypothesis must not judge by it."""
    if config.getoption("--hypothesis-profile", None) is None and find_spec("hypothesis"):
        from hypothesis import HealthCheck, settings

        patient = [HealthCheck.too_slow]
        settings.register_profile("untimed", deadline=None, suppress_health_check=patient)
        settings.load_profile("untimed")
