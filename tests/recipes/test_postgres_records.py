"""Where records of the WAL end: on one page, over pages, over files, and beyond what is there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from zkelect.recipes.position import Branch, Position
from zkelect.recipes.postgres import Place, records
from zkelect.recipes.postgres.lsn import Lsn
from zkelect.recipes.postgres.records import Layout, is_torn

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 8192
SEGMENT = 1 << 20
LAYOUT = Layout(segment=SEGMENT, page=PAGE)
HERE = Position((Branch("7-1"), Branch("2", 5 * PAGE)), 9 * PAGE)


@pytest.mark.parametrize(
    ("at", "length", "end"),
    [
        (PAGE + 24, 100, PAGE + 124),
        (PAGE, 100, PAGE + 124),  # behind the page's header
        (0, 100, 140),  # behind a file's, which is longer
        (2 * PAGE - 100, 100, 2 * PAGE),
        (2 * PAGE - 100, 101, 2 * PAGE + 24 + 1),
        (2 * PAGE - 8, 8 + 2 * (PAGE - 24) + 8, 4 * PAGE + 24 + 8),
        (SEGMENT - 8, 16, SEGMENT + 40 + 8),
    ],
)
def test_a_record_ends_behind_the_headers_between(at: int, length: int, end: int) -> None:
    assert LAYOUT.end(at, length) == end


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(records, "ask", lambda *_: (SEGMENT, PAGE))
    (tmp_path / "pg_wal").mkdir()
    return Place(data_directory=tmp_path, local="host=/run", credentials="user=z")


def write(place: Place, at: int, length: int, *, timeline: int = 2) -> None:
    """Let a record of that length begin there."""
    file = place.data_directory / "pg_wal" / f"{timeline:08X}0000000000000000"
    file.write_bytes(bytes(at) + length.to_bytes(4, sys.byteorder) + bytes(100))


def torn(place: Place, after: int, end: int) -> bool:
    return is_torn(place, HERE, after=Lsn(after), end=Lsn(end), deadline=0.0)


@pytest.mark.parametrize("timeline", [1, 2])
def test_h81_a_record_that_was_not_received_as_a_whole_is_torn(place: Place, timeline: int) -> None:
    """The file may be of an ancestor: the present timeline may have none of its own yet."""
    write(place, 8 * PAGE + 1000, 500, timeline=timeline)
    assert torn(place, 8 * PAGE + 1000, 8 * PAGE + 1499)
    assert not torn(place, 8 * PAGE + 1000, 8 * PAGE + 1500)


def test_h81_one_of_which_not_even_the_length_was_received_is_torn(place: Place) -> None:
    assert torn(place, 9 * PAGE, 9 * PAGE + 24)


@pytest.mark.parametrize("length", [0, 23])
def test_what_is_no_record_is_not_torn(place: Place, length: int) -> None:
    """Nobody knows what that is: it is waited for, and not passed over."""
    write(place, 8 * PAGE + 1000, length)
    assert not torn(place, 8 * PAGE + 1000, 8 * PAGE + 1010)


def test_a_file_that_is_not_there_tells_nothing(place: Place) -> None:
    assert not torn(place, 8 * PAGE + 1000, 8 * PAGE + 1010)
