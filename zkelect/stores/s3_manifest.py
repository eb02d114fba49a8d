"""The manifest: one object that holds the mark and the user's bytes, written as a whole."""

from __future__ import annotations

import json
from typing import Final, Self

import attrs

from zkelect.errors import InvalidArgument
from zkelect.stores.mark import Mark

__all__ = ["Manifest", "Snapshot"]

_FORMAT: Final = "zkelect-manifest-1"
_FORM: Final = "a line of JSON with format, domain, mark, write and data_write, then the data"


@attrs.frozen(kw_only=True)
class Manifest:
    """What is written at once.

    :ivar write: an id of this one write, never used again. It makes two manifests of the same
        mark and data differ, and so their ETags; and it tells a writer whose answer was lost
        whether the write was its own.
    :ivar data_write: the id of the write that the data came with; a claim keeps both.
    """

    domain: str
    write: str
    data_write: str
    mark: Mark
    data: bytes = attrs.field(repr=False)

    def holds(self, write: str) -> bool:
        """Whether that write made this manifest, or brought the data that are still in it."""
        return write in (self.write, self.data_write)

    def encode(self) -> bytes:
        """Return the object's body: one line of JSON, then the data as they are."""
        head = {"format": _FORMAT, "domain": self.domain, "mark": json.loads(str(self.mark))}
        line = json.dumps({**head, "write": self.write, "data_write": self.data_write})
        return line.encode("ascii") + b"\n" + self.data

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Read the object's body; inverse of :meth:`encode`.

        :raises InvalidArgument: it is not that form; nothing is guessed.
        """
        line, _, data = body.partition(b"\n")
        try:
            head = json.loads(line)
            words = {name: head[name] for name in ("domain", "write", "data_write")}
            if head["format"] != _FORMAT or not all(isinstance(w, str) for w in words.values()):
                raise InvalidArgument("manifest", line, _FORM)
            return cls(mark=Mark.parse(json.dumps(head["mark"])), data=data, **words)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument("manifest", line, _FORM) from error


@attrs.frozen(kw_only=True)
class Snapshot:
    """The manifest as it was at one instant; neither is there before the first claim.

    :ivar etag: the store's name for exactly these bytes.
    """

    manifest: Manifest | None = None
    etag: str | None = None

    @property
    def mark(self) -> Mark | None:
        """The mark at that instant."""
        return None if self.manifest is None else self.manifest.mark

    @property
    def data(self) -> bytes:
        """The data at that instant; empty before the first ones."""
        return b"" if self.manifest is None else self.manifest.data
