"""ZooKeeper for the demo: what to type when this machine has none, and doing it on request."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from zkelect.testing import ServerNotFound, install
from zkelect.testing.distribution import INSTALL_COMMANDS

__all__ = ["explain_missing", "install_with_progress"]


def explain_missing(missing: ServerNotFound) -> str:
    """Return what was looked for, and the command to type."""
    looked = "\n".join(f"    {place}: {problem}" for place, problem in missing.looked.items())
    by_hand = " && ".join(" ".join(command) for command in INSTALL_COMMANDS)
    return (
        f"no ZooKeeper server was found on this machine:\n{looked}\n"
        "On Debian or Ubuntu let the demo install one, as root:\n"
        "    zkelect demo --install\n"
        "or type, as root:\n"
        f"    {by_hand}\n"
        "Elsewhere unpack a release of ZooKeeper 3.5 or newer, set ZOOKEEPER_HOME to its\n"
        "folder, and install Java."
    )


def install_with_progress(console: Console) -> None:
    """Install ZooKeeper unless this machine has one, and show how it goes.

    :param console: a terminal gets what is run, and one line that changes; anything else gets
        every line.
    :raises ServerNotFound: only root on Debian or Ubuntu can.
    :raises InstallFailed: apt-get could not.
    """
    if not console.is_interactive:
        install(lambda line: console.out(line, highlight=False))
        return
    with console.status("Looking for ZooKeeper", spinner="line") as status:

        def show(line: str) -> None:
            if line.startswith("$ "):
                console.print(Text(line))
            status.update(_cut(line, console.width))

        install(show)


def _cut(line: str, width: int) -> Text:
    """One line, whatever apt-get prints: beside the spinner and a space."""
    return Text(line.expandtabs()[: width - 3], no_wrap=True, overflow="crop")
