"""Seconds on the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner, Result

from zkelect.cli.durations import Seconds
from zkelect.cli.main import command


@click.command()
@click.argument("seconds", type=Seconds(min=0, min_open=True))
def wait(seconds: float) -> None:
    click.echo(repr(seconds))


def waited(text: str) -> Result:
    return CliRunner().invoke(wait, ["--", text])


@pytest.mark.parametrize(("text", "seconds"), [("1", 1.0), ("0.5", 0.5), ("31536000", 31536000.0)])
def test_what_can_be_waited_for_is_taken(text: str, seconds: float) -> None:
    assert waited(text).output == f"{seconds!r}\n"


@pytest.mark.parametrize("text", ["nan", "inf", "1e300", "1e9"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    refused = waited(text)
    assert refused.exit_code == 2
    assert "no number of seconds" in refused.output


@pytest.mark.parametrize("text", ["0", "-1", "-inf", "soon"])
def test_the_range_holds(text: str) -> None:
    refused = waited(text)
    assert refused.exit_code == 2
    assert "x>0" in refused.output or "not a valid number of seconds" in refused.output


EVERY = [
    ("list", "--timeout"),
    ("status", "--watch", "/e"),
    ("top", "--watch"),
    ("switchover", "--within", "/e", "--to", "b"),
    ("resign", "--within", "/e"),
    ("evict", "--longest-lease", "/e", "b"),
    ("fence show", "--timeout", "s", "--domain", "d"),
    ("doctor", "--watch-host"),
    ("run", "--session-timeout", "/e", "--", "true"),
    ("promote switchover", "--within", "/c"),
    ("promote status", "--patience", "/c"),
    ("promote status", "--cool-down", "/c"),
    ("promote hooks", "--look-timeout", "/c", "--name", "a", "--address", "b", "--hooks", "/"),
]


@pytest.mark.parametrize("words", EVERY, ids=[" ".join(each[:2]) for each in EVERY])
@pytest.mark.parametrize("text", ["nan", "inf", "1e300", "-1"])
def test_each_command_refuses_them_by_the_name_of_its_option(
    words: tuple[str, ...], text: str
) -> None:
    name, option, *others = words
    refused = CliRunner().invoke(command, [*name.split(), option, text, *others])
    assert refused.exit_code == 64
    assert "Invalid value for" in refused.output
    assert option in refused.output.partition("Invalid value for")[2]
