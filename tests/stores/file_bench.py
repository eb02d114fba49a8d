"""The bench of the file store: its content carries the log."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from stores.benches import token_of

from zkelect.stores.file import FileFence
from zkelect.stores.mark import Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.stores.fence import Claimant

__all__ = ["FileBench", "logged"]


def logged(content: bytes | None) -> list[tuple[Token, str]]:
    """Read the log that a file's content carries."""
    rows = json.loads(content) if content else []
    return [(Token.parse(token), entry) for token, entry in rows]


class FileBench:
    """One file for each domain: a file has one."""

    volatile = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = self.file("d")

    def file(self, domain: str) -> Path:
        digest = hashlib.sha256(str(domain).encode()).hexdigest()
        return self._folder / f"{digest[:8]}.json"

    def fence(self, *, domain: str = "d", timeout: float = 60.0) -> FileFence:
        named = "" if domain is None else domain  # to the fence, None is the file's own name
        return FileFence(self.file(domain), domain=named, timeout=timeout)

    def write(self, fence: FileFence, claimant: Claimant, entry: str) -> None:
        rows = [*logged(fence.read(claimant)), (token_of(claimant), entry)]
        text = json.dumps([(str(token), written) for token, written in rows])
        fence.replace(claimant, text.encode())

    def log(self) -> list[tuple[Token, str]]:
        return logged(self.path.read_bytes() if self.path.exists() else None)

    def restore(self, mark: Token | None) -> None:
        """Put an old mark in the place of the present one."""
        file = self.path.with_name(f".{self.path.name}.zkelect-mark")
        domain, _, text = file.read_text("utf-8").partition("\n")
        if mark is None:
            file.unlink()
        else:
            origin = Mark.parse(text).origin
            file.write_text(f"{domain}\n{Mark(token=mark, origin=origin)}\n", "utf-8")
