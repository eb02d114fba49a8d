"""The caller's fault: change the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.errors.root import ZkelectError, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.core.pause import Pause
    from zkelect.token import Token

__all__ = [
    "CampaignInProgress",
    "ElectionPaused",
    "ForeignCandidate",
    "ForeignCompany",
    "InvalidArgument",
    "LeaderPresent",
    "Misuse",
    "MonkeyPatched",
    "NameTaken",
    "NotStanding",
    "NothingToAdopt",
    "SessionClosed",
    "SessionForked",
    "SwitchoverInProgress",
]

_NAMES_SHOWN = 10


class Misuse(ZkelectError):
    """The call cannot be right, whatever the servers say."""


class InvalidArgument(Misuse, ValueError):
    """An argument is outside its legal range; nothing was created.

    :ivar argument: its name. :ivar value: what was given. :ivar expected: the right form.
    """

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument = argument
        self.value = value
        self.expected = expected
        super().__init__(f"{argument}={shortened(value)}: {expected}")


class CampaignInProgress(Misuse):
    """A session stands for an election once at a time, whichever object does it.

    Two candidates of one session would share its lease, and one death would take both.

    :ivar name: who stands already.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name
        super().__init__(
            f"{path}: {name!r} of this session is campaigning already; resign first, or make "
            "another Election on another session to stand twice"
        )


class LeaderPresent(Misuse):
    """Somebody leads: the history of an election is not changed under a leader.

    :ivar leader: its name. :ivar token: its token.
    """

    def __init__(self, path: str, leader: str, token: Token) -> None:
        self.path = path
        self.leader = leader
        self.token = token
        super().__init__(
            f"{path}: {leader!r} leads with {token}; stop the candidates first, then adopt"
        )


class NothingToAdopt(Misuse):
    """The tokens of this election are above all these marks already.

    :ivar mark: the highest of them. :ivar generation: of the election's record.
    """

    def __init__(self, path: str, mark: Token, generation: int) -> None:
        self.path = path
        self.mark = mark
        self.generation = generation
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
        self.path = path
        self.dialect = dialect
        self.others: tuple[str, ...] = tuple(others)
        self.unknown: tuple[str, ...] = tuple(unknown)
        seen = [f"candidates of {', '.join(others)}"] if others else []
        seen += (
            [f"{len(unknown)} unknown sequential znodes such as {unknown[0]!r}"] if unknown else []
        )
        super().__init__(
            f"{path}: not standing in dialect {dialect!r} beside {' and '.join(seen)}; give "
            "dialect= as the others have it, or strict=False to stand all the same"
        )


class ForeignCandidate(Misuse):
    """What was asked for needs all candidates to read the election's record.

    :ivar node: the znode of one that does not, of another library.
    """

    def __init__(
        self,
        path: str,
        act: str,
        node: str,
        why: str = "does not read our record and would lead all the same",
    ) -> None:
        self.path = path
        self.act = act
        self.node = node
        super().__init__(
            f"{path}: cannot {act}: {node!r} is a candidate of another library, which {why}; "
            "stop its process first"
        )


class ElectionPaused(Misuse):
    """The election is paused, by somebody else: nobody new is to lead.

    :ivar pause: by whom, since when, why.
    """

    def __init__(self, path: str, pause: Pause) -> None:
        self.path = path
        self.pause = pause
        super().__init__(f"{path}: the election is {pause}; agree with them, then resume it")


class NameTaken(Misuse):
    """Another session has registered under that name, and holds it."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: another session holds this name; two processes are told to be the same one, "
            "or the session of one that died has not expired yet: wait longer, or use another name"
        )


class NotStanding(Misuse):
    """Nobody of that name stands in the election.

    :ivar name: what was asked for. :ivar standing: the names of those who stand, in order.
    """

    def __init__(self, path: str, name: str, standing: Sequence[str]) -> None:
        self.path = path
        self.name = name
        self.standing: tuple[str, ...] = tuple(standing)
        who = ", ".join(map(repr, standing[:_NAMES_SHOWN])) or "nobody"
        more = f" and {len(standing) - _NAMES_SHOWN} more" if len(standing) > _NAMES_SHOWN else ""
        verb = "do" if len(standing) > 1 else "does"
        super().__init__(f"{path}: {shortened(name)} does not stand; {who}{more} {verb}")


class SwitchoverInProgress(Misuse):
    """The leader is busy with another switchover.

    :ivar name: to whom. :ivar by: who asked for it. :ivar why: the reason given.
    """

    def __init__(self, path: str, name: str, by: str, why: str) -> None:
        self.path = path
        self.name = name
        self.by = by
        self.why = why
        reason = f" ({why})" if why else ""
        super().__init__(
            f"{path}: a switchover to {name!r} that {by!r} asked for is under way{reason}; "
            "wait until it has ended"
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
        self.owner = owner
        self.pid = pid
        super().__init__(
            f"this session belongs to process {owner}, but this is process {pid}, forked from it; "
            "connect() after the fork"
        )


class MonkeyPatched(Misuse):
    """gevent or eventlet has replaced the threads or sockets of this process.

    :ivar library: which of them. :ivar modules: what it has replaced.
    """

    def __init__(self, library: str, modules: Sequence[str]) -> None:
        self.library = library
        self.modules: tuple[str, ...] = tuple(modules)
        super().__init__(
            f"{library} has replaced {', '.join(self.modules)} in this process, and a lease needs "
            "threads that run while others compute; connect() in a process that is not patched, "
            "with threads or asyncio"
        )
