"""docs/cron.md: its program runs as it stands there, only sooner, and on this server."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from election.waiting import WITHIN, until

if TYPE_CHECKING:
    import pytest

    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[2] / "docs" / "cron.md"


def program(hosts: str) -> str:
    """Return the page's program, with another server, each second, and a way to stop it."""
    text = PAGE.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    for old, new in (
        ("zk1,zk2,zk3/app", hosts),
        ("30 2 * * *", "* * * * * *"),
        ("threading.Event()", "STOP"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_pages_program_runs_its_job(
    zookeeper: LocalEnsemble, capsys: pytest.CaptureFixture[str]
) -> None:
    stop, told = threading.Event(), ""
    names: dict[str, Any] = {"STOP": stop, "__name__": "page"}
    running = threading.Thread(target=exec, args=(program(zookeeper.hosts), names))
    running.start()

    def has_run() -> bool:
        nonlocal told
        told += capsys.readouterr().out
        return "the logs of" in told

    until(has_run, "the job has run")
    stop.set()
    running.join(WITHIN)
    assert not running.is_alive()
    assert "with 00000001-" in told
