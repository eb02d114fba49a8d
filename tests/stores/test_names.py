"""The package of the stores: its names, and what they cost who does not use them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from zkelect import stores

LAZY = """
import sys
from zkelect import stores
assert "sqlite3" not in sys.modules
stores.SqliteFence
assert "sqlite3" in sys.modules
"""


def test_a_database_library_is_imported_when_its_store_is_first_used() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", stores.__all__)
def test_every_public_name_is_there(name: str) -> None:
    found = getattr(stores, name)
    assert getattr(found, "__name__", name) == name  # a constant has none
    assert name in dir(stores)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match=r"'zkelect\.stores' has no attribute 'Fence'"):
        getattr(stores, "Fence")  # noqa: B009  # mypy knows it, too
