"""Looking after one server until a signal comes, and the options that all such commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs
import click

from zkelect.cli.connection import Target, reaching
from zkelect.cli.failures import tell
from zkelect.cli.promote.fencing import fence_by
from zkelect.cli.promote.policies import deciding
from zkelect.cli.promote.serving import serve, serving, taken
from zkelect.cli.promote.stopping import until_a_signal
from zkelect.recipes.agent import Agent
from zkelect.recipes.choice import Policy
from zkelect.recipes.member import Answer, Member
from zkelect.recipes.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Attendance", "Server", "attending"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Server(Resource, Protocol):
    """A resource that holds something open."""

    def close(self) -> None:
        """Let go of it."""


@attrs.frozen(kw_only=True)
class Attendance:
    """Whose server is looked after, and by which rules.

    :ivar path: of the cluster. :ivar fencing: the command that ``--fence`` gave; None: none.
    :ivar address: where to answer over HTTP, None: nowhere.
    """

    target: Target
    path: str
    member: Member
    policy: Policy
    fencing: Sequence[str] | None = None
    address: str | None = None

    def fence(self) -> Callable[[Member, float], Answer] | None:
        """Return what switches another member's server off, None when nothing does.

        :raises click.UsageError: nothing does, and ``--require-fence`` was said.
        """
        if self.fencing is not None:
            return fence_by(self.fencing)
        if self.policy.require_fence:
            raise click.UsageError("--require-fence, and no --fence: nobody would be promoted.")
        return None

    def look_after(self, server: Server) -> None:
        """Look after the server until a signal; then a primary is demoted, in good order.

        :param server: is closed in any case.
        :raises click.ClickException: it cannot be looked after; the text says what to change.
        :raises click.exceptions.Exit: a signal, with the shell's status, 128 + its number.
        """
        with ExitStack() as opened:
            opened.callback(server.close)
            listener = taken(self.address, opened)
            with until_a_signal() as stop:
                session = opened.enter_context(self.target.session())
                tell(f"{self.path}: looking after {server.member.name}")
                agent = Agent(session, self.path, server, policy=self.policy)
                serve(listener, agent, opened)
                agent.run(stop)


def attending(function: _Function) -> _Function:
    """Give a command an :class:`Attendance` as its first argument; goes below ``joining``.

    Its options are those of policy and connection; a ``fenced`` above it gives it ``--fence``.
    """

    @functools.wraps(function)
    def attend(
        target: Target,
        *,
        path: str,
        member: Member,
        policy: Policy,
        serve: str | None,
        fence: Sequence[str] | None = None,
        **own: Any,
    ) -> Any:
        attendance = Attendance(
            target=target, path=path, member=member, policy=policy, fencing=fence, address=serve
        )
        return function(attendance, **own)

    return deciding(serving(reaching(attend)))  # type: ignore[return-value]  # they fill in what it lacks
