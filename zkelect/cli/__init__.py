"""The command line: an extra, so that a program that embeds zkelect does not carry it.

The entry point is ``start``, not ``main``: importing :mod:`zkelect.cli.main` binds the
name ``main`` of this package to that module.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

__all__ = ["start"]

_EXTRA = frozenset({"click", "rich"})
_EX_USAGE = 64  # sysexits.h
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def start() -> None:
    """Run the ``zkelect`` command, or say what to install for it.

    :raises SystemExit: always; 130 when interrupted, 64 when the extra ``cli`` is not installed.
    """
    try:
        _run()
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _EXTRA:
            raise
        print(
            "zkelect: the command line needs its extra: pip install 'zkelect[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(_EX_USAGE) from missing


def _run() -> None:
    """Import the command, and call it: each command imports what it draws with."""
    try:
        from zkelect.cli.main import command  # noqa: PLC0415 - this line may fail, by design
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale may not know every letter
    command(prog_name="zkelect")
