"""The command ``zkelect run``: its options, and what it opens in which order."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

import zkelect
from zkelect.cli.connection import Target, reaching
from zkelect.cli.exits import NOT_ELECTED
from zkelect.cli.failures import tell
from zkelect.cli.run.deadline_file import DeadlineFile
from zkelect.cli.run.elector import Elector
from zkelect.cli.run.grace import choose_grace
from zkelect.cli.run.keeping import KeeperProcess
from zkelect.cli.run.program import check_program
from zkelect.cli.run.signal_watch import SignalWatch
from zkelect.cli.run.term import TermOfCommand
from zkelect.cli.serving import listen
from zkelect.core.paths import check_name, normalize
from zkelect.session.limits import check_timeout

if TYPE_CHECKING:
    from zkelect.server import Listener

__all__ = ["run"]

_log: Final = logging.getLogger("zkelect.run")
_LOOKS: Final = 30
"""So many looks at the lease in one session timeout: two for each renewal."""


class _AfterDashes(click.Command):
    """A command whose last argument is a command: ``--`` keeps the options of the two apart."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        dashes = "--" in args
        rest = super().parse_args(ctx, args)
        if not dashes and not ctx.resilient_parsing:
            raise click.UsageError("Put -- before the command: zkelect run PATH -- CMD...", ctx)
        return rest


@attrs.frozen(kw_only=True)
class _Wishes:
    """What was asked for on the command line."""

    path: str
    command: Sequence[str]
    no_wait: bool
    wait: float | None
    grace: float | None
    restart: bool
    name: str | None
    serve: str | None

    def check(self, target: Target) -> None:
        """Refuse what cannot be, before anything is started."""
        normalize(self.path)
        if self.name is not None:
            check_name(self.name)
        check_timeout(self.wait, "wait")
        if self.no_wait and self.wait is not None:
            raise click.UsageError("-n and -w exclude each other.")
        choose_grace(self.grace, target.session_timeout, target.tick_time)
        check_program(self.command[0])


@attrs.frozen
class _Face:
    """What ``--serve`` tells: serving only while the command runs."""

    election: zkelect.Election
    elector: Elector

    @property
    def path(self) -> str:
        return self.election.path

    def status(self) -> zkelect.Status:
        status = self.election.status()
        return status if self.elector.serving else attrs.evolve(status, serving=False)


@click.command(cls=_AfterDashes)
@click.argument("path")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.option("-n", "--no-wait", is_flag=True, help="Do not queue: lead now, or end.")
@click.option("-w", "--wait", type=float, metavar="SEC", help="Wait at most so long to be elected.")
@click.option(
    "-E",
    "--not-elected",
    type=click.IntRange(0, 255),
    default=NOT_ELECTED,
    show_default=True,
    metavar="CODE",
    help="Exit status when not elected in time.",
)
@click.option(
    "--grace",
    type=float,
    metavar="SEC",
    help="Seconds from TERM to KILL, which comes at the end of the lease.  [default: 1, or a "
    "quarter of what the lease has to spare]",
)
@click.option("--restart", is_flag=True, help="After a loss stand again, and start CMD anew.")
@click.option("--name", help="What this candidate is called.  [default: host-pid]")
@click.option(
    "--serve",
    metavar="ADDR",
    help="Answer /leader and /health over HTTP at ADDR: :8008, 127.0.0.1:8008, [::1]:8008.",
)
@reaching
def run(target: Target, not_elected: int, **wishes: Any) -> None:
    """Run a command only while leading, and kill all of it when the lease ends.

    Stands for election on PATH, waits, and starts CMD, without a shell. All that comes of
    CMD is dead before anybody else can lead: it gets TERM when the grace before the end of
    the lease begins, and KILL at its end, also when zkelect is stopped or killed.
    TERM, INT, HUP and QUIT are passed on to it.

    CMD finds ZKELECT_TOKEN, ZKELECT_PATH, ZKELECT_NODE, ZKELECT_NAME in its environment,
    and in the file ZKELECT_DEADLINE_FILE the end of the lease, in seconds as in /proc/uptime.

    \b
    Exit status: CMD's own, 128 + n when signal n ended it, or
      64   wrong usage
      69   no ZooKeeper to be had
      70   the leadership was lost
      75   not elected in time (-E to change)
      77   no permission
      126  CMD cannot be executed
      127  CMD was not found
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    try:
        status = _run(target, _Wishes(**wishes))
    except zkelect.NotElected as late:
        tell(str(late))
        status = not_elected
    sys.exit(status)


def _run(target: Target, wishes: _Wishes) -> int:
    """Open all that is needed, the keeper before everything that can fail later or be slow."""
    wishes.check(target)
    with ExitStack() as opened:
        listener = _listen(wishes.serve, opened)
        file = opened.enter_context(DeadlineFile())
        keeper = opened.enter_context(KeeperProcess(wishes.command, file.folder))
        _log.info("the keeper is process %d; %s", keeper.pid, keeper.safety)
        signals = opened.enter_context(SignalWatch())
        session = opened.enter_context(target.session())
        election = zkelect.Election(session, wishes.path, name=wishes.name)
        make_term = partial(
            TermOfCommand,
            keeper=keeper,
            file=file,
            command=wishes.command,
            grace=choose_grace(wishes.grace, session.timeout, target.tick_time),
            look_every=session.timeout / _LOOKS,
        )
        wait = _wait(target, wishes, session, election)
        elector = Elector(election, make_term, wait=wait, restart=wishes.restart)
        signals.receiver = elector.hear
        _serve(listener, _Face(election, elector), opened)
        return elector.run()


def _listen(address: str | None, opened: ExitStack) -> Listener | None:
    if address is None:
        return None
    listener = listen(address)
    opened.callback(listener.close)
    return listener


def _serve(listener: Listener | None, face: _Face, opened: ExitStack) -> None:
    if listener is not None:
        from zkelect.server import serve  # noqa: PLC0415 - needs the extra "server"

        opened.enter_context(serve(listener, face))


def _wait(
    target: Target, wishes: _Wishes, session: zkelect.Session, election: zkelect.Election
) -> float | None:
    """Return how long to wait; who does not want to queue does not even stand behind others.

    :raises NotElected: somebody stands.
    """
    if not wishes.no_wait and wishes.wait != 0:
        return wishes.wait
    if others := election.candidates(target.timeout):
        raise zkelect.NotElected(election.path, 0.0, len(others))
    return session.timeout / 2  # for the lease of who is first; one who came just before us leads
