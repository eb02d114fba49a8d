"""What ``zkelect run`` refuses before anything is started, and how it looks for the command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zkelect.cli.run.grace import choose_grace
from zkelect.cli.run.program import NotFound, NotStarted, check_program
from zkelect.errors import InvalidArgument

# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders to look in, one after the other."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}{second}")
    return first, second


def put(folder: Path, mode: int) -> None:
    (folder / "job").write_text("")
    (folder / "job").chmod(mode)


def test_the_first_that_can_be_executed_is_fine(places: tuple[Path, Path]) -> None:
    put(places[0], 0o644)
    put(places[1], 0o755)
    check_program("job")
    check_program(str(places[1] / "job"))


def test_one_that_is_there_but_not_executable_is_126(places: tuple[Path, Path]) -> None:
    put(places[1], 0o644)
    for program in "job", str(places[1] / "job"), str(places[1]):
        with pytest.raises(NotStarted) as told:
            check_program(program)
        assert told.value.exit_code == 126


def test_one_that_is_not_there_is_127(places: tuple[Path, Path]) -> None:
    put(places[1], 0o755)
    for program in "no-job", "", str(places[0] / "job"), str(places[1] / "job" / "within"):
        with pytest.raises(NotFound) as told:
            check_program(program)
        assert told.value.exit_code == 127


def test_a_folder_that_cannot_be_read_is_passed_over(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(places[1], 0o755)
    looked = Path.stat

    def stat(path: Path) -> os.stat_result:
        if path.is_relative_to(places[0]):
            raise PermissionError(13, "Permission denied")
        return looked(path)

    monkeypatch.setattr(Path, "stat", stat)
    check_program("job")


# --- the grace -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "tick", "grace"), [(10.0, None, 1.0), (10.0, 2.0, 1.0), (2.0, None, 0.165)]
)
def test_the_usual_grace_is_a_second_or_a_quarter_of_what_is_left(
    timeout: float, tick: float | None, grace: float
) -> None:
    assert choose_grace(None, timeout, tick) == pytest.approx(grace, abs=0.001)


def test_a_grace_beyond_the_lease_is_refused_with_the_longest() -> None:
    assert choose_grace(4.36, 10.0, None) == 4.36
    with pytest.raises(InvalidArgument, match=r"from 0 to 4\.36, .* tick_time is configured"):
        choose_grace(4.37, 10.0, None)
    assert choose_grace(5.6, 10.0, 2.0) == 5.6
    for wrong in 5.8, -0.1, float("nan"), float("inf"):
        with pytest.raises(InvalidArgument):
            choose_grace(wrong, 10.0, 2.0)


def test_where_the_lease_has_no_room_there_is_no_grace() -> None:
    assert choose_grace(None, 0.9, None) == 0.0
