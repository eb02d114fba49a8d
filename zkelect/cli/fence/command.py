"""``zkelect fence show`` and ``zkelect fence adopt``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

import zkelect
from zkelect import stores
from zkelect.cli.accounting import accounted
from zkelect.cli.config import read_config
from zkelect.cli.connection import reaching
from zkelect.cli.consent import ask_consent, consenting
from zkelect.cli.durations import timed
from zkelect.cli.escaping import printable
from zkelect.cli.exits import exit_status
from zkelect.cli.failures import tell
from zkelect.cli.fence.addresses import Question, opened, shown
from zkelect.cli.fence.naming import find_url
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.outcomes import write_outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zkelect.cli.connection import Target

__all__ = ["fence"]

_domain: Final = click.option(
    "--domain", metavar="NAME", required=True, help="The domain that the program gives its fence."
)
_schema: Final = click.option(
    "--schema", metavar="NAME", help="Where the table zkelect_fence is, in SQL, if it was told."
)


@attrs.frozen
class _Found:
    """What a store answered; its name has no secrets."""

    store: str
    domain: str
    mark: stores.Mark | None


@click.group(no_args_is_help=True)
def fence() -> None:
    """Look at the marks of guarded stores, and adopt them.

    STORE is a URL, or, when a password is in it, the name of an environment variable that holds
    one, or a name under [stores] of the configuration file. There are
    postgresql+psycopg://user@host/database, mysql+pymysql://user@host/database,
    sqlite:////folder/file, redis://host:6379/0, file:/folder/file and s3://bucket/key.
    """


@fence.command()
@click.argument("names", metavar="STORE...", nargs=-1, required=True)
@_domain
@_schema
@click.option(
    "--config",
    envvar="ZKELECT_CONFIG",
    type=click.Path(path_type=Path),
    help="Configuration file, for [stores].  [env: ZKELECT_CONFIG]",
)
@timed("--timeout", 10, "Seconds to wait for each store.")
@formatted
def show(
    names: tuple[str, ...],
    domain: str,
    schema: str | None,
    config: Path | None,
    timeout: float,
    output: Format,
) -> None:
    """Show the marks that stores keep of a domain.

    The mark is the highest token that a store has seen. ZooKeeper is not asked. A store that
    cannot be asked is told, and the others are shown.

    Exit status: 0 done, 64 wrong usage; 1, 69 or 77 for the first store that cannot be asked.
    """
    question = Question(domain=domain, timeout=timeout, schema=schema)
    urls = _urls(names, read_config(config).get("stores", {}))
    found, errors = [], []
    for url in urls:
        try:
            found.append(_ask(url, question))
        except zkelect.ZkelectError as error:
            tell(str(error))
            errors.append(error)
    _write(output, found)
    if errors:
        raise click.exceptions.Exit(exit_status(errors[0]))


@fence.command()
@click.argument("path")
@click.argument("names", metavar="STORE...", nargs=-1, required=True)
@_domain
@_schema
@accounted
@consenting
@formatted
@reaching
def adopt(
    target: Target,
    path: str,
    names: tuple[str, ...],
    domain: str,
    schema: str | None,
    reason: str,
    by: str | None,
    yes: bool,
    output: Format,
) -> None:
    """Put an election's next tokens above stores' marks.

    For an ensemble that was wiped, replaced or restored, so that all stores refuse its leaders.
    Stop the candidates and look at the data before; start them afterwards. Give all the stores
    of the election. None of them is written.
    """
    question = Question(domain=domain, timeout=target.timeout, schema=schema)
    found = [_ask(url, question) for url in _urls(names, target.stores)]
    _show(found, err=True)
    marks = [each.mark for each in found if each.mark is not None]
    with target.session() as session:
        election = zkelect.Election(session, path)
        if marks:
            ask_consent(printable(f"Put all later tokens of {path} above these marks?"), yes)
        generation = stores.adopt(election, *marks, why=reason, by=by, timeout=target.timeout)
    lineage = max(mark.token for mark in marks).lineage
    write_outcome(
        output,
        f"{path} has generation {generation} of lineage {lineage}; start its candidates",
        {"path": path, "lineage": lineage, "generation": generation},
    )


def _urls(names: tuple[str, ...], known: Mapping[str, str]) -> list[str]:
    return [find_url(name, known, os.environ) for name in names]


def _ask(url: str, question: Question) -> _Found:
    with opened(url, question) as store:
        return _Found(shown(url), question.domain, store.status())


def _write(output: Format, found: list[_Found]) -> None:
    if output is Format.JSON:
        write_json([_fields(each) for each in found])
    elif output is Format.TSV:
        write_rows([*_fields(each).values()] for each in found)
    else:
        _show(found)


def _show(found: Iterable[_Found], *, err: bool = False) -> None:
    for each in found:
        for line in _lines(each):
            click.echo(printable(line), err=err)


def _fields(found: _Found) -> dict[str, Any]:
    """Return it for a program; 64 bits of czxid do not fit into a number of JSON."""
    mark = found.mark
    token = None if mark is None else mark.token
    return {
        "store": found.store,
        "domain": found.domain,
        "token": None if token is None else str(token),
        "lineage": None if token is None else token.lineage,
        "generation": None if token is None else token.generation,
        "czxid": None if token is None else f"{token.czxid:016x}",
        "election": None if mark is None else mark.election,
        "holder": None if mark is None else mark.holder,
        "origin": None if mark is None else mark.origin,
    }


def _lines(found: _Found) -> list[str]:
    """Return it for people."""
    mark = found.mark
    if mark is None:
        return [found.store, _entry("domain", found.domain), _entry("claimed by", "nobody")]
    holder = f"{mark.holder} of {mark.election}" if mark.election else "a token over the wire"
    return [
        found.store,
        _entry("domain", found.domain),
        _entry("token", str(mark.token)),
        _entry("history", f"generation {mark.token.generation} of lineage {mark.token.lineage}"),
        _entry("claimed by", holder),
        *([_entry("server", mark.origin)] if mark.origin else []),
    ]


def _entry(key: str, value: str) -> str:
    return f"  {key:10}  {value}"
