"""Commands of the documentation can be typed: each word before an operand is one that there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from zkelect.cli.main import command

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK: Final = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE: Final = re.compile(r"`(zkelect [^`]*)`")
_OPERATORS: Final = frozenset("();<>|&")
_PLACEHOLDERS: Final = frozenset({"…", "...", "COMMAND"})
_THREADS: Final = frozenset({"callbacks", "standby"})
"""Ours are called ``zkelect`` and what they are for."""


def commands_in(page: Path) -> Iterator[list[str]]:
    """Yield the words after each ``zkelect``, up to the end of its command."""
    text = page.read_text("utf-8")
    lines = (line for block in _BLOCK.findall(text) for line in _joined(block))
    for line in (*lines, *_INLINE.findall(text)):
        words = split(line)
        for at, word in enumerate(words):
            if word == "zkelect" and (at == 0 or not words[at - 1].startswith("-")):
                yield list(_until_operator(words[at + 1 :]))


def _joined(block: str) -> list[str]:
    return block.replace("\\\n", " ").splitlines()


def split(line: str) -> list[str]:
    """Return a line's words, as the shell has them; those of a quotation that goes on are kept."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _until_operator(words: list[str]) -> Iterator[str]:
    for word in words:
        if set(word) & _OPERATORS and set(word) <= _OPERATORS:
            return
        yield word


def unknown_in(words: list[str]) -> str:
    """Return the first word that the command line does not know, empty if there is none."""
    at: click.Command = command
    # Else it would be kept, for all tests that follow, that -h is no option.
    context = click.Context(command, **command.context_settings)
    left = [word for word in words if word not in _PLACEHOLDERS]
    while left:
        word = left.pop(0)
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1:
            name, given, _ = word.partition("=")
            option = _option(at, context, name)
            if option is None:
                return f"{context.command_path} {word}"
            if not option.is_flag and not given and name.startswith("--") | (len(name) == 2):
                del left[:1]
        elif isinstance(at, click.Group):
            found = at.get_command(context, word)
            if found is None:
                if word in _THREADS and words == [word]:
                    break
                return f"{context.command_path} {word}"
            at, context = found, click.Context(found, context, info_name=word)
        elif not at.allow_interspersed_args:
            break
    return ""


def _option(at: click.Command, context: click.Context, name: str) -> click.Option | None:
    """Find it; of short ones that are written together, the first."""
    names = {name} if name.startswith("--") else {name[:2]}
    there = (each for each in at.get_params(context) if isinstance(each, click.Option))
    return next((each for each in there if names & {*each.opts, *each.secondary_opts}), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_commands_are_those_that_there_are(page: Path) -> None:
    assert [told for words in commands_in(page) if (told := unknown_in(words))] == []


def test_commands_are_found_and_unknown_words_of_them_too() -> None:
    found = [words for page in PAGES for words in commands_in(page)]
    assert len(found) > 50
    assert unknown_in(split("promote status /clusters/lab --nosuch")).endswith("--nosuch")
    assert unknown_in(split("promote enthrone /clusters/lab")).endswith("enthrone")
    assert unknown_in(split("run -nw /job -- backup --no-such-option")) == ""
