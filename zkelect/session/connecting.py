"""Opening a session: everything that can be wrong is told before anything is created."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Any, Final

from zkelect.core.lease import smallest_timeout
from zkelect.errors import ConnectFailed, InvalidArgument, ServerTooOld, TlsFailed, ZkelectError
from zkelect.session.access import Digest, Sasl, Tls, client_options, parse_acl
from zkelect.session.asking import ask
from zkelect.session.gateway import Failure, Fault
from zkelect.session.hosts import Hosts, parse
from zkelect.session.link import Link, OwnedLink
from zkelect.session.session import Session, new_uuid

__all__ = ["connect"]

_log: Final = logging.getLogger("zkelect.session")
_LONGEST_TIMEOUT: Final = 86_400.0


def connect(
    hosts: str,
    *,
    session_timeout: float = 10.0,
    tick_time: float | None = None,
    auth: Digest | Sasl | None = None,
    tls: Tls | None = None,
    acl: Sequence[str] | None = None,
    hops: int = 1,
    timeout: float = 15.0,
) -> Session:
    """Open a session; make one per process and keep it.

    :param hosts: ``"zk1:2181,zk2:2181,zk3:2181/app"``: servers, and a chroot that exists.
        A ``zk://`` prefix, IPv6 in brackets and spaces after commas are understood.
    :param session_timeout: seconds to ask for; the servers may grant another one, which
        then rules. At most a day, at least what a steady lease needs.
    :param tick_time: the servers' tickTime in seconds, if you know it: the lease left at
        each renewal is longer then. Never more than it really is less: too small breaks
        the lease. None: half the session timeout, which is always safe.
    :param auth: :class:`Digest` or :class:`Sasl`. :param tls: :class:`Tls`.
    :param acl: of every znode we make, as zkCli writes entries: ``"sasl:bob:cdrwa"``.
        Default: everything to the creator when authenticated, otherwise open.
    :param hops: 2 when a server may be an observer behind observerMasterPort, or the
        ensemble leader may starve for processor time.
    :param timeout: seconds to wait for the first connection.
    :raises InvalidArgument: something given cannot be right.
    :raises ConnectFailed: no server let us in; says what each of them answered.
    :raises TlsFailed: wrong CA, wrong name, or no TLS there.
    :raises AuthenticationFailed: the servers refused the credentials.
    :raises ServerTooOld: before ZooKeeper 3.5.
    """
    found = parse(hosts)
    _check_times(session_timeout, tick_time, hops, timeout)
    session = Session(
        hosts=str(found),
        session_timeout=session_timeout,
        make_link=lambda session: _own_link(session, found, session_timeout, auth, tls),
        acl=parse_acl(acl, auth),
        tick_time=tick_time,
        hops=hops,
        schemes=() if auth is None else (_scheme(auth),),
    )
    session.begin()
    try:
        _wait_connected(session, timeout)
        _check_granted(session, session_timeout, tick_time)
        _check_server(session, found, timeout)
    except BaseException:
        session.close(timeout=None if session.connected else 0.0)  # nothing to release
        raise
    return session


def _own_link(
    session: Session,
    hosts: Hosts,
    session_timeout: float,
    auth: Digest | Sasl | None,
    tls: Tls | None,
) -> Link:
    return OwnedLink(
        hosts=str(hosts),
        session_timeout=session_timeout,
        clock=session.clock,
        observer=session,
        options=client_options(auth, tls),
    )


def _check_times(
    session_timeout: float, tick_time: float | None, hops: int, timeout: float
) -> None:
    if tick_time is not None and not 0 < tick_time <= session_timeout / 2:
        raise InvalidArgument(
            "tick_time", tick_time, "seconds, above 0 and at most half the session timeout"
        )
    least = smallest_timeout(tick_time)
    if not least <= session_timeout <= _LONGEST_TIMEOUT:
        raise InvalidArgument(
            "session_timeout",
            session_timeout,
            f"seconds from {least:g}, the least that keeps a steady lease, to {_LONGEST_TIMEOUT:g}",
        )
    if hops not in (1, 2):
        raise InvalidArgument("hops", hops, "1 or 2")
    if not timeout > 0:
        raise InvalidArgument("timeout", timeout, "seconds above 0")


def _wait_connected(session: Session, timeout: float) -> None:
    deadline = session.now() + timeout
    with session.changed:
        while not session.connected:
            if session.fatal is not None:
                raise session.fatal
            left = deadline - session.now()
            if left <= 0 or _hopeless(session.causes):
                raise _not_connected(session, timeout)
            session.changed.wait(min(left, 0.2))


def _hopeless(causes: dict[str, Exception]) -> bool:
    """A certificate that was refused will be refused again."""
    return any(isinstance(cause, TlsFailed) for cause in causes.values())


def _not_connected(session: Session, timeout: float) -> ZkelectError:
    for cause in session.causes.values():
        if isinstance(cause, TlsFailed):
            return cause
    told = {server: _explained(cause) for server, cause in session.causes.items()}
    error = ConnectFailed(session.hosts, timeout, _unresolved(session.hosts) | told)
    error.__cause__ = next(iter(session.causes.values()), None)
    return error


def _unresolved(hosts: str) -> dict[str, str]:
    """kazoo leaves out names that do not resolve: name them."""
    causes = {}
    for host, port in parse(hosts).servers:
        try:
            socket.getaddrinfo(host, port)
        except socket.gaierror as error:
            causes[f"{host}:{port}"] = f"the name does not resolve ({error.strerror})"
    return causes


def _explained(cause: Exception) -> str:
    if isinstance(cause, ssl.SSLError):
        return str(cause)
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _check_granted(session: Session, asked: float, tick_time: float | None) -> None:
    granted = session.timeout
    least = smallest_timeout(tick_time)
    if granted < least:
        raise InvalidArgument(
            "session_timeout",
            asked,
            f"the servers granted {granted:g} s, and a steady lease needs {least:g} s; "
            "raise maxSessionTimeout",
        )
    if abs(granted - asked) > 0.001:
        _log.warning(
            "%s: asked for a session timeout of %g s, granted %g s (the servers' "
            "minSessionTimeout and maxSessionTimeout); %g s rules",
            session.hosts,
            asked,
            granted,
            granted,
        )


def _check_server(session: Session, hosts: Hosts, timeout: float) -> None:
    """Ask for something that only Create2 can refuse, and look for the chroot."""
    nowhere = f"/zkelect-{new_uuid()}/none"
    answer: Any = ask(session, lambda g, done: g.create_candidate(nowhere, b"", done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.UNIMPLEMENTED:
        raise ServerTooOld(session.hosts)
    if not hosts.chroot:
        return
    if ask(session, lambda g, done: g.exists("/", done), timeout) is None:
        raise InvalidArgument(
            "hosts",
            session.hosts,
            f"the chroot {hosts.chroot} does not exist; create it once: "
            f"zkCli.sh -server {hosts.servers[0][0]}:{hosts.servers[0][1]} create {hosts.chroot}",
        )


def _scheme(auth: Digest | Sasl) -> str:
    return "digest" if isinstance(auth, Digest) else f"sasl {auth.mechanism}"
