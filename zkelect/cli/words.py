"""A command within an argument: its words, quoted as for a shell, which runs none of it."""

from __future__ import annotations

import shlex
import shutil

import click

__all__ = ["program", "words"]


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text; nothing in them is expanded.

    :raises click.BadParameter: a quote has no end.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} cannot be read as words: {error}.") from error


def program(text: str) -> tuple[str, ...]:
    """Return the words of a command that can be run here: found now, and not when it is needed.

    :raises click.BadParameter: the first one is no program, or there is none.
    """
    command = words(text)
    if not command:
        raise click.BadParameter("it has no words: name a program.")
    if shutil.which(command[0]) is None:
        raise click.BadParameter(f"{command[0]!r} is no program that can be run here.")
    return command
