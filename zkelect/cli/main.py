"""The ``zkelect`` command: one group, whose commands are imported when they are called.

Data go to standard output, everything else to standard error. Exit statuses are those of
sysexits.h where it has one (:mod:`zkelect.cli.exits`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from zkelect.cli.commands import SECTIONS, find
from zkelect.cli.failures import telling_failures

__all__ = ["command"]


class _Commands(click.Group):
    """Commands by name, each in a module that is imported only for it: the help stays quick.

    The exit status for wrong usage is that of sysexits.h, not click's 2.
    """

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with telling_failures():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with telling_failures():
            return super().invoke(ctx)

    def list_commands(self, _: click.Context) -> list[str]:
        return [entry.name for section in SECTIONS.values() for entry in section]

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        entry = find(name)
        if entry is None:
            return None
        found = getattr(import_module(entry.module), entry.attribute)
        assert isinstance(found, click.Command)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click does, but importing no command: a Tab is answered at once."""
        entries = (entry for section in SECTIONS.values() for entry in section)
        found = [entry for entry in entries if entry.name.startswith(incomplete)]
        items = [CompletionItem(entry.name, help=entry.help) for entry in found]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(entry.name, entry.help) for entry in section])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="zkelect", message="%(prog)s %(version)s")
def command() -> None:
    """Leader election on Apache ZooKeeper: ordered, leased, fenced.

    Where ZooKeeper is, is told by -H/--hosts of each command, by ZKELECT_HOSTS, or by a
    configuration file; credentials by the file alone.
    """
