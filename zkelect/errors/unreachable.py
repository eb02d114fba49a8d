"""ZooKeeper, or a store, could not be asked: try again, or mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.errors.root import ZkelectError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zkelect.core.pause import Pause

__all__ = [
    "AuthenticationFailed",
    "ConnectFailed",
    "EvictionFailed",
    "NobodyLeads",
    "NotElected",
    "PermissionDenied",
    "RequestFailed",
    "SequenceExhausted",
    "ServerTooOld",
    "SwitchoverFailed",
    "TlsFailed",
    "Unreachable",
]


class Unreachable(ZkelectError):
    """A server could not be asked, or did not answer in time."""


class ConnectFailed(Unreachable):
    """No server could be reached, or none let us in, within the time given.

    :ivar hosts: as given. :ivar causes: what each address answered.
    """

    def __init__(self, hosts: str, timeout: float, causes: Mapping[str, str]) -> None:
        self.hosts = hosts
        self.timeout = timeout
        self.causes: dict[str, str] = dict(causes)
        told = "; ".join(f"{host}: {cause}" for host, cause in causes.items())
        super().__init__(
            f"no session with {hosts} within {timeout:g} s ({told or 'no server answered'}); "
            "check the addresses and that the ensemble has a quorum"
        )


class TlsFailed(Unreachable):
    """The TLS handshake failed: wrong CA, wrong host name, or no TLS on that port."""

    def __init__(self, host: str, cause: str) -> None:
        self.host = host
        self.cause = cause
        super().__init__(
            f"{host}: TLS handshake failed: {cause}; check ca, certfile and the name in the "
            "server's certificate"
        )


class AuthenticationFailed(Unreachable):
    """The server refused our credentials."""

    def __init__(self, hosts: str, scheme: str) -> None:
        self.hosts = hosts
        self.scheme = scheme
        super().__init__(
            f"{hosts} refused our {scheme} credentials; check user and password, and that the "
            "servers accept that scheme"
        )


class ServerTooOld(Unreachable):
    """The server lacks Create2, which came with ZooKeeper 3.5."""

    def __init__(self, hosts: str) -> None:
        self.hosts = hosts
        super().__init__(f"{hosts} is older than ZooKeeper 3.5 (no Create2); upgrade the ensemble")


class PermissionDenied(Unreachable):
    """The path's ACL does not let us do this.

    :ivar path: which. :ivar permission: what was missing. :ivar schemes: how we authenticated.
    """

    def __init__(self, path: str, permission: str, schemes: Sequence[str]) -> None:
        self.path = path
        self.permission = permission
        self.schemes: tuple[str, ...] = tuple(schemes)
        as_whom = ", ".join(schemes) if schemes else "nobody (no auth was given)"
        super().__init__(
            f"{path}: permission to {permission} is missing; authenticated as {as_whom}. "
            "Give auth= to connect() (to the command: credentials in its configuration file), or "
            "change the ACL"
        )


class NotElected(Unreachable, TimeoutError):
    """The campaign ended before its turn came; the candidate has been withdrawn.

    :ivar timeout: what was given, None when somebody resigned meanwhile.
    :ivar ahead: candidates before us at the end, None when we were not in the queue.
    :ivar pause: the pause of the election, None unless we have heard of one.
    """

    def __init__(
        self, path: str, timeout: float | None, ahead: int | None, pause: Pause | None = None
    ) -> None:
        self.path = path
        self.timeout = timeout
        self.ahead = ahead
        self.pause = pause
        candidates = "candidate" if ahead == 1 else "candidates"
        place = "not in the queue" if ahead is None else f"{ahead} {candidates} ahead"
        how = (
            "withdrawn before it was elected"
            if timeout is None
            else (f"not elected within {timeout:g} s")
        )
        paused = "" if pause is None else f"; the election is {pause}"
        super().__init__(f"{path}: {how} ({place}){paused}")


class NobodyLeads(Unreachable):
    """There is no leader to call now; there may be one in a moment."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: nobody leads at the moment; try again")


class SwitchoverFailed(Unreachable):
    """The switchover did not come about; it has been withdrawn.

    :ivar name: who should have led. :ivar reason: why it does not.
    """

    def __init__(self, path: str, name: str, reason: str) -> None:
        self.path = path
        self.name = name
        self.reason = reason
        super().__init__(f"{path}: no switchover to {name!r}: {reason}")


class EvictionFailed(Unreachable):
    """The candidate has not gone, and it would not be safe to delete it.

    :ivar name: of the candidate. :ivar reason: why it is not safe.
    """

    def __init__(self, path: str, name: str, reason: str) -> None:
        self.path = path
        self.name = name
        self.reason = reason
        super().__init__(f"{path}: {name!r} is not evicted: {reason}")


class SequenceExhausted(Unreachable):
    """The parent's counter is at its end: order can no longer be told."""

    def __init__(self, path: str, node: str) -> None:
        self.path = path
        self.node = node
        super().__init__(
            f"{path}: sequence number of {node!r} is outside 0 … 2147483646; nobody is elected "
            "here any more. Stop all candidates, delete this znode, and let it be made anew"
        )


class RequestFailed(Unreachable):
    """ZooKeeper, or a store, answered a request with an error that has no better name here."""

    def __init__(self, path: str, request: str, cause: str) -> None:
        self.path = path
        self.request = request
        self.cause = cause
        super().__init__(f"{path}: {request} failed: {cause}")
