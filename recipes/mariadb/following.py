"""A server joins a primary: it follows, or is refused; it never merges, and never rewinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zkelect import ZkelectError
from zkelect.recipes.clock import now
from zkelect.recipes.deadlines import wait_until
from zkelect.recipes.mariadb import gate
from zkelect.recipes.mariadb.asking import connect
from zkelect.recipes.mariadb.intake import objection
from zkelect.recipes.mariadb.place import split_address
from zkelect.recipes.mariadb.state import State, look, read_remote
from zkelect.recipes.position import Relation, compare
from zkelect.recipes.resource import NeedsRebuild, NotNow

if TYPE_CHECKING:
    from zkelect.recipes.mariadb.asking import Client
    from zkelect.recipes.mariadb.place import Place

__all__ = ["Unable", "join"]

_STEP: Final = 3.0
_REBUILD: Final = "copy the primary anew, by mariadb-backup or mariadb-dump --master-data --gtid"
_PART: Final = (Relation.EQUAL, Relation.BEHIND)
_FOLLOW: Final = (
    "CHANGE MASTER TO MASTER_HOST = %s, MASTER_PORT = %s, MASTER_USER = %s, MASTER_PASSWORD = %s,"
    " MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos"
)
# MariaDB, "MariaDB Error Code Reference": the primary has not what it is asked for, or has other
# transactions of these numbers; and a row is there, or not there, where the primary's was not.
_APART: Final = (1236, 1950, 1062, 1032)


class Unable(ZkelectError):
    """It cannot follow this primary as the two are set up; the text says what to change."""


def join(place: Place, address: str, deadline: float) -> None:
    """Follow the primary at this address.

    :raises NotNow: it does not yet. Nothing is waited for longer than a few seconds, for the
        primary may be another one by then.
    :raises NeedsRebuild: it has what the primary has not, or the primary has not any more what it
        lacks. Its data are left as they are.
    :raises Unable: two ids are the same, or two domains are not; or it cannot apply what it is
        sent.
    """
    deadline = min(deadline, now() + _STEP)
    with connect(place, deadline) as client:
        state = look(client, place.database)
    if state.writable:
        gate.close(place, deadline)
    if state.follows == split_address(address) and state.following:
        _await(place, deadline)
        return
    _compare(place, address, deadline)
    with connect(place, deadline) as client:
        _attach(client, place, address)
    _await(place, deadline)


def _compare(place: Place, address: str, deadline: float) -> None:
    """Make sure that what it has is a part of what the primary has; ours is read first."""
    with connect(place, deadline) as client:
        client.run("STOP SLAVE")
        ours = look(client, place.database)
    theirs = read_remote(place, address, deadline)
    if ours.server == theirs.server:
        raise Unable(f"both have server_id {ours.server}: give each member its own")
    if ours.domain != theirs.domain:
        raise Unable(
            f"gtid_domain_id is {ours.domain} here and {theirs.domain} there: make it the same"
        )
    if why := objection(ours):
        raise NeedsRebuild(f"{why}; {_REBUILD}")
    if compare(ours.position, theirs.position) not in _PART:
        raise NeedsRebuild(
            f"it has {ours.position}, which is no part of the primary's {theirs.position};"
            f" {_REBUILD}"
        )


def _attach(client: Client, place: Place, address: str) -> None:
    """Go on after the last transaction that is here, whoever wrote it.

    What was written here as the primary is not in gtid_slave_pos.
    """
    end = look(client, place.database).end
    host, port = split_address(address)
    gate.end_claim(client)
    client.run("SET GLOBAL gtid_slave_pos = %s", "" if end is None else str(end))
    client.run(_FOLLOW, host, port, place.replication_user, place.replication_password)
    client.run("START SLAVE")


def _await(place: Place, deadline: float) -> None:
    """Wait until it receives and applies; what is in the way is told, such as a wrong password."""
    told = ""

    def attached() -> bool:
        nonlocal told
        state = look(client, place.database)
        told = f": {state.fault}: {state.told}" if state.fault else ""
        return _is_attached(state)

    with connect(place, deadline) as client:
        try:
            wait_until(attached, deadline, "it receives from the primary, and applies that")
        except NotNow as error:
            raise NotNow(f"{error}{told}") from error


def _is_attached(state: State) -> bool:
    if state.following or not state.fault:
        return state.applying and state.receiving == "Yes"
    told = f"{state.fault}: {state.told}"
    if state.fault in _APART:
        raise NeedsRebuild(f"its data are not the primary's ({told}); {_REBUILD}")
    raise Unable(f"it does not go on following: {told}")
