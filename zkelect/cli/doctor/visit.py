"""One visit: everything is asked in order, and told as facts."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.cli.doctor.candidates import look_at, read_election
from zkelect.cli.doctor.facts import Ensemble, Facts, Host, Session
from zkelect.cli.doctor.host import watch_host
from zkelect.cli.doctor.measuring import (
    ROUNDS,
    compare_clocks,
    count_voters,
    time_commits,
    time_reads,
)
from zkelect.cli.doctor.servers import ask_servers, hear_again
from zkelect.errors import AuthenticationFailed, InvalidArgument, Unreachable
from zkelect.session.access import tls_context
from zkelect.session.hosts import Hosts, parse
from zkelect.session.inspection import read_details

if TYPE_CHECKING:
    import zkelect
    from zkelect.cli.connection import Target

__all__ = ["Visit"]

_PATIENCE: Final = 3.0
"""Seconds for each answer of a server that is asked by itself."""


class Visit:
    """Collects the facts about one ensemble, this host, and one election.

    A session is opened with each server and closed again, and an ephemeral znode is made, to
    read the servers' clock; it goes with its session. Nothing else is written.

    :param path: the election to look at, in its one right spelling; None: none.
    :param seconds: for how long to watch this host. :param tell: called with what is done now.
    :raises InvalidArgument: what is configured cannot be right.
    """

    def __init__(
        self, target: Target, path: str | None, *, seconds: float, tell: Callable[[str], None]
    ) -> None:
        self._target = target
        self._hosts: Hosts = parse(target.hosts)
        self._tls: ssl.SSLContext | None = tls_context(target.tls)
        self._path = path
        self._seconds = seconds
        self._tell = tell
        self._timeout = target.timeout
        self._patience = min(target.timeout, _PATIENCE)

    def make(self) -> Facts:
        """Ask all there is to ask; what cannot be reached is among the facts.

        :raises InvalidArgument: the credentials, the ACL or the session timeout cannot be right.
        """
        facts = self._ask_servers()
        try:
            return self._open_session(facts)
        except InvalidArgument as refused:
            if refused.argument != "session_timeout" or facts.session.granted is None:
                raise
            return facts  # what they grant is among the findings
        except Unreachable as error:
            denied = isinstance(error, AuthenticationFailed)
            failed = attrs.evolve(facts.session, granted=None, problem=str(error), denied=denied)
            return attrs.evolve(facts, session=failed)

    def _ask_servers(self) -> Facts:
        asked = self._target.session_timeout
        self._tell(f"asking {len(self._hosts.servers)} servers")
        servers = ask_servers(self._hosts.servers, asked, self._tls, self._patience)
        granted = min((each.granted for each in servers if each.granted is not None), default=None)
        return Facts(
            hosts=str(self._hosts),
            ensemble=Ensemble(servers=servers, chroot=self._hosts.chroot),
            session=Session(asked=asked, granted=granted, tick=self._target.tick_time),
        )

    def _open_session(self, facts: Facts) -> Facts:
        """Without the chroot: it may be missing, and the configuration is not below it."""
        self._tell("opening a session")
        whole = attrs.evolve(self._target, hosts=str(attrs.evolve(self._hosts, chroot="")))
        with whole.session() as session:
            facts = self._measure(session, facts)
            if self._path is None or facts.ensemble.chroot_exists is False:
                return attrs.evolve(facts, host=self._watch(session))
            if not self._hosts.chroot:
                return self._look_twice(session, session, self._path, facts)
            with self._target.session() as below:
                return self._look_twice(session, below, self._path, facts)

    def _measure(self, session: zkelect.Session, facts: Facts) -> Facts:
        self._tell(f"timing {ROUNDS} reads and {ROUNDS} commits")
        chroot, timeout = self._hosts.chroot, self._timeout
        ensemble = attrs.evolve(
            facts.ensemble,
            voters=count_voters(session, timeout),
            chroot_exists=read_details(session, chroot, timeout) is not None if chroot else None,
        )
        opened = attrs.evolve(
            facts.session,
            granted=session.timeout,
            schemes=session.schemes,
            reads=time_reads(session, timeout),
            commits=time_commits(session, timeout),
        )
        return attrs.evolve(facts, ensemble=ensemble, session=opened)

    def _look_twice(
        self, session: zkelect.Session, below: zkelect.Session, path: str, facts: Facts
    ) -> Facts:
        """Look, let some time pass, look again: what is wrong only for a moment is not wrong."""
        self._tell(f"looking at {path}")
        before = look_at(below, path, self._timeout)
        host = self._watch(session)
        self._tell(f"looking at {path} again")
        election = read_election(below, path, self._timeout, before)
        servers = facts.ensemble.servers
        heard = hear_again(servers, self._hosts.servers, self._tls, self._patience)
        ensemble = attrs.evolve(facts.ensemble, servers=heard)
        return attrs.evolve(facts, ensemble=ensemble, host=host, election=election)

    def _watch(self, session: zkelect.Session) -> Host:
        self._tell(f"watching this host for {self._seconds:g} s")
        host = watch_host(self._seconds)
        compared = compare_clocks(session, self._hosts.chroot, self._timeout)
        if compared is None:
            return host
        return attrs.evolve(host, ahead=compared[0], doubt=compared[1])
