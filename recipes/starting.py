"""A server started by the command that its user has named: it starts the server, and returns."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from zkelect.recipes.deadlines import left
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["start"]


def start(command: Sequence[str], deadline: float) -> None:
    """Run the command to its end.

    :raises NotNow: there is none, it cannot be run, failed, or has not ended by the deadline.
    """
    if not command:
        raise NotNow("the server does not run, and no command is given to start it")
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=left(deadline),
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotNow(f"the server cannot be started: {error}") from error
