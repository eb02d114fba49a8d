"""``zkelect promote mariadb``: what it is told, before it reaches anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zkelect import InvalidArgument
from zkelect.cli.promote import mariadb as module
from zkelect.cli.promote.agent import Attendance

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.recipes.mariadb import MariaDB

ARGUMENTS = ["/cluster", "--name", "a", "--address", "10.0.0.1:3306", "--hosts", "127.0.0.1:1"]
ACCOUNTS = ["--user", "agent", "--replication-user", "follower"]


@pytest.fixture
def looked_after(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Attendance, MariaDB]]:
    found: list[tuple[Attendance, MariaDB]] = []
    monkeypatch.setattr(Attendance, "look_after", lambda *both: found.append(both))
    return found


def invoke(folder: Path, *arguments: str) -> tuple[int, str]:
    place = ["--socket", str(folder / "socket"), "--data-directory", str(folder)]
    given = [*ARGUMENTS, *place, *ACCOUNTS, *arguments]
    result = CliRunner().invoke(module.mariadb, given, catch_exceptions=False)
    return result.exit_code, result.output


def test_passwords_come_from_files(
    tmp_path: Path, looked_after: list[tuple[Attendance, MariaDB]]
) -> None:
    (tmp_path / "one").write_text("p@ss/word\n")
    (tmp_path / "other").write_text("it's\n")
    files = ["--password-file", tmp_path / "one", "--replication-password-file", tmp_path / "other"]
    assert invoke(tmp_path, *map(str, files))[0] == 0
    (_, server), *_ = looked_after
    assert server.place.password == "p@ss/word"
    assert server.place.replication_password == "it's"
    assert "p@ss" not in repr(server.place)


@pytest.mark.parametrize("fence", [[], ["--fence", "true"]])
def test_a_fence_is_required_whether_or_not_it_is_said(
    tmp_path: Path, looked_after: list[tuple[Attendance, MariaDB]], fence: list[str]
) -> None:
    assert invoke(tmp_path, *fence)[0] == 0
    (attendance, _), *_ = looked_after
    assert attendance.policy.require_fence


def test_an_address_that_is_none_is_told(
    tmp_path: Path, looked_after: list[tuple[Attendance, MariaDB]]
) -> None:
    with pytest.raises(InvalidArgument, match="host:port"):
        invoke(tmp_path, "--address", "10.0.0.1")
    assert not looked_after
