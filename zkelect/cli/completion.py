"""The command ``zkelect completion``: what a shell needs to complete our names by Tab."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

_PROGRAM: Final = "zkelect"
_VARIABLE: Final = "_ZKELECT_COMPLETE"  # click's name for it, made of the program's


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete commands and options.

    Write what is printed to where the shell looks for it:

    \b
    bash   ~/.local/share/bash-completion/completions/zkelect
    zsh    ~/.zfunc/_zkelect    (or another folder of $fpath)
    fish   ~/.config/fish/completions/zkelect.fish

    No server is asked while completing, so the names of elections are not completed.

    Exit status: 0 done, 64 wrong usage.
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    kind = get_completion_class(shell)
    assert kind is not None  # one of the three
    program = context.find_root().command
    click.echo(kind(program, {}, _PROGRAM, _VARIABLE).source())
