"""Findings about the servers: who serves, what they have in common, what they lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from zkelect.cli.doctor.facts import WORDS, Ensemble, Facts, Server
from zkelect.cli.doctor.finding import Code, Finding

__all__ = ["examine_ensemble"]

_FEWEST: Final = 3
"""Voters of which one may fail (ZooKeeper Administrator's Guide, "Clustered Setup")."""


def examine_ensemble(facts: Facts) -> Iterator[Finding]:
    """Find what is wrong with the servers, and with the way to them."""
    ensemble = facts.ensemble
    yield from _way(facts)
    for server in ensemble.servers:
        yield from _server(server)
    yield from _company(ensemble)
    yield from _voters(ensemble)
    yield from _agreement(ensemble)
    yield from _words(ensemble)


def _way(facts: Facts) -> Iterator[Finding]:
    session, ensemble = facts.session, facts.ensemble
    if session.denied:
        yield Finding(
            Code.CREDENTIALS_REFUSED,
            session.problem,
            "Correct the credentials in the configuration file.",
        )
    elif session.problem:
        advice = "Start enough servers for a quorum, or correct the addresses."
        yield Finding(Code.NO_SESSION, session.problem, advice)
    if ensemble.chroot_exists is False:
        yield Finding(
            Code.CHROOT_MISSING,
            f"The chroot {ensemble.chroot} does not exist; nothing below it can be made.",
            f"Correct it in the hosts, or create it once: {_creation(ensemble)}",
            ensemble.chroot,
        )


def _creation(ensemble: Ensemble) -> str:
    """Return the commands that make the chroot, level by level."""
    parts = ensemble.chroot.split("/")[1:]
    levels = ("/" + "/".join(parts[: depth + 1]) for depth in range(len(parts)))
    server = next((each.name for each in ensemble.servers if each.serves), "SERVER")
    return " && ".join(f"zkCli.sh -server {server} create {level}" for level in levels)


def _server(server: Server) -> Iterator[Finding]:
    if server.serves:
        return
    if server.connect is None:
        advice = "Start it, or take it out of the hosts."
        yield Finding(Code.SERVER_DOWN, server.problem, advice, server.name)
    else:
        yield Finding(
            Code.SERVER_NOT_SERVING,
            server.problem,
            "Look at its log: it has no quorum, is just starting, or TLS is not set up alike there "
            "and in [tls] of the configuration file.",
            server.name,
        )


def _company(ensemble: Ensemble) -> Iterator[Finding]:
    modes = [server.mode for server in ensemble.servers]
    alone, leaders = modes.count("standalone"), modes.count("leader")
    if (alone and len(modes) > 1) or leaders > 1:
        told = ", ".join(f"{server.name} ({server.mode or '?'})" for server in ensemble.servers)
        yield Finding(
            Code.SEVERAL_ENSEMBLES,
            f"The hosts are not one ensemble: {told}. Each ensemble elects a leader of its own.",
            "Name the servers of one ensemble only; stop a server that has left it.",
        )


def _voters(ensemble: Ensemble) -> Iterator[Finding]:
    voters = ensemble.voters
    if voters is None:
        voters = 1 if [each.mode for each in ensemble.servers] == ["standalone"] else None
    if voters is None:
        return
    if voters == 1:
        yield Finding(
            Code.SINGLE_SERVER,
            "One server votes: when it fails, nobody is elected, and every lease runs out.",
            f"Run {_FEWEST} voters, each on a machine of its own.",
        )
    elif voters % 2 == 0:
        yield Finding(
            Code.EVEN_VOTERS,
            f"{voters} servers vote, of which {_spare(voters)} may fail: no more than of "
            f"{voters - 1}.",
            f"Run {voters - 1} or {voters + 1} voters.",
        )
    if 0 < len(ensemble.servers) < voters:
        yield Finding(
            Code.HOSTS_INCOMPLETE,
            f"The hosts name {len(ensemble.servers)} of {voters} voters: when those fail, we are "
            "cut off while the others serve.",
            "Name all of them.",
        )
    yield from _spares(ensemble, voters)


def _spares(ensemble: Ensemble, voters: int) -> Iterator[Finding]:
    """Tell when each further failure ends the quorum, although the configuration has spares."""
    up = _serving_voters(ensemble, voters)
    if up is not None and _spare(voters) and up - (voters // 2 + 1) < 1:
        yield Finding(
            Code.NO_SPARE_SERVER,
            f"{up} of {voters} voters serve: when one more fails, nobody is elected.",
            "Bring the missing ones back.",
        )


def _serving_voters(ensemble: Ensemble, voters: int) -> int | None:
    """Return how many serve: as their leader tells, or as we saw when we saw all of them."""
    for server in ensemble.servers:
        if server.synced is not None:
            return server.synced + 1
    if len(ensemble.servers) != voters or not any(each.serves for each in ensemble.servers):
        return None
    return sum(server.serves for server in ensemble.servers)


def _spare(voters: int) -> int:
    return (voters - 1) // 2


def _agreement(ensemble: Ensemble) -> Iterator[Finding]:
    servers = ensemble.servers
    if len(_different(each.version for each in servers)) > 1:
        told = ", ".join(f"{each.name} {each.version}" for each in servers if each.version)
        yield Finding(
            Code.MIXED_VERSIONS, f"The servers are not of one version: {told}.", "End the upgrade."
        )
    limits = {each.name: (each.least, each.most) for each in servers if each.most is not None}
    if len(set(limits.values())) > 1:
        told = ", ".join(
            f"{name} {least:g} to {most:g} s" for name, (least, most) in limits.items()
        )
        yield Finding(
            Code.UNEQUAL_LIMITS,
            f"The servers grant different session timeouts: {told}. A lease trusts them to be "
            "equal.",
            "Set the same minSessionTimeout and maxSessionTimeout on all, and restart them.",
        )
    if len(_different(each.tick for each in servers)) > 1:
        told = ", ".join(f"{each.name} {each.tick:g} s" for each in servers if each.tick)
        yield Finding(
            Code.UNEQUAL_TICK, f"tickTime is not the same: {told}.", "Set the same tickTime on all."
        )
    yield from _least(servers)


def _least(servers: Iterable[Server]) -> Iterator[Finding]:
    for server in servers:
        if server.tick and server.least is not None and server.least < 2 * server.tick - 0.001:
            yield Finding(
                Code.LEAST_BELOW_TWO_TICKS,
                f"It grants session timeouts from {server.least:g} s, less than two ticks of "
                f"{server.tick:g} s: a lease trusts that none is so short.",
                "Leave minSessionTimeout at its default, or ask for two ticks at least.",
                server.name,
            )


def _words(ensemble: Ensemble) -> Iterator[Finding]:
    silent = {each.name: each.silent for each in ensemble.servers if each.serves and each.silent}
    if silent:
        words = sorted(set().union(*silent.values()))
        yield Finding(
            Code.WORDS_REFUSED,
            f"{', '.join(silent)} {'does' if len(silent) == 1 else 'do'} not answer "
            f"{', '.join(words)}: what only they tell is not judged here.",
            f"To know more, allow them: 4lw.commands.whitelist={','.join(WORDS)} in zoo.cfg.",
        )


def _different(values: Iterable[object]) -> set[object]:
    return {value for value in values if value is not None}
