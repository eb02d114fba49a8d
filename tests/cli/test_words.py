"""Commands within arguments."""

from __future__ import annotations

import sys

import click
import pytest

from zkelect.cli.words import program, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("-c shared_buffers=1GB", ("-c", "shared_buffers=1GB")),
        ("-c 'a b' $HOME *", ("-c", "a b", "$HOME", "*")),
    ],
)
def test_words_are_those_of_a_shell_that_expands_nothing(text: str, found: tuple[str, ...]) -> None:
    assert words(text) == found


def test_a_program_that_is_there() -> None:
    assert program(f"{sys.executable} -V") == (sys.executable, "-V")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "no words", id="empty"),
        pytest.param("switch 'beta", "No closing quotation", id="open quote"),
        pytest.param("/nonexistent/switch off", "'/nonexistent/switch' is no", id="not there"),
    ],
)
def test_what_cannot_be_run_is_refused(text: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=said):
        program(text)
