"""A replica becomes the primary: promoted while it is locked, on a branch of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from zkelect import ZkelectError
from zkelect.recipes.position import Branch, Position
from zkelect.recipes.redis import gate
from zkelect.recipes.redis.asking import connect
from zkelect.recipes.redis.history import locate
from zkelect.recipes.redis.state import State, look

if TYPE_CHECKING:
    from redis import Redis

    from zkelect.recipes.redis.history import Record
    from zkelect.recipes.redis.place import Place

__all__ = ["Incomplete", "become_primary", "check_data", "check_run", "objection", "restarted"]


class Incomplete(ZkelectError):
    """The server does not have data that are known."""


def check_data(state: State) -> None:
    """Make sure that its data are such that it could be the primary.

    :raises Incomplete: they are not.
    """
    if why := objection(state):
        raise Incomplete(why)


def objection(state: State) -> str:
    """Return why its data are not such that it could be the primary; empty: they are."""
    if state.loading:
        return "it is loading its data"
    if not state.whole:
        return "it was started without its data, or a full copy was begun and has not ended"
    return ""


def check_run(state: State, reigned: str, compared: str = "") -> None:
    """Make sure that it has all that it had as the primary, or that others were asked for more.

    :raises Incomplete: it was started anew; see :func:`restarted`.
    """
    if why := restarted(state, reigned, compared):
        raise Incomplete(why)


def restarted(state: State, reigned: str, compared: str = "") -> str:
    """Return that it is not what was the primary here; empty: it is, or none was.

    It has then what was on the disk, which may be nothing.

    :param reigned: the run that was promoted here last. :param compared: one that counts by what
        it has, as the others do.
    """
    if state.follows is not None and not state.demoted:
        return ""
    if not reigned or state.run in (reigned, compared):
        return ""
    return "it was started anew since it was the primary, and may lack what it had confirmed"


def become_primary(place: Place, record: Record, deadline: float, compared: str = "") -> Position:
    """Promote the replica, locked; a master stays what it is.

    :param compared: the run of which it is known that no other server has more.
    :raises Incomplete: its data are not known to be whole.
    """
    with connect(place.url, deadline) as client:
        state = look(client)
        check_data(state)
        if not state.master:  # who made it one by hand, to begin with, has chosen its data
            check_run(state, record.kept.reigned, compared)
        client.config_set("repl-backlog-ttl", "0")  # else an hour without followers is a new branch
        if not state.master:
            gate.close(client)
            client.replicaof("NO", "ONE")
        if not state.counting:
            _have_it_count(client)
        return _keep(look(client), state, record)


def _keep(after: State, before: State, record: Record) -> Position:
    """Keep the new branch, and that this run of the process was promoted."""
    old = locate(before, record.kept.known)
    new = locate(after, old)
    if new.history[-1].id != old.history[-1].id and len(new.history) == 1 and not before.master:
        new = Position((*old.history, Branch(after.replid, old.offset)), after.offset)
    record.keep(attrs.evolve(record.kept, known=new, reigned=after.run))
    return new


def _have_it_count(client: Redis) -> None:
    """Have it count what is written, as it does not before the first follower has come.

    Else it would take another replication id when that comes, and nobody could tell what was
    written before. So we are the first, for a moment (Redis, "Replication", PSYNC).
    """
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_command("PSYNC", "?", "-1")
        connection.read_response()
    finally:
        connection.disconnect()
        pool.release(connection)
