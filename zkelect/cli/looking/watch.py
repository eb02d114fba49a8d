"""The command ``zkelect watch``: a line at each change of leader."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

import zkelect
from zkelect.cli.connection import Target, reaching
from zkelect.cli.drawing import Page, instant, new_console
from zkelect.cli.escaping import printable
from zkelect.cli.failures import tell
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.looking.hook import Hook
from zkelect.cli.outcomes import candidate_fields
from zkelect.cli.signals import Interruption
from zkelect.core.paths import normalize

if TYPE_CHECKING:
    from zkelect import Candidate, Observation

__all__ = ["sentence", "variables", "watch"]

_LOOK: Final = 1.0
"""Seconds between two looks at whether the link is up; changes are told at once."""

_LONGEST: Final = 8192
"""Characters of a variable: what a process may be started with is limited."""

_FIELDS: Final = ("name", "address", "token", "phase", "since", "node")


@click.command()
@click.argument("path")
@formatted
@click.option(
    "--exec",
    "hook",
    metavar="HOOK",
    help="Run this program, with its arguments, for the first line and at each change.",
)
@reaching
def watch(target: Target, path: str, output: Format, hook: str | None) -> None:
    """Print a line at each change of leader, and run a program for it.

    The first line tells who leads now. A line may be skipped when leaders follow each other
    quickly, and while HOOK runs; the last one always is how things are. Leaders of other
    libraries are not seen: they write no term.

    HOOK is words, quoted as for a shell, but run without one. One runs at a time; when it
    fails, that is said, and watching goes on. It gets ZKELECT_PATH and ZKELECT_LEADER_NAME,
    _ADDRESS, _TOKEN, _PHASE, _SINCE and _NODE; all of these but the first are empty while
    nobody leads. If HOOK is not there, or no program, the exit status is 127, or 126.

    \b
    -o json: one object for each line.
    -o tsv: one line for each:
      at name address token phase since node
    """  # noqa: D301 - click looks for the character itself, to leave the lines as they are
    path = normalize(path)
    runner = None if hook is None else Hook.parse(hook)
    with Interruption() as interruption, target.session() as session:
        election = zkelect.Election(session, path)
        with election.observe(target.timeout) as changes:
            teller = _Teller(election.path, output, runner)
            while True:
                teller.tell(changes)
                interruption.check()


class _Teller:
    """Tells changes as they come, and once when none could be told any more."""

    def __init__(self, path: str, output: Format, hook: Hook | None) -> None:
        self._path = path
        self._output = output
        self._hook = hook
        self._page = Page(width=_LONGEST, encoding=new_console().encoding)
        self._stale = False

    def tell(self, changes: Observation) -> None:
        """Wait a moment for a change, and tell it."""
        if changes.wait(_LOOK):
            self._tell(changes.leader)
        self._tell_freshness(changes)

    def _tell(self, leader: Candidate | None) -> None:
        now = time.time()
        facts = candidate_fields(leader)
        match self._output:
            case Format.JSON:
                write_json({"at": now, "path": self._path, "leader": facts})
            case Format.TSV:
                known = facts or {}
                write_rows([[now, *(known.get(name) for name in _FIELDS)]])
            case Format.TABLE:
                click.echo(f"{instant(now)}  {sentence(self._page, leader)}")
        failure = None if self._hook is None else self._hook.run(variables(self._path, leader))
        if failure is not None:
            tell(failure)

    def _tell_freshness(self, changes: Observation) -> None:
        stale = not changes.fresh
        if stale and not self._stale:
            tell(f"{self._path}: no connection; who leads was so {changes.age:.0f} s ago")
        elif self._stale and not stale:
            tell(f"{self._path}: connected again")
        self._stale = stale


def sentence(page: Page, leader: Candidate | None) -> str:
    """Say who leads, in one line."""
    if leader is None:
        return "nobody leads"
    token = leader.token
    which = "" if token is None else f", token {token.generation:x}:{token.czxid:x}"
    address = f", at {page.brief(leader.address)}" if leader.address else ""
    does = "prepares to lead" if leader.phase == "preparing" else "leads"
    return f"{page.brief(leader.name)} {does}{which}{address}"


def variables(path: str, leader: Candidate | None) -> dict[str, str]:
    """Return what a hook finds in its environment: printable, so that it harms no script."""
    known: dict[str, Any] = candidate_fields(leader) or {}
    told = {name: known.get(name) for name in _FIELDS}
    return {
        "ZKELECT_PATH": path,
        **{f"ZKELECT_LEADER_{name.upper()}": _text(value) for name, value in told.items()},
    }


def _text(value: object) -> str:
    return "" if value is None else printable(str(value)[:_LONGEST])
