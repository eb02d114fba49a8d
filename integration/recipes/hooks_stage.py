"""A stage for promotions by hooks: the store and the hooks of the page, agents as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from election.waiting import WITHIN, until
from recipes.reaper import reaping
from recipes.tutorial import commands_of

import zkelect
from zkelect.recipes.hooks import Verb
from zkelect.recipes.operating import ClusterStatus, Promotion
from zkelect.recipes.page import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zkelect.testing import LocalEnsemble

__all__ = ["PAGE", "HookStage", "hooks_staged"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "promotion_hooks.md"
_T: Final = "4"
_OPTIONAL: Final = ("check", "catch-up")
"""Verbs that the program of the page does not know."""


class HookStage:
    """Stores a, b and c, the first one the primary, each with hooks and an agent of its own.

    :ivar folder: of all of it; ``hooks/<name>/<verb>`` may be replaced for a test.
    """

    def __init__(
        self, folder: Path, hosts: str, path: str, options: tuple[str, ...], *names: str
    ) -> None:
        self.folder, self.path, self.names = folder, path, names
        self._hosts, self._options = hosts, options
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self._write_program()
        for name in names:
            self._store("init", str(folder / name), str(folder / names[0]))
            self._link(name)

    def _write_program(self) -> None:
        """Write that of the page."""
        blocks = "".join(commands_of(PAGE))
        found = re.search(r"^cat > toy <<'EOF'\n(.*?)^EOF", blocks, re.DOTALL | re.MULTILINE)
        assert found is not None
        (self.folder / "toy").write_text(found[1])
        (self.folder / "toy").chmod(0o755)

    def _link(self, name: str) -> None:
        made = self.folder / "links" / name
        made.mkdir(parents=True)
        for verb in Verb:
            if verb not in _OPTIONAL:
                (made / verb).symlink_to(self.folder / "toy")

    # --- stores --------------------------------------------------------------------------------

    def _store(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([self.folder / "toy", *words], capture_output=True, check=False)

    def add(self, name: str, row: str) -> bool:
        """Write a row to one store; whether it was taken."""
        return self._store("add", str(self.folder / name), row).returncode == 0

    def state(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / name / "store.json").read_text()))

    def rows(self, name: str) -> list[str]:
        return list(self.state(name)["rows"])

    def stop(self, name: str) -> None:
        self._store("power", str(self.folder / name), "off")

    def start(self, name: str) -> None:
        self._store("power", str(self.folder / name), "on")

    def change(self, name: str, **values: Any) -> None:
        """Change a store behind the back of its agent; nobody writes meanwhile."""
        file = self.folder / name / "store.json"
        new = file.with_name("store.json.by-hand")
        new.write_text(json.dumps({**self.state(name), **values}))
        new.replace(file)

    # --- hooks and agents ------------------------------------------------------------------------

    def hook(self, name: str, verb: str, script: str) -> None:
        """Replace one hook by a shell script, in which ``$GO`` is the one of the page."""
        file = self.folder / "links" / name / verb
        new = file.with_name(f"{verb}.new")
        new.write_text(f"#!/bin/sh\nGO={self.folder}/toy\n{script}\n")
        new.chmod(0o755)
        new.replace(file)

    def begin(self, name: str, *more: str) -> None:
        """Start an agent."""
        words = ["promote", "hooks", "-v", self.path, "--name", name]
        words += ["--address", str(self.folder / name)]
        words += ["--hooks", str(self.folder / "links" / name)]
        words += ["--session-timeout", _T, "--patience", "0.5", "--cool-down", "0.5"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.agents[name] = subprocess.Popen(
                [sys.executable, "-m", "zkelect.cli", *words, *self._options, *more],
                env={**os.environ, "ZKELECT_HOSTS": self._hosts},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        self.agents[name].kill()
        self.agents[name].wait()

    def freeze(self, name: str) -> None:
        self.agents[name].send_signal(signal.SIGSTOP)

    # --- waiting ---------------------------------------------------------------------------------

    def enter(self, session: zkelect.Session) -> None:
        self.promotion = Promotion(session, self.path)
        for name in self.names:
            self.begin(name)
        self.until_primary(self.names[0])
        self.until_follow(self.names[0], *self.names[1:])

    def leave(self) -> None:
        for agent in self.agents.values():
            with suppress(ProcessLookupError):
                agent.kill()
            agent.wait(WITHIN)

    def status(self) -> ClusterStatus:
        return self.promotion.status()

    def until_primary(self, *names: str) -> str:
        """Wait until one of them is the primary, and a change may begin; return it."""

        def steady() -> bool:
            page = self.status().page
            over = page is not None and page.phase is Phase.STEADY and not page.cooling
            return over and page is not None and page.primary in names

        until(steady, f"one of {names} was the primary")
        return str(self.status().primary)

    def until_follow(self, primary: str, *names: str) -> None:
        wanted = str(self.folder / primary)
        until(
            lambda: all(self.state(name)["follows"] == wanted for name in names),
            f"{names} followed {primary}",
        )

    def until_told(self, reason: str) -> None:
        """Wait until it is among the reasons why somebody is not eligible."""
        until(lambda: any(reason in each.reason for each in self.status().verdicts), reason)

    def until_logged(self, *words: str) -> None:
        """Wait until all of that stands in the log of some agent."""

        def logged() -> bool:
            texts = [file.read_text("utf-8", "replace") for file in self.folder.glob("*.log")]
            return any(all(word in text for word in words) for text in texts)

        until(logged, f"{words} was logged")


@contextmanager
def hooks_staged(
    zookeeper: LocalEnsemble, path: str, folder: Path, *options: str
) -> Iterator[HookStage]:
    """Set the stage; options are of all agents."""
    with ExitStack() as stack:
        stack.enter_context(reaping(folder))
        stage = HookStage(folder, zookeeper.hosts, path, options, "a", "b", "c")
        session = stack.enter_context(zkelect.connect(zookeeper.hosts, session_timeout=4.0))
        stack.callback(stage.leave)
        stage.enter(session)
        yield stage
