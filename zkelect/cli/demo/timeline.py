"""The demo for people: a timeline that can be read as it grows, and an account at its end."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from zkelect.cli.demo.board import Board
from zkelect.cli.demo.event import Event
from zkelect.cli.demo.sentences import ACTS, figures, say, shorten

__all__ = ["Timeline"]

_COLOURS: Final = ("cyan", "magenta", "yellow")
_STYLES: Final = {
    "elected": "bold green",
    "refused": "bold",
    "frozen": "bold",
    "killed": "bold",
    "accepted": "bold red",
    "lost": "red",
    "queued": "dim",
    "connected": "dim",
    "servers_launched": "dim",
    "servers_ready": "dim",
}
_UNWRAPPED: Final = 1000
"""Columns of a file or pipe: whoever reads it can wrap lines, and nobody can join them."""


class Timeline:
    """Shows events as sentences, each with the seconds since the first one.

    On a terminal a line below tells who leads right now; elsewhere lines are plain.

    :param console: usually that of standard output.
    """

    def __init__(self, console: Console) -> None:
        self._console: Final = console
        self._start: float | None = None
        self._board = Board()
        self._live: Live | None = None
        self._names: dict[str, str] = {}
        self._row = 0
        self._writing = ""
        self._refused = ""
        self._explained = False
        if not console.is_terminal:
            console.width = _UNWRAPPED

    def show(self, event: Event) -> None:
        """Show one event, if people need to see it."""
        self._start = event.at if self._start is None else self._start
        self._board.follow(event)
        match event.kind:
            case "act_began":
                self._begin_act(event["act"])
            case "summary":
                self.close()
                self._conclude(event)
            case _ if self._is_told(event):
                self._print(event, event.at - self._start)
        self._remember(event)

    def close(self) -> None:
        """Take the line at the bottom away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    # --- within ---------------------------------------------------------------------------

    def _is_told(self, event: Event) -> bool:
        """Of a term's rows only the first; of a refused leader's end nothing more."""
        match event.kind:
            case "committed":
                return str(event["token"]) != self._writing
            case "lost":
                return str(event["token"]) != self._refused
        return True

    def _remember(self, event: Event) -> None:
        match event.kind:
            case "committed":
                self._row, self._writing = event["row"], event["token"]
            case "check_failed":
                self._refused = event["token"]

    def _begin_act(self, number: int) -> None:
        title, promise = ACTS[number]
        self._console.print()
        self._console.print(Text.assemble((f"{number}  {title}", "bold"), f"\n   {promise}"))
        if self._live is None and self._console.is_interactive:
            self._live = Live(self._board, console=self._console, transient=True)
            self._live.start()

    def _print(self, event: Event, seconds: float) -> None:
        sentence = say(event, last=self._row)
        if sentence is None:
            return
        who = event.name or ("server" if event.kind.startswith("servers") else "")
        style = _STYLES.get(event.kind, "")
        self._line(f"{seconds:.1f}", Text(who, self._colour(who)), Text(sentence, style))
        if event.kind == "elected" and not self._explained:
            self._explain(event["token"])
        if event.kind == "refused":
            self._detail("token", event["token"])
            self._detail("mark", event["mark"])

    def _explain(self, token: str) -> None:
        self._explained = True
        self._detail("token", token)
        self._detail("", f"{shorten(token)} is generation and czxid, higher with each leader")

    def _detail(self, label: str, text: str) -> None:
        self._line("", Text(label, "dim"), Text(text, "dim"))

    def _line(self, seconds: str, who: Text, text: Text) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=5, justify="right", style="dim")
        grid.add_column(width=6)
        grid.add_column(overflow="fold")
        grid.add_row(seconds, who, text)
        self._console.print(grid)

    def _colour(self, name: str) -> str:
        if not name.startswith("server"):
            self._names.setdefault(name, _COLOURS[len(self._names) % len(_COLOURS)])
        return self._names.get(name, "dim")

    def _conclude(self, summary: Event) -> None:
        self._console.print()
        self._console.print(Text("The log, read again", "bold"))
        for what, figure, remark in figures(summary):
            self._figure(what, figure, remark)
        self._console.print()
        if summary["ok"]:
            self._console.print(Text("All as promised.", "bold green"))
        for problem in summary["problems"]:
            self._console.print(Text(f"NOT as promised: {problem}", "bold red"))

    def _figure(self, what: str, figure: str, remark: str) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=22)
        grid.add_column(width=6, justify="right", style="bold")
        grid.add_column(style="dim")
        grid.add_row(f"   {what}", figure, remark)
        self._console.print(grid)
