"""The page about the commands that look shows what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli.scenes import PAGE, SCENES, Stage, block_of, shape
from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = [name for name in SCENES if not name.startswith("demo")]
"""The demo's order of candidates is chance, and it takes half a minute: test_demo.py has it."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as begun:
        yield begun


@pytest.mark.parametrize("name", QUICK)
def test_the_page_shows_what_the_command_shows(stage: Stage, name: str) -> None:
    draw, width = SCENES[name]
    assert shape(draw(stage, width)) == shape(block_of(PAGE.read_text("utf-8"), name))


@pytest.mark.parametrize("name", SCENES)
def test_no_line_of_the_page_is_wider_than_its_terminal(name: str) -> None:
    lines = block_of(PAGE.read_text("utf-8"), name).splitlines()
    assert lines
    assert max(map(cell_len, lines)) <= SCENES[name][1]
