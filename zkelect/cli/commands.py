"""What commands there are, and where: known without importing any of them."""

from __future__ import annotations

from typing import Final

import attrs

__all__ = ["SECTIONS", "Entry", "find"]


@attrs.frozen
class Entry:
    """One command.

    :ivar module: where it is. :ivar attribute: its name there.
    :ivar help: the first line of its help, so that the list needs no import.
    """

    name: str
    module: str
    attribute: str
    help: str


SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Run": (
        Entry(
            "run",
            "zkelect.cli.run.command",
            "run",
            "Run a command only while leading, and kill all of it when the lease ends.",
        ),
    ),
    "Look": (
        Entry(
            "status",
            "zkelect.cli.looking.status",
            "status",
            "Show one election: who leads, who waits for whom, and what is odd.",
        ),
        Entry(
            "list",
            "zkelect.cli.looking.listing",
            "list_elections",
            "List the elections below a znode: who leads each, and how many stand.",
        ),
        Entry(
            "watch",
            "zkelect.cli.looking.watch",
            "watch",
            "Print a line at each change of leader, and run a program for it.",
        ),
        Entry(
            "history",
            "zkelect.cli.looking.history",
            "history",
            "Show the terms that were, why each ended, and what operators did.",
        ),
        Entry(
            "top",
            "zkelect.cli.looking.top",
            "top",
            "Follow many elections on one screen, those without a leader first.",
        ),
    ),
    "Operate": (
        Entry(
            "pause",
            "zkelect.cli.pausing",
            "pause",
            "Let nobody new be elected; who leads, stays.",
        ),
        Entry(
            "resume",
            "zkelect.cli.pausing",
            "resume",
            "Let leaders be elected again, whoever paused the election.",
        ),
        Entry("switchover", "zkelect.cli.switching", "switchover", "Let another candidate lead."),
        Entry(
            "resign",
            "zkelect.cli.switching",
            "resign",
            "Let the next in the queue lead in the leader's place.",
        ),
        Entry(
            "evict",
            "zkelect.cli.evict",
            "evict",
            "Remove a candidate from the queue, once it can lead no more.",
        ),
        Entry(
            "fence",
            "zkelect.cli.fence.command",
            "fence",
            "Look at the marks of guarded stores, and adopt them.",
        ),
        Entry(
            "promote",
            "zkelect.cli.promote.command",
            "promote",
            "Keep one primary among replicated servers: promote, demote, re-join.",
        ),
    ),
    "Check": (
        Entry(
            "doctor",
            "zkelect.cli.doctor.command",
            "doctor",
            "Examine servers, session, this host and an election; say what to do.",
        ),
    ),
    "Try": (
        Entry(
            "demo",
            "zkelect.cli.demo.command",
            "demo",
            "Watch an election on a real ZooKeeper, for about half a minute.",
        ),
        Entry(
            "completion",
            "zkelect.cli.completion",
            "completion",
            "Print a script that lets a shell complete commands and options.",
        ),
    ),
}
"""The commands as the help lists them: title of each section, and what is in it."""


def find(name: str) -> Entry | None:
    """Return the command of this name, None when there is none."""
    entries = (entry for section in SECTIONS.values() for entry in section)
    return next((entry for entry in entries if entry.name == name), None)
