"""Options of the tests, and the way to the modules they share."""

from __future__ import annotations

import sys
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
