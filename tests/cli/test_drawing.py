"""Tables for people: as wide as there is room, in letters that the terminal has."""

from __future__ import annotations

import io
import math

import pytest
from rich.cells import cell_len
from rich.console import Console

from zkelect.cli.drawing import (
    Column,
    Line,
    Page,
    Table,
    block,
    duration,
    instant,
    new_console,
    paint,
    print_lines,
)

COLUMNS = (Column(title="#", right=True), Column(title="name", flexible=True), Column(title="for"))


def terminal(width: int = 80, *, no_color: bool = False) -> Console:
    """Return a console that takes itself for a terminal with colours."""
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        width=width,
        height=24,
        legacy_windows=False,
        _environ={},
        no_color=no_color,
    )


# --- text from elsewhere -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("host-a", "host-a"),
        ("🦊", "🦊"),
        ("a\nb\x1b[2J", r"a\nb\x1b[2J"),
        ("\u202egro.live", r"\u202egro.live"),
        ("\udcff", r"\udcff"),
        ("", ""),
    ],
)
def test_what_is_not_visible_is_shown_as_its_escape(name: str, shown: str) -> None:
    assert Page().brief(name) == shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_the_terminal_does_not_have_are_shown_as_escapes(encoding: str) -> None:
    page = Page(encoding=encoding)
    shown = page.brief("🦊…" + "x" * 100)
    assert shown.startswith(r"\U0001f98a\u2026x") and shown.endswith("x...")
    assert page.dash == "-"
    shown.encode(encoding)


@pytest.mark.parametrize("name", ["x" * 61, "x" * 1_000_000, "🦊" * 31, "\x00" * 60])
def test_a_long_text_is_cut_and_says_so(name: str) -> None:
    shown = Page().brief(name)
    assert cell_len(shown) in (59, 60)
    assert shown.endswith("…")
    assert "……" not in shown


def test_a_text_that_fits_is_whole() -> None:
    assert Page().brief("x" * 60) == "x" * 60
    assert Page().brief("x" * 10, 10) == "x" * 10
    assert Page().brief("x" * 11, 10) == "x" * 9 + "…"


# --- tables --------------------------------------------------------------------------------------


def test_columns_are_as_wide_as_their_widest_text_and_lines_have_no_tail() -> None:
    table = Table(Page(), COLUMNS, [("1", "🦊", "3 s"), ("10", "host-b", "")])
    assert [line.text for line in table.head()] == [" #  name    for", "──  ──────  ───"]
    assert table.line(("1", "🦊", "3 s")).text == " 1  🦊      3 s"
    assert table.line(("10", "host-b", "")).text == "10  host-b"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_fits_its_page(width: int) -> None:
    row = ("1", "x" * 300, "3 s")
    table = Table(Page(width=width), COLUMNS, [row])
    assert cell_len(table.line(row).text) == width
    assert "…" in table.line(row).text


def test_the_widest_of_the_flexible_columns_gives_way_first() -> None:
    columns = (Column(title="a", flexible=True), Column(title="b", flexible=True))
    for row in (("x" * 100, "y" * 10), ("x" * 10, "y" * 100)):
        shown = Table(Page(width=40), columns, [row]).line(row).text
        assert sorted(map(len, shown.split("  "))) == [10, 28]


def test_a_table_too_wide_for_any_page_keeps_a_few_letters_of_each_column() -> None:
    table = Table(Page(width=5), COLUMNS, [("1", "x" * 20, "3 s")])
    assert table.line(("1", "x" * 20, "3 s")).text == "1  xxxxx…  3 s"


def test_what_later_rows_have_more_of_is_cut_only_in_flexible_columns() -> None:
    table = Table(Page(), COLUMNS, [("1", "host-a", "3 s")])
    assert table.line(("10000", "host-abcdef", "1 min")).text == "10000  host-…  1 min"


# --- on the terminal, and elsewhere --------------------------------------------------------------


def test_a_terminal_gets_colours_and_no_line_is_wrapped() -> None:
    painted = paint(terminal(20), [Line("x" * 30, "bold red"), Line("plain")])
    assert painted == "\x1b[1;31m" + "x" * 19 + "…\x1b[0m\nplain\n"


def test_no_color_leaves_the_colours_out() -> None:
    painted = paint(terminal(no_color=True), [Line("nobody", "red")])
    assert "31" not in painted and "nobody" in painted


def test_a_pipe_gets_whole_lines_and_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(new_console(), [Line("x" * 500, "bold red")])
    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_a_block_has_as_many_lines_as_there_is_room_for() -> None:
    assert len(block([Line("a"), Line("b"), Line("c")], 2).renderables) == 2


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (-3.0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3601, "1 h"),
        (7260, "2 h 1 min"),
        (90000, "1 d 1 h"),
        (math.nan, "?"),
        (math.inf, "?"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_an_instant_is_said_in_utc_and_nonsense_is_no_instant() -> None:
    assert instant(0.0) == "1970-01-01 00:00:00"
    assert [instant(wrong) for wrong in (math.nan, math.inf, 1e300)] == ["?"] * 3
