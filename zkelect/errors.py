"""Every error zkelect raises: one root, split by whose fault it is.

    ZkelectError
      Misuse        the call was wrong: change the program
      Lost          leadership or session is gone: stop the work, stand again
      Refused       a guarded store said no: somebody newer has been there
      Unreachable   ZooKeeper, or a store, could not be asked: try again or mend it

Data are attributes; the message says what was wrong, the value, and what to do.
Errors of other libraries are translated once, where they arise, and stay
attached as ``__cause__``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zkelect.token import Token

__all__ = [
    "AuthenticationFailed",
    "CampaignInProgress",
    "ConnectFailed",
    "DomainTaken",
    "EnsembleWentBack",
    "FenceStateLost",
    "Fenced",
    "ForeignCompany",
    "InvalidArgument",
    "LeaderPresent",
    "LeadershipLost",
    "LeadershipSuspended",
    "LineageMismatch",
    "Lost",
    "Misuse",
    "NobodyLeads",
    "NotElected",
    "NothingToAdopt",
    "PermissionDenied",
    "Refused",
    "RequestFailed",
    "SequenceExhausted",
    "ServerTooOld",
    "SessionClosed",
    "SessionForked",
    "StoreBusy",
    "TlsFailed",
    "TokenConflict",
    "Unclaimed",
    "UnfitStore",
    "Unreachable",
    "ZkelectError",
]


class ZkelectError(Exception):
    """The root: ``except ZkelectError`` catches all that this library raises on purpose."""


# --- misuse: the caller's fault -----------------------------------------------------------


class Misuse(ZkelectError):
    """The call cannot be right, whatever the servers say."""


class InvalidArgument(Misuse, ValueError):
    """An argument is outside its legal range; nothing was created.

    :ivar argument: its name. :ivar value: what was given. :ivar expected: the right form.
    """

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument, self.value, self.expected = argument, value, expected
        super().__init__(f"{argument}={_shortened(value)}: {expected}")


class CampaignInProgress(Misuse):
    """One election object stands for one candidate: it cannot campaign twice at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: this election is campaigning already; resign first, or make another "
            "Election on another session to stand twice"
        )


class LeaderPresent(Misuse):
    """Somebody leads: the history of an election is not changed under a leader.

    :ivar leader: its name. :ivar token: its token.
    """

    def __init__(self, path: str, leader: str, token: Token) -> None:
        self.path, self.leader, self.token = path, leader, token
        super().__init__(
            f"{path}: {leader!r} leads with {token}; stop the candidates first, then adopt"
        )


class NothingToAdopt(Misuse):
    """The tokens of this election are above all these marks already.

    :ivar mark: the highest of them. :ivar generation: of the election's record.
    """

    def __init__(self, path: str, mark: Token, generation: int) -> None:
        self.path, self.mark, self.generation = path, mark, generation
        super().__init__(
            f"{path}: nothing to adopt: at generation {generation} each new leader's token is "
            f"above the mark {mark} already"
        )


class ForeignCompany(Misuse):
    """``strict=True``, and in the queue are candidates that do not see ours, or may be some.

    :ivar dialect: ours. :ivar others: dialects of the others. :ivar unknown: sequential znodes
        of no dialect that is known.
    """

    def __init__(
        self, path: str, dialect: str, others: Sequence[str], unknown: Sequence[str]
    ) -> None:
        self.path, self.dialect = path, dialect
        self.others, self.unknown = tuple(others), tuple(unknown)
        seen = [f"candidates of {', '.join(others)}"] if others else []
        seen += (
            [f"{len(unknown)} unknown sequential znodes such as {unknown[0]!r}"] if unknown else []
        )
        super().__init__(
            f"{path}: not standing in dialect {dialect!r} beside {' and '.join(seen)}; give "
            "dialect= as the others have it, or strict=False to stand all the same"
        )


class SessionClosed(Misuse):
    """The session was closed by this program."""

    def __init__(self, hosts: str) -> None:
        self.hosts = hosts
        super().__init__(f"the session to {hosts} is closed; connect() again")


class SessionForked(Misuse):
    """A session does not survive fork(): it belongs to the process that connected.

    :ivar owner: pid of that process. :ivar pid: pid of this one.
    """

    def __init__(self, owner: int, pid: int) -> None:
        self.owner, self.pid = owner, pid
        super().__init__(
            f"this session belongs to process {owner}, but this is process {pid}, forked from it; "
            "connect() after the fork"
        )


# --- lost: nobody's fault, the world moved on ---------------------------------------------


class Lost(ZkelectError):
    """Something we held is gone."""


class LeadershipLost(Lost):
    """This leadership is over; its work must stop now.

    :ivar token: the token of the term that ended.
    :ivar reason: one of :class:`zkelect.Reason`, as text.
    """

    def __init__(self, path: str, token: Token, reason: str) -> None:
        self.path, self.token, self.reason = path, token, reason
        super().__init__(f"{path}: leadership {token} is over ({reason}); stop its work")


class LeadershipSuspended(Lost):
    """The link is down, and this election was told to pause at once; it may come back."""

    def __init__(self, path: str, token: Token) -> None:
        self.path, self.token = path, token
        super().__init__(
            f"{path}: leadership {token} is paused while the link to ZooKeeper is down; "
            "wait, or stop if wait_lost() says so"
        )


# --- refused: a guarded store knows better ------------------------------------------------


class Refused(ZkelectError):
    """A guarded store did not let the write pass; nothing was written.

    :ivar store: which store. :ivar domain: the fenced domain.
    :ivar token: ours. :ivar mark: the highest token the store has seen, or None.
    :ivar holder: the name of who claimed with it, empty when it is not known.
    :ivar detail: what else the store tells, in words.
    """

    advice = ""

    def __init__(
        self,
        *,
        store: str,
        domain: str,
        token: Token | None = None,
        mark: Token | None = None,
        holder: str = "",
        detail: str = "",
    ) -> None:
        self.store, self.domain, self.token, self.mark = store, domain, token, mark
        self.holder, self.detail = holder, detail
        whose = f" of {holder!r}" if holder else ""
        held = f"; the mark is {mark}{whose}" if mark is not None else ""
        ours = f" refused {token}" if token is not None else ""
        why = f": {detail}" if detail else ""
        super().__init__(f"{store} [{domain}]{ours}{held}{why}. {self.advice}".strip())


class Fenced(Refused):
    """A newer leader has claimed the domain: final for this term, never retried."""

    advice = "A newer leader has claimed this domain; stop, and campaign again"


class Unclaimed(Refused):
    """This leadership has not claimed the domain: claim before the first read or write."""

    advice = "Call claim(leadership) once per term, before the first read"


class FenceStateLost(Refused):
    """The store forgot a mark it had confirmed: a failover or restore swallowed it."""

    advice = (
        "The store was restored, failed over or emptied, so a higher mark may be lost, and data "
        "with it; check the data, then claim in a new term with initialize=True"
    )


class LineageMismatch(Refused):
    """The token comes from another ensemble, or from one that was wiped."""

    advice = (
        "Tokens of two lineages cannot be compared. If the old ensemble is gone for good, "
        "an operator runs adopt"
    )


class DomainTaken(Refused):
    """The domain belongs to another election: one domain is one election on one store."""

    advice = "Give each election a domain of its own"


class UnfitStore(Refused):
    """The store, as it is set up, cannot keep the promise; found by looking, at the claim."""

    advice = "Nothing was claimed or written; change the setup"


class TokenConflict(Refused):
    """Two holders with one token: the ensemble's history was changed under us."""

    advice = "One czxid cannot belong to two sessions; check for a restored or cloned ensemble"


class EnsembleWentBack(Refused):
    """The mark is from the ensemble's future: ZooKeeper was restored from a backup."""

    advice = (
        "The mark is above the ensemble's present zxid, so ZooKeeper was restored from a "
        "backup; an operator runs adopt to raise the generation"
    )


class StoreBusy(Refused):
    """Somebody else's open transaction holds the store; the claim gave up in time."""

    advice = "End the process that holds the store, or claim again"


# --- unreachable: could not be asked ------------------------------------------------------


class Unreachable(ZkelectError):
    """A server could not be asked, or did not answer in time."""


class ConnectFailed(Unreachable):
    """No server could be reached, or none let us in, within the time given.

    :ivar hosts: as given. :ivar causes: what each address answered.
    """

    def __init__(self, hosts: str, timeout: float, causes: Mapping[str, str]) -> None:
        self.hosts, self.timeout, self.causes = hosts, timeout, dict(causes)
        told = "; ".join(f"{host}: {cause}" for host, cause in causes.items())
        super().__init__(
            f"no session with {hosts} within {timeout:g} s ({told or 'no server answered'}); "
            "check the addresses and that the ensemble has a quorum"
        )


class TlsFailed(Unreachable):
    """The TLS handshake failed: wrong CA, wrong host name, or no TLS on that port."""

    def __init__(self, host: str, cause: str) -> None:
        self.host, self.cause = host, cause
        super().__init__(
            f"{host}: TLS handshake failed: {cause}; check ca, certfile and the name in the "
            "server's certificate"
        )


class AuthenticationFailed(Unreachable):
    """The server refused our credentials."""

    def __init__(self, hosts: str, scheme: str) -> None:
        self.hosts, self.scheme = hosts, scheme
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
        self.path, self.permission, self.schemes = path, permission, tuple(schemes)
        as_whom = ", ".join(schemes) if schemes else "nobody (no auth was given)"
        super().__init__(
            f"{path}: permission to {permission} is missing; authenticated as {as_whom}. "
            "Give auth= to connect(), or change the ACL"
        )


class NotElected(Unreachable, TimeoutError):
    """The campaign ended before its turn came; the candidate has been withdrawn.

    :ivar timeout: what was given, None when somebody resigned meanwhile.
    :ivar ahead: candidates before us at the end, None when we were not in the queue.
    """

    def __init__(self, path: str, timeout: float | None, ahead: int | None) -> None:
        self.path, self.timeout, self.ahead = path, timeout, ahead
        place = "not in the queue" if ahead is None else f"{ahead} candidates ahead"
        how = (
            "withdrawn before it was elected"
            if timeout is None
            else (f"not elected within {timeout:g} s")
        )
        super().__init__(f"{path}: {how} ({place})")


class NobodyLeads(Unreachable):
    """There is no leader to call now; there may be one in a moment."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: nobody leads at the moment; try again")


class SequenceExhausted(Unreachable):
    """The parent's counter is at its end: order can no longer be told."""

    def __init__(self, path: str, node: str) -> None:
        self.path, self.node = path, node
        super().__init__(
            f"{path}: sequence number of {node!r} is outside 0 … 2147483646; nobody is elected "
            "here any more. Stop all candidates, delete this znode, and let it be made anew"
        )


class RequestFailed(Unreachable):
    """ZooKeeper, or a store, answered a request with an error that has no better name here."""

    def __init__(self, path: str, request: str, cause: str) -> None:
        self.path, self.request, self.cause = path, request, cause
        super().__init__(f"{path}: {request} failed: {cause}")


def _shortened(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
