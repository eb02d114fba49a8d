"""How a server stands at the moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from zkelect.recipes.mariadb.asking import connect, connect_to
from zkelect.recipes.mariadb.gtid import last, parse_set
from zkelect.recipes.mariadb.history import Promotion, end_of, locate, read_promotions, trespasser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkelect.recipes.mariadb.asking import Client
    from zkelect.recipes.mariadb.gtid import Gtid
    from zkelect.recipes.mariadb.place import Place
    from zkelect.recipes.position import Position

__all__ = ["State", "look", "read_remote", "read_state"]

_SETTLE: Final = 0.05
_WHO: Final = (
    "SELECT @@server_id AS server, @@global.read_only AS closed, @@gtid_domain_id AS domain,"
    " @@global.gtid_binlog_pos AS written, @@global.gtid_slave_pos AS applied"
)


@attrs.frozen(kw_only=True)
class State:
    """What a server that answers says of itself.

    :ivar server: its id. :ivar domain: of its GTIDs. :ivar writable: ``read_only`` is off.
    :ivar end: the last transaction that it has. :ivar strangers: its GTIDs of other domains.
    :ivar promotions: that its data have been through.
    :ivar follows: host and port of whom it is told to follow; None: nobody.
    :ivar receiving: "Yes", "No", or "Connecting". :ivar applying: it applies what it receives.
    :ivar received: the last transaction that it was sent since it follows, applied or not.
    :ivar fault: number of the last error of its replication, 0 without. :ivar told: its text.
    """

    server: int
    domain: int
    writable: bool
    end: Gtid | None
    strangers: tuple[Gtid, ...]
    promotions: tuple[Promotion, ...]
    follows: tuple[str, int] | None
    receiving: str
    applying: bool
    received: Gtid | None
    fault: int
    told: str

    @classmethod
    def of(
        cls,
        who: Mapping[str, Any],
        slave: Mapping[str, Any],
        promotions: tuple[Promotion, ...],
    ) -> Self:
        """Read what was told.

        :param slave: SHOW SLAVE STATUS, empty when there is nothing.
        """
        domain = who["domain"]
        gtids = (*parse_set(who["written"]), *parse_set(who["applied"]))
        receives, applies = slave.get("Last_IO_Errno", 0), slave.get("Last_SQL_Errno", 0)
        told = slave.get("Last_SQL_Error") or slave.get("Last_IO_Error") or ""
        return cls(
            server=who["server"],
            domain=domain,
            writable=not who["closed"],
            end=end_of(who),
            strangers=tuple(each for each in gtids if each.domain != domain),
            promotions=promotions,
            follows=(slave["Master_Host"], slave["Master_Port"]) if slave else None,
            receiving=slave.get("Slave_IO_Running", "No"),
            applying=slave.get("Slave_SQL_Running") == "Yes",
            received=last(domain, parse_set(slave.get("Gtid_IO_Pos", ""))),
            fault=applies or receives,
            told=" ".join(told.split()),
        )

    @property
    def position(self) -> Position:
        """What it has, durably: what is received and not applied is lost when it is restarted."""
        return locate(self.end, self.promotions)

    @property
    def following(self) -> bool:
        """Whether it takes in what its primary writes, as soon as that answers."""
        return self.applying and self.receiving != "No"

    @property
    def behind(self) -> int:
        """How many transactions it has received and not applied."""
        if self.received is None or not self.applying:
            return 0
        applied = 0 if self.end is None else self.end.sequence
        return max(self.received.sequence - applied, 0)

    @property
    def trespassed(self) -> bool:
        """Whether its last transaction is of somebody who was not the primary."""
        return trespasser(self.end, self.promotions)


def look(client: Client, database: str) -> State:
    """Ask through this connection.

    A transaction is in the binary log a moment before its rows are seen; one that seems to be
    nobody's is looked at twice.
    """
    state = _look(client, database)
    if state.trespassed:
        time.sleep(_SETTLE)
        state = _look(client, database)
    return state


def read_state(place: Place, deadline: float) -> State:
    """Ask our own server.

    :raises NoAnswer: it does not answer.
    """
    with connect(place, deadline) as client:
        return look(client, place.database)


def read_remote(place: Place, address: str, deadline: float) -> State:
    """Ask another member's server.

    :raises NoAnswer: it does not answer.
    """
    with connect_to(place, address, deadline) as client:
        return look(client, place.database)


def _look(client: Client, database: str) -> State:
    slave = client.row("SHOW SLAVE STATUS")
    who = client.row(_WHO)
    return State.of(who, slave, read_promotions(client, database))
