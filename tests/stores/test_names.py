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


BARE = """
import sys
from importlib.abc import MetaPathFinder

class Bare(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("sqlalchemy", "redis", "boto3", "botocore"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Bare())
from zkelect import stores
try:
    getattr(stores, sys.argv[1])
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "SqlFence",
            "SqlFence needs sqlalchemy, which is not installed: pip install 'zkelect[sql]'",
        ),
        ("AsyncSqlFence", "needs sqlalchemy, which is not installed: pip install 'zkelect[sql]'"),
        ("fence_table", "needs sqlalchemy, which is not installed: pip install 'zkelect[sql]'"),
        ("RedisFence", "needs redis, which is not installed: pip install 'zkelect[redis]'"),
        ("AsyncRedisFence", "needs redis, which is not installed: pip install 'zkelect[redis]'"),
        ("S3Fence", "which is not installed: pip install 'zkelect[s3]'"),
    ],
)
def test_a_library_that_is_missing_is_told_with_what_to_type(name: str, told: str) -> None:
    command = [sys.executable, "-c", BARE, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith(told)


@pytest.mark.parametrize("name", ["FileFence", "ZnodeFence", "SqliteFence", "httpx_hooks", "adopt"])
def test_what_needs_no_library_comes_without_one(name: str) -> None:
    command = [sys.executable, "-c", BARE, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match=r"'zkelect\.stores' has no attribute 'Fence'"):
        getattr(stores, "Fence")  # noqa: B009  # mypy knows it, too
