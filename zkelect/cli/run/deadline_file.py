"""The file by which the command knows how long it may go on."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from zkelect.cli.failures import tell

__all__ = ["DeadlineFile"]


class DeadlineFile:
    """One line: the deadline of the lease, in seconds of the boot clock, as in /proc/uptime.

    It is replaced as a whole (rename(2)), so a reader never sees half a line, and never a later
    instant than was proven. Once the leadership is over it says 0.00.

    :ivar folder: of its own, readable for all: the command may be another user's.
    """

    def __init__(self) -> None:
        self.folder: Final = Path(tempfile.mkdtemp(prefix="zkelect-run-"))
        self.folder.chmod(0o755)
        self.path: Final = self.folder / "deadline"
        self._complained = False
        self.write(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it; the keeper does, too, when this process is killed."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, deadline: float) -> None:
        """Say another deadline; hundredths, rounded down.

        Where that fails, on a full disk for instance, the former one stays, which is earlier:
        the command may end too soon, never too late.
        """
        new = self.folder / "deadline.new"
        try:
            new.write_text(f"{math.floor(deadline * 100) / 100:.2f}\n", "ascii")
            new.replace(self.path)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            tell(f"{self.path} cannot be written, its deadline is not renewed: {error.strerror}")
