"""Findings about one election: who may touch it, who stands, who should not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from zkelect.cli.doctor.facts import Election, Facts, Look, Server
from zkelect.cli.doctor.finding import Code, Finding
from zkelect.core.orphans import Orphan
from zkelect.core.znodes import LAST_SEQUENCE, WORN_SEQUENCE, Entry, is_ours

__all__ = ["examine_election"]

_BUFFER: Final = 0xFFFFF
"""jute.maxbuffer's default, in bytes (ZooKeeper Administrator's Guide, "Unsafe Options")."""

_ANYBODY: Final = "world:anyone:"
_WRITES: Final = frozenset("cdwa")


def examine_election(facts: Facts) -> Iterator[Finding]:
    """Find what is wrong with the election that was looked at, if one was."""
    election = facts.election
    if election is None:
        return
    yield from _access(election, facts.session.schemes)
    if election.now is None:
        return
    if not election.exists and not election.recorded:
        yield Finding(
            Code.NEVER_STOOD,
            "Nobody has ever stood for this election.",
            "Look at the spelling, and at the chroot; `zkelect list` shows what there is.",
            election.path,
        )
        return
    yield from _record(election, election.now)
    yield from _company(election, election.now)
    yield from _leader(election, election.now, facts.ensemble.servers, facts.ensemble.voters)
    yield from _orphans(election, election.now, facts.hosts)
    yield from _counter(election, election.now)
    yield from _sizes(election, election.now)


def _access(election: Election, schemes: tuple[str, ...]) -> Iterator[Finding]:
    as_whom = ", ".join(schemes) if schemes else "nobody (no credentials are configured)"
    for path, permission in election.denied:
        yield Finding(
            Code.NO_PERMISSION,
            f"The permission to {permission} is missing; we came as {as_whom}.",
            "Put credentials into the configuration file, or change the ACL.",
            path,
        )
    yield from _openness(election)


def _openness(election: Election) -> Iterator[Finding]:
    held = {path: _held_by_anybody(entries) for path, entries in election.acls.items()}
    writable = [f"{path} ({letters})" for path, letters in held.items() if set(letters) & _WRITES]
    if writable:
        yield Finding(
            Code.WORLD_WRITABLE,
            f"Anybody who reaches the servers may change {', '.join(writable)}: delete candidates, "
            "pause, or write another history.",
            "Let candidates authenticate, and restrict it once: "
            f"setAcl -R {election.path} auth::cdrwa, and the same for {election.path}.zkelect.",
            election.path,
        )


def _held_by_anybody(entries: tuple[str, ...]) -> str:
    """Return the permissions that take no credentials."""
    held = {letter for entry in entries for letter in _letters(entry)}
    return "".join(letter for letter in "cdrwa" if letter in held)


def _letters(entry: str) -> str:
    return entry.removeprefix(_ANYBODY) if entry.startswith(_ANYBODY) else ""


def _record(election: Election, look: Look) -> Iterator[Finding]:
    record = f"{election.path}.zkelect"
    ours = [entry for entry in look.roll.entries if is_ours(entry.uuid)]
    if election.damaged:
        yield Finding(
            Code.RECORD_DAMAGED,
            "The election's record cannot be understood: no token can be made, nobody leads.",
            "Restore its data from a backup; or stop all candidates, delete it, and adopt the "
            "stores' marks: `zkelect fence adopt`.",
            record,
        )
    elif not election.recorded and ours:
        yield Finding(
            Code.RECORD_MISSING,
            "Candidates stand, and the election has no record: somebody has deleted it.",
            "A candidate makes it anew; stores will refuse its tokens: `zkelect fence adopt`.",
            record,
        )
    if election.pause is not None:
        yield Finding(
            Code.PAUSED,
            f"The election is {election.pause}. Nobody new is elected.",
            f"When that is over: zkelect resume {election.path}",
            election.path,
        )


def _company(election: Election, look: Look) -> Iterator[Finding]:
    roll, path = look.roll, election.path
    foreign = [entry for entry in roll.entries if not is_ours(entry.uuid)]
    if not roll.entries:
        advice = "Start a candidate: `zkelect run`."
        yield Finding(Code.NOBODY_STANDS, "Nobody stands, so nobody leads.", advice, path)
    elif len(roll.entries) == 1:
        what = "Only one candidate stands: when it fails, nobody follows."
        yield Finding(Code.NO_HEIR, what, "Start another one, on another host.", path)
    if len(roll.dialects) > 1:
        yield Finding(
            Code.MIXED_DIALECTS,
            f"Candidates of {', '.join(sorted(roll.dialects))} stand in one queue, and do not see "
            "each other: two may lead at once.",
            "Use one dialect: dialect= of zkelect.Election.",
            path,
        )
    if foreign:
        yield Finding(
            Code.FOREIGN_CANDIDATES,
            f"{len(foreign)} of {len(roll.entries)} candidates are of another library: they have "
            "no lease, and pause, switchover and priority do not reach them.",
            "Nothing during a migration; afterwards stop them.",
            f"{path}/{foreign[0].node}",
        )
    if roll.strangers:
        yield Finding(
            Code.FOREIGN_NODES,
            f"{len(roll.strangers)} of its children are no candidates that we know; they are "
            "ignored.",
            "Find out who made them; keep other data elsewhere.",
            f"{path}/{min(roll.strangers)}",
        )


def _leader(
    election: Election, look: Look, servers: tuple[Server, ...], voters: int | None
) -> Iterator[Finding]:
    first = look.first
    if first is None or first in look.orphans:
        return
    where = f"{election.path}/{first.node}"
    name = repr(look.names[first]) if first in look.names else "The first candidate"
    evict = f"zkelect evict {election.path} {first.node}"
    stays = election.before is not None and election.before.first == first
    if stays and _is_disconnected(look.owners.get(first), servers, voters):
        yield Finding(
            Code.LEADER_GONE,
            f"{name} is first, and its session is connected to no server: it is dead or cut off, "
            "and nobody follows before its session has ended.",
            f"Wait for that; if it takes too long: {evict}",
            where,
        )
    elif stays and is_ours(first.uuid) and not _was_in_office(election):
        yield Finding(
            Code.NOT_IN_OFFICE,
            f"{name} is first, and has not taken office: nobody leads.",
            "Look at its log: paused, not eligible, no lease, or hanging. If it is dead: " + evict,
            where,
        )


def _is_disconnected(owner: int | None, servers: tuple[Server, ...], voters: int | None) -> bool:
    """Whether all servers there are have told who is connected, and it was not among them."""
    told = [server.sessions for server in servers if server.sessions is not None]
    complete = bool(told) and len(told) == len(servers) and len(told) >= (voters or 1)
    return bool(owner) and complete and not any(owner in sessions for sessions in told)


def _was_in_office(election: Election) -> bool:
    looks = (election.before, election.now)
    return any(look is not None and look.in_office for look in looks)


def _orphans(election: Election, look: Look, hosts: str) -> Iterator[Finding]:
    orphans = look.orphans
    before = orphans if election.before is None else election.before.orphans
    persistent = [entry for entry, why in orphans.items() if why is Orphan.NOT_EPHEMERAL]
    second = [entry for entry, why in orphans.items() if why is Orphan.SECOND]
    lasting = [entry for entry in second if entry in before]
    if persistent:
        where = f"{election.path}/{persistent[0].node}"
        yield Finding(
            Code.ORPHAN,
            f"{_count(persistent)} not ephemeral and never goes: who waits behind it waits for "
            "ever.",
            f"Delete it: zkCli.sh -server {hosts} delete {where}",
            where,
        )
    if lasting:
        yield Finding(
            Code.SECOND_CANDIDATE,
            f"{_count(lasting)} left from an answer that was lost: its session stands ahead of it, "
            "too.",
            "Its own process deletes it, within some session timeouts. If not, restart that.",
            f"{election.path}/{lasting[0].node}",
        )


def _count(entries: Sequence[Entry]) -> str:
    return "It is" if len(entries) == 1 else f"It, as {len(entries) - 1} others, is"


def _counter(election: Election, look: Look) -> Iterator[Finding]:
    following, worn = election.next_sequence, look.roll.exhausted
    if worn is not None or (following is not None and following > LAST_SEQUENCE):
        yield Finding(
            Code.COUNTER_EXHAUSTED,
            "The counter of candidates is at its end: their order can no longer be told, nobody "
            "is elected.",
            "Stop all candidates, delete this znode, and let it be made anew.",
            election.path,
        )
    elif following is not None and following >= WORN_SEQUENCE:
        yield Finding(
            Code.COUNTER_WORN,
            f"{following} of {LAST_SEQUENCE + 1} numbers for candidates are used up.",
            "At some quiet time stop all candidates, delete this znode, let it be made anew.",
            election.path,
        )


def _sizes(election: Election, look: Look) -> Iterator[Finding]:
    told = f"The list of candidates is {look.size} bytes; jute.maxbuffer is {_BUFFER} by default"
    if look.size > _BUFFER:
        yield Finding(
            Code.ROLL_TOO_LARGE,
            f"{told}, and Java clients, zkCli among them, cannot read it.",
            "Let fewer stand, or raise jute.maxbuffer on all clients and servers.",
            election.path,
        )
    elif look.size > _BUFFER // 2:
        advice = "Let fewer stand: a few candidates give all the safety there is."
        yield Finding(Code.ROLL_LARGE, f"{told}.", advice, election.path)
    for path, size in election.sizes.items():
        if size > _BUFFER // 2:
            yield Finding(
                Code.PAGE_LARGE,
                f"It is {size} bytes; the servers refuse more than jute.maxbuffer, {_BUFFER} by "
                "default, and then no term is recorded.",
                "Give candidates shorter names and addresses.",
                path,
            )
