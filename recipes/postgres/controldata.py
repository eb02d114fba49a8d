"""What a stopped server says of itself, by ``pg_controldata``."""

from __future__ import annotations

from typing import Self

import attrs

from zkelect import InvalidArgument
from zkelect.recipes.postgres.lsn import Lsn

__all__ = ["ControlData"]


@attrs.frozen(kw_only=True)
class ControlData:
    """The control file of a data directory.

    :ivar system: the system identifier. :ivar state: such as "shut down", "in production".
    :ivar checkpoint: where its last checkpoint begins. :ivar timeline: the checkpoint's.
    :ivar rewindable: whether pg_rewind can find the pages that changed: data checksums, or
        wal_log_hints.
    """

    system: str
    state: str
    checkpoint: Lsn
    timeline: int
    rewindable: bool

    @property
    def standby(self) -> bool:
        """Whether it was in recovery as a standby when the file was written last."""
        return self.state in ("in archive recovery", "shut down in recovery")

    @classmethod
    def parse(cls, printed: str) -> Self:
        """Read what the program prints in the C locale.

        :raises InvalidArgument: a line that we need is not in it.
        """
        pairs = (line.split(":", 1) for line in printed.splitlines() if ":" in line)
        fields = {name.strip(): value.strip() for name, value in pairs}
        try:
            return cls(
                system=fields["Database system identifier"],
                state=fields["Database cluster state"],
                checkpoint=Lsn.parse(fields["Latest checkpoint location"]),
                timeline=int(fields["Latest checkpoint's TimeLineID"]),
                rewindable=fields["Data page checksum version"] != "0"
                or fields["wal_log_hints setting"] == "on",
            )
        except (KeyError, ValueError) as error:
            raise InvalidArgument("printed", printed, "what pg_controldata prints") from error
