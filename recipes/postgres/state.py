"""How a server stands at the moment, in one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from zkelect.recipes.postgres.asking import ask
from zkelect.recipes.postgres.lsn import Lsn

if TYPE_CHECKING:
    from zkelect.recipes.postgres.place import Place

__all__ = ["State", "read_state"]

_QUERY: Final = """
select (select system_identifier from pg_control_system())::text,
       pg_is_in_recovery(),
       current_setting('primary_conninfo'),
       case when pg_is_in_recovery() then pg_get_wal_replay_pause_state() else 'not paused' end,
       pg_last_wal_replay_lsn()::text,
       pg_last_wal_receive_lsn()::text,
       (select latest_end_lsn::text from pg_stat_wal_receiver),
       coalesce((select status = 'streaming' from pg_stat_wal_receiver), false),
       (select pid from pg_stat_activity where backend_type = 'walreceiver'),
       coalesce((select wait_event from pg_stat_activity where backend_type = 'startup'), '')
"""
# What the startup process waits for when all WAL that is there has been replayed (PostgreSQL,
# "Wait Events").
_NO_MORE: Final = ("RecoveryWalStream", "RecoveryRetrieveRetryInterval")


@attrs.frozen(kw_only=True)
class State:
    """What a server that answers says of itself.

    :ivar system: the system identifier.
    :ivar standby: in recovery; it takes no writes.
    :ivar follows: the connection string of whom it is told to follow, empty for nobody.
    :ivar paused: somebody has paused replay.
    :ivar replayed: up to where, of a standby. :ivar received: since its start, by streaming.
    :ivar promised: the end of the WAL of whom it follows, as that one said last.
    :ivar streaming: it receives from whom it follows.
    :ivar receiver: the process that receives, in whatever state; None when there is none.
    :ivar idle: replay has come to the end of what is there.
    """

    system: str
    standby: bool
    follows: str
    paused: bool
    replayed: Lsn | None
    received: Lsn | None
    promised: Lsn | None
    streaming: bool
    receiver: int | None
    idle: bool

    @property
    def settled(self) -> bool:
        """Whether everything that it has received, in this life and before, is replayed."""
        if self.replayed is None or not self.idle:
            return False
        return self.received is None or self.received <= self.replayed

    @property
    def behind(self) -> int | None:
        """Bytes that it knew to lack when it last heard of whom it follows; None: unknown."""
        if self.promised is None or self.received is None:
            return None
        return max(self.promised - self.received, 0)


def read_state(place: Place, deadline: float) -> State:
    """Ask the server.

    :raises NoAnswer: it does not answer.
    """
    row = ask(place.local, _QUERY, deadline)
    system, standby, follows, paused, replayed, received, promised, streaming, receiver, waits = row
    return State(
        system=system,
        standby=standby,
        follows=follows,
        paused=paused != "not paused",
        replayed=_lsn(replayed),
        received=_lsn(received),
        promised=_lsn(promised),
        streaming=streaming,
        receiver=receiver,
        idle=waits in _NO_MORE,
    )


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn.parse(text)
