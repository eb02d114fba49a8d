"""What the command line of ``doctor`` means, before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from cli.patients import HEALTHY, look_with, with_election
from click.testing import CliRunner

from zkelect.cli.doctor import command as module
from zkelect.cli.main import command

if TYPE_CHECKING:
    from click.testing import Result

    from zkelect.cli.doctor.facts import Facts


class Visit:
    """Notes who is visited, and finds them as they are said to be."""

    made: ClassVar[list[tuple[str, str | None]]] = []
    facts: ClassVar[Facts] = HEALTHY

    def __init__(self, target: Any, path: str | None, **_: Any) -> None:
        self.made.append((target.hosts, path))

    def make(self) -> Facts:
        return self.facts


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """Return who is visited, in order."""
    monkeypatch.setattr(Visit, "made", [])
    monkeypatch.setattr(module, "Visit", Visit)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    monkeypatch.delenv("ZKELECT_HOSTS", raising=False)
    return Visit.made


def doctor(*words: str, **env: str) -> Result:
    return CliRunner().invoke(command, ["doctor", *words], env=env)


@pytest.mark.parametrize(
    ("words", "visited"),
    [
        (("zk1",), ("zk1", None)),
        (("zk1,zk2/app", "/elections/a"), ("zk1,zk2/app", "/elections/a")),
        (("-H", "zk1", "/elections/a/"), ("zk1", "/elections/a")),
        (("/elections/a", "-H", "zk1"), ("zk1", "/elections/a")),
        (("-H", "zk1"), ("zk1", None)),
    ],
)
def test_hosts_and_path_are_told_apart_by_the_slash(
    visits: list[tuple[str, str | None]], words: tuple[str, ...], visited: tuple[str, str | None]
) -> None:
    assert doctor(*words).exit_code == 0
    assert visits == [visited]


def test_hosts_of_the_environment_give_way_to_those_that_are_typed(
    visits: list[tuple[str, str | None]],
) -> None:
    assert doctor("/a", ZKELECT_HOSTS="zk9").exit_code == 0
    assert doctor("zk1", "/a", ZKELECT_HOSTS="zk9").exit_code == 0
    assert visits == [("zk9", "/a"), ("zk1", "/a")]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("/a",),
        ("zk1", "zk2"),
        ("zk1", "/a", "/b"),
        ("/a", "zk1"),
        ("zk1", "-H", "zk2"),
        ("zk1", "/a//b"),
        ("zk1", "/"),
        ("zk1", "--watch-host", "-1"),
        ("zk1", "-o", "xml"),
    ],
    ids=repr,
)
def test_wrong_words_are_wrong_usage_and_nobody_is_visited(
    visits: list[tuple[str, str | None]], words: tuple[str, ...]
) -> None:
    assert doctor(*words).exit_code == 64
    assert visits == []


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (HEALTHY, 0),
        (with_election(look_with()), 1),
        (with_election(look_with(), damaged=True), 2),
    ],
    ids=["fine", "warning", "critical"],
)
def test_the_exit_status_is_the_severity_of_the_worst(
    visits: list[tuple[str, str | None]],
    monkeypatch: pytest.MonkeyPatch,
    facts: Facts,
    status: int,
) -> None:
    monkeypatch.setattr(Visit, "facts", facts)
    for output in ("table", "json", "tsv"):
        assert doctor("zk1", "-o", output).exit_code == status
    assert len(visits) == 3
