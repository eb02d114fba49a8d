"""Where a MariaDB server is, as it is told to a process that works elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.recipes.mariadb import Place

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_data_directory_is_the_same_for_the_dead_man(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process works in /, and would look for another server."""
    monkeypatch.chdir(tmp_path)
    place = Place(socket="s", data_directory="data", user="agent", replication_user="repl")
    assert place.data_directory == tmp_path / "data"
