"""The file that pgbouncer includes: where its databases lead to, and whether we hold them.

Whether we do is in it so that whoever comes after us, killed in the middle of a change, lets the
clients go on that we have paused, and no others.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from zkelect.recipes.pgbouncer.aim import Address
from zkelect.recipes.pgbouncer.database import Database
from zkelect.recipes.resource import Unfit

__all__ = ["Listing"]

_HEAD: Final = "; written by zkelect promote pgbouncer: what you change here is lost\n"
_HELD: Final = "; these databases are paused while the primary is changed\n"
_MODE: Final = 0o644


class Listing:
    """The file of one pgbouncer.

    :param databases: that lead to the primary.
    """

    def __init__(self, file: Path, databases: Collection[Database]) -> None:
        self.file: Final = file
        self._databases = databases

    @property
    def held(self) -> bool:
        """Whether it says that we hold the databases."""
        return _HELD in self._text()

    def write(self, address: Address, *, held: bool) -> bool:
        """Have it say this; return whether it said something else.

        :raises Unfit: it cannot be written.
        """
        lines = "".join(f"{database.line(address)}\n" for database in self._databases)
        text = f"{_HEAD}{_HELD if held else ''}[databases]\n{lines}"
        if text == self._text():
            return False
        try:
            _replace(self.file, text)
        except OSError as error:
            raise Unfit(f"{self.file} cannot be written ({error.strerror})") from error
        return True

    def _text(self) -> str:
        try:
            return self.file.read_text("utf-8")
        except FileNotFoundError:
            return ""


def _replace(file: Path, text: str) -> None:
    """Write it as a whole or not at all, also when the power fails; readable by all."""
    number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(number, _MODE)
            os.fsync(number)
        Path(name).rename(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync(file.parent)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
