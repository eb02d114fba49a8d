"""How a command fails: one message on standard error, one exit status."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from zkelect.cli.escaping import printable
from zkelect.cli.exits import INTERRUPTED, NOT_DONE, USAGE, exit_status
from zkelect.errors import ZkelectError

__all__ = ["tell", "telling_failures"]

_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""What a file or terminal answers that takes no more."""


def tell(text: str) -> None:
    """Say something to people: on standard error, whatever it is made of."""
    lines = (printable(line) for line in text.split("\n"))
    click.echo("zkelect: " + "\n".join(lines), err=True)


@contextmanager
def telling_failures() -> Iterator[None]:
    """Turn what a command raises into a message and an exit status.

    :raises click.exceptions.Exit: with the status.
    """
    try:
        yield
    except click.UsageError as wrong:
        wrong.show()
        raise click.exceptions.Exit(USAGE) from wrong
    except click.ClickException as error:
        tell(error.format_message())
        raise click.exceptions.Exit(error.exit_code) from error
    except ZkelectError as error:
        tell(str(error))
        raise click.exceptions.Exit(exit_status(error)) from error
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise  # click ends quietly when whoever reads our output has enough
        _discard_output()
        tell(f"the output could not be written: {error.strerror}")
        raise click.exceptions.Exit(NOT_DONE) from error
    except KeyboardInterrupt as interrupted:
        raise click.exceptions.Exit(INTERRUPTED) from interrupted


def _discard_output() -> None:
    """Have Python write what it may still hold to nowhere, or it ends with a status of its own."""
    with suppress(OSError, ValueError):  # there may be no file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
