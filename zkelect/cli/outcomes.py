"""What came of an act, on standard output: a sentence for people, fields for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zkelect.cli.escaping import printable
from zkelect.cli.formats import Format, write_json, write_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import zkelect

__all__ = ["candidate_fields", "pause_fields", "write_outcome"]


def write_outcome(output: Format, sentence: str, fields: Mapping[str, Any]) -> None:
    """Write it in the form asked for; of tab-separated values each line is a key and a value."""
    if output is Format.JSON:
        write_json(fields)
    elif output is Format.TSV:
        write_rows(_flat(fields))
    else:
        click.echo(printable(sentence))


def candidate_fields(candidate: zkelect.Candidate | None) -> dict[str, Any] | None:
    """Return what a program may want to know of who leads; ``since`` in seconds since 1970."""
    if candidate is None:
        return None
    return {
        "name": candidate.name,
        "node": candidate.node,
        "address": candidate.address,
        "token": None if candidate.token is None else str(candidate.token),
        "phase": None if candidate.phase is None else str(candidate.phase),
        "since": candidate.since,
        "foreign": candidate.foreign,
    }


def pause_fields(pause: zkelect.Pause | None) -> dict[str, Any] | None:
    """Return a pause as a program may read it; ``since`` in seconds since 1970."""
    return None if pause is None else {"by": pause.by, "why": pause.why, "since": pause.since}


def _flat(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Name what lies within an object by both keys, with a dot between."""
    rows: list[tuple[str, Any]] = []
    for key, value in fields.items():
        if isinstance(value, dict):
            rows += [(f"{key}.{within}", each) for within, each in _flat(value)]
        else:
            rows.append((key, value))
    return rows
