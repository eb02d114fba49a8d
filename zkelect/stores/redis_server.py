"""Which Redis server answers, whether it is the one that made the mark, and whether it is fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from zkelect.errors import InvalidArgument
from zkelect.stores.mark import Mark

if TYPE_CHECKING:
    from zkelect.token import Token

__all__ = ["Seen", "Server", "Text"]

Text: TypeAlias = str | bytes
"""A reply's text: which of both, the client's ``decode_responses`` says."""

_OLDEST: Final = 6
_NO_HISTORY: Final = "0" * 40


@attrs.frozen(kw_only=True)
class Server:
    """What INFO tells of a server (Redis documentation, "INFO").

    :ivar run_id: made anew by each start. :ivar history: ``master_replid``: made anew by each
        start and each promotion, and also when a backlog begins that continues no other.
    :ivar former: ``master_replid2``: the history it was promoted from; zeros when there is none.
    """

    version: str = ""
    mode: str = ""
    role: str = ""
    run_id: str = ""
    history: str = ""
    former: str = ""
    maxmemory: str = ""
    eviction: str = ""

    @classmethod
    def parse(cls, *sections: Text) -> Server:
        """Read sections of INFO; what they do not tell is empty."""
        lines = "\n".join(map(text_of, sections)).splitlines()
        told = dict(line.partition(":")[::2] for line in lines)
        return cls(
            version=told.get("redis_version", ""),
            mode=told.get("redis_mode", told.get("server_mode", "")),  # Valkey's word is the second
            role=told.get("role", ""),
            run_id=told.get("run_id", ""),
            history=told.get("master_replid", ""),
            former=told.get("master_replid2", ""),
            maxmemory=told.get("maxmemory", ""),
            eviction=told.get("maxmemory_policy", ""),
        )

    @property
    def origin(self) -> str:
        """This server in its present history, as it is kept with a mark that is made now."""
        return f"{self.run_id}/{self.history}"

    @property
    def clustered(self) -> bool:
        """Whether keys have slots here."""
        return self.mode == "cluster"

    def continues(self, origin: str) -> bool:
        """Tell whether the data have been this process's own since the mark was made.

        A process that was demoted copies another one's data, and is promoted into a new history
        that names the former one. A first replica, or an hour without one, begins a new history
        too, but one without a former: nothing was copied.
        """
        run_id, _, history = origin.partition("/")
        if self.role != "master" or run_id != self.run_id:
            return False
        return history == self.history or self.former == _NO_HISTORY

    def unfit(self) -> str:
        """Return why no mark can be kept here, or nothing if it can."""
        if not self.version.partition(".")[0].isdecimal() or not self.run_id or not self.history:
            return "its INFO tells no redis_version, run_id and master_replid, as a proxy's may not"
        if int(self.version.partition(".")[0]) < _OLDEST:
            return f"it is Redis {self.version}, older than {_OLDEST}.0"
        if self.role != "master":
            return f"its role is {self.role!r}: a replica takes no writes; give the primary"
        if self.eviction.startswith("allkeys-") and self.maxmemory != "0":
            return (
                f"maxmemory-policy {self.eviction} may evict the mark; set noeviction, or a "
                "volatile-* policy: the mark has no expiry"
            )
        return ""


@attrs.frozen
class Seen:
    """One look at a server: its mark, and which server it was.

    :ivar text: the mark as it is stored, empty for none: what a script compares.
    :ivar origin: what the rule compares with the mark's.
    """

    text: str
    mark: Mark | None
    server: Server
    origin: str

    @classmethod
    def of(cls, text: Text | None, server: Server) -> Seen:
        """Read a mark that this server has.

        :raises InvalidArgument: the text is not that of a mark.
        """
        if text is None:
            return cls("", None, server, server.origin)
        mark = Mark.parse(text)
        origin = mark.origin if server.continues(mark.origin) else server.origin
        return cls(text_of(text), mark, server, origin)

    @property
    def token(self) -> Token | None:
        """The mark's token."""
        return None if self.mark is None else self.mark.token

    @property
    def proof(self) -> tuple[str, str]:
        """What a script must find unchanged: the mark, and the server's history."""
        return self.text, f"master_replid:{self.server.history}\r\n"


def text_of(text: Text) -> str:
    """Return a reply's text.

    :raises InvalidArgument: it is no UTF-8.
    """
    try:
        return text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise InvalidArgument("mark", text, "UTF-8 text") from error
