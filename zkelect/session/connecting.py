"""Opening a session: everything that can be wrong is told before anything is created."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from zkelect.core.lease import smallest_timeout
from zkelect.errors import InvalidArgument, ServerTooOld, TlsFailed
from zkelect.session.access import Digest, Sasl, Tls, client_options, parse_acl, tls_context
from zkelect.session.asking import ask
from zkelect.session.diagnosis import all_closed, explain, speaks_tls, tls_hopeless
from zkelect.session.gateway import Failure, Fault
from zkelect.session.greenlets import refuse_patched_threads
from zkelect.session.hosts import Hosts, parse
from zkelect.session.limits import check_session, check_timeout
from zkelect.session.link import OwnedLink
from zkelect.session.session import Session
from zkelect.session.uuids import new_uuid

__all__ = ["connect"]

_log: Final = logging.getLogger("zkelect.session")
_LOOK: Final = 0.2  # seconds between two looks at what servers answered


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
    :raises MonkeyPatched: gevent or eventlet has replaced this process's threads.
    :raises ConnectFailed: no server let us in; says what each of them answered.
    :raises TlsFailed: wrong CA, wrong name, or no TLS there.
    :raises AuthenticationFailed: the servers refused the credentials.
    :raises ServerTooOld: before ZooKeeper 3.5.
    """
    refuse_patched_threads()
    found = parse(hosts)
    check_timeout(timeout, endless=False)
    check_session(session_timeout, tick_time, hops)
    context, options = tls_context(tls), client_options(auth)
    session = Session(
        hosts=str(found),
        session_timeout=session_timeout,
        make_link=lambda session: OwnedLink(
            hosts=str(found),
            session_timeout=session_timeout,
            clock=session.clock,
            observer=session,
            tls=context,
            options=options,
        ),
        acl=parse_acl(acl, auth),
        tick_time=tick_time,
        hops=hops,
        schemes=() if auth is None else (_scheme(auth),),
    )
    session.begin()
    try:
        _wait_connected(session, found, timeout, plain=tls is None)
        _check_granted(session, session_timeout, tick_time)
        _check_server(session, found, acl, timeout)
    except BaseException:
        session.close(timeout=None if session.connected else 0.0)  # nothing to release
        raise
    return session


def _wait_connected(session: Session, hosts: Hosts, timeout: float, *, plain: bool) -> None:
    deadline = session.now() + timeout
    while True:
        with session.changed:
            if session.connected:
                return
            if session.fatal is not None:
                raise session.fatal
            left = deadline - session.now()
            if left <= 0 or tls_hopeless(hosts, session.causes):
                session.link.blame_silent()
                raise explain(hosts, timeout, session.causes)
            closed = plain and all_closed(hosts, session.causes)
            if not closed:
                session.changed.wait(min(left, _LOOK))
        if closed:  # asked once, and without the lock: the handshakes take their time
            plain = False
            _refuse_tls_ports(hosts)


def _refuse_tls_ports(hosts: Hosts) -> None:
    for (host, port), name in zip(hosts.servers, hosts.names, strict=True):
        if speaks_tls(host, port):
            raise TlsFailed(name, "this port speaks TLS; give tls= to connect()")


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


def _check_server(
    session: Session, hosts: Hosts, acl: Sequence[str] | None, timeout: float
) -> None:
    """Ask for something that only Create2 or the ACL can refuse, and look for the chroot."""
    nowhere = f"/zkelect-{new_uuid()}/none"
    answer: Any = ask(session, lambda g, done: g.create_candidate(nowhere, b"", done), timeout)
    if isinstance(answer, Failure) and answer.fault is Fault.UNIMPLEMENTED:
        raise ServerTooOld(session.hosts) from answer.cause
    if isinstance(answer, Failure) and answer.fault is Fault.INVALID_ACL:
        raise InvalidArgument("acl", acl, "entries that the servers accept") from answer.cause
    if not hosts.chroot:
        return
    if ask(session, lambda g, done: g.exists("/", done), timeout) is None:
        raise InvalidArgument(
            "hosts",
            session.hosts,
            f"the chroot {hosts.chroot} does not exist; create it once: {_creation(hosts)}",
        )


def _creation(hosts: Hosts) -> str:
    """Return the commands that make the chroot, level by level."""
    parts = hosts.chroot.split("/")[1:]
    levels = ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]
    return " && ".join(f"zkCli.sh -server {hosts.names[0]} create {level}" for level in levels)


def _scheme(auth: Digest | Sasl) -> str:
    return "digest" if isinstance(auth, Digest) else f"sasl {auth.mechanism}"
