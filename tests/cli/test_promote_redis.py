"""``zkelect promote redis``: what it is told, before it reaches anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zkelect.cli.promote import redis as module
from zkelect.cli.promote.agent import Attendance

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.recipes.redis import RedisServer

ARGUMENTS = ["/cluster", "--name", "a", "--address", "10.0.0.1:6379", "--hosts", "127.0.0.1:1"]


@pytest.fixture
def looked_after(monkeypatch: pytest.MonkeyPatch) -> list[RedisServer]:
    found: list[RedisServer] = []
    monkeypatch.setattr(Attendance, "look_after", lambda _, server: found.append(server))
    return found


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(module.redis, [*ARGUMENTS, *arguments], catch_exceptions=False)
    return result.exit_code, result.output


def test_a_password_comes_from_a_file(tmp_path: Path, looked_after: list[RedisServer]) -> None:
    (tmp_path / "password").write_text("p@ss/word\n")
    record = str(tmp_path / "record")
    for file in ([], ["--password-file", str(tmp_path / "password")]):
        assert invoke("--url", "redis://app@127.0.0.1:6379/0", "--record", record, *file)[0] == 0
    urls = [server.place.url for server in looked_after]
    assert urls == ["redis://app@127.0.0.1:6379/0", "redis://app:p%40ss%2Fword@127.0.0.1:6379/0"]


def test_a_password_is_no_argument(tmp_path: Path, looked_after: list[RedisServer]) -> None:
    url = "redis://app:secret@127.0.0.1:6379/0"
    status, said = invoke("--url", url, "--record", str(tmp_path / "record"))
    assert status != 0
    assert "--password-file" in said
    assert "secret" not in said
    assert not looked_after
