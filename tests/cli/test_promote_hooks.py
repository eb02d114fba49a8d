"""``zkelect promote hooks``: what it is told, before it reaches anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zkelect.cli.promote import hooks as module
from zkelect.cli.promote.agent import Attendance
from zkelect.recipes.hooks.order import REQUIRED
from zkelect.recipes.member import Member

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.recipes.hooks import HookedServer

ARGUMENTS = ["/cluster", "--name", "a", "--address", "10.0.0.1:7000", "--hosts", "127.0.0.1:1"]


@pytest.fixture
def looked_after(monkeypatch: pytest.MonkeyPatch) -> list[HookedServer]:
    found: list[HookedServer] = []
    monkeypatch.setattr(Attendance, "look_after", lambda _, server: found.append(server))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for verb in REQUIRED:
        (tmp_path / verb).touch(0o755)
    return tmp_path


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(module.hooks, [*ARGUMENTS, *arguments], catch_exceptions=False)
    return result.exit_code, result.output


def test_the_server_is_that_of_the_options(folder: Path, looked_after: list[HookedServer]) -> None:
    assert invoke("--hooks", str(folder), "--priority", "7", "--no-promote")[0] == 0
    (server,) = looked_after
    assert server.member == Member(name="a", address="10.0.0.1:7000", priority=7, candidate=False)
    assert server.hooks.path == folder


def test_a_fence_that_must_be_and_is_not_there(
    folder: Path, looked_after: list[HookedServer]
) -> None:
    status, said = invoke("--hooks", str(folder), "--require-fence")
    assert (status, looked_after) == (2, [])
    assert "has no hook 'fence'" in said
    (folder / "fence").touch(0o755)
    assert invoke("--hooks", str(folder), "--require-fence")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [("--hooks", "/nonexistent"), (), ("--hooks", "/", "--look-timeout", "nan")],
)
def test_what_cannot_be(arguments: tuple[str, ...], looked_after: list[HookedServer]) -> None:
    assert invoke(*arguments)[0] == 2
    assert not looked_after


def test_its_help_names_every_verb() -> None:
    said = CliRunner().invoke(module.hooks, ["--help"]).output
    assert all(verb in said for verb in REQUIRED)
