"""The demo for programs: one JSON object per event, one line each."""

from __future__ import annotations

import json
import os
from typing import Final, TextIO

from zkelect.cli.demo.event import Event

__all__ = ["JsonLines"]


class JsonLines:
    """Writes each event as a line, at once; the last one is the summary.

    :param stream: usually standard output.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream
        self._start: float | None = None

    def show(self, event: Event) -> None:
        """Write one event.

        :raises SystemExit: nobody reads any more (``| head``): there is no more to do.
        """
        self._start = event.at if self._start is None else self._start
        try:
            self._stream.write(json.dumps(event.public(self._start)) + "\n")
            self._stream.flush()
        except BrokenPipeError:
            # What is still buffered would be complained of at exit (Python's documentation,
            # "Note on SIGPIPE").
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise SystemExit(1) from None

    def close(self) -> None:
        """Nothing here is shown only for the moment."""
