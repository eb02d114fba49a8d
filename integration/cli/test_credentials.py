"""A password stands in a file of its owner's: not in ``ps``, not in the log, not in a message."""

from __future__ import annotations

import base64
import hashlib
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from cli.command import NOBODYS
from kazoo.security import make_digest_acl

from zkelect.testing.server import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.command import Ended, Running
    from conftest import Operator

    from zkelect.testing import LocalEnsemble

SECRET: Final = "hunter2-s3cret"
FORMS: Final = (
    SECRET,
    base64.b64encode(f"ops:{SECRET}".encode()).decode(),
    base64.b64encode(hashlib.sha1(f"ops:{SECRET}".encode()).digest()).decode(),  # noqa: S324  # ZooKeeper's
)
"""The password, and what would let somebody come as its owner."""

DOCTOR: Final = ("doctor", "--session-timeout", "3.3", "--watch-host", "60")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.touch(0o600)
    path.write_text(
        f'[digest]\nuser = "ops"\npassword = "{SECRET}"\n\n'
        f'[stores]\nbilling = "redis://:{SECRET}@127.0.0.1:1/0"\n'
    )
    return path


@pytest.fixture
def guarded(operator: Operator, path: str) -> str:
    """An election that only ops may read."""
    operator.kazoo.create(path, acl=[make_digest_acl("ops", SECRET, all=True)])
    return path


def test_it_is_not_in_ps_and_not_in_the_log_while_it_is_used(
    begin: Callable[..., Running],
    config: Path,
    guarded: str,
    zookeeper: LocalEnsemble,
    eventually: Callable[[Callable[[], object], str], None],
) -> None:
    running = begin(*DOCTOR, guarded, "-vv", ZKELECT_CONFIG=str(config))
    eventually(lambda: _is_at_work(ask(zookeeper.hosts, "cons")), "its session is kept")
    pid = str(running.process.pid)
    listed = subprocess.run(
        ["ps", "-ww", "e", "-o", "args=", "-p", pid], capture_output=True, text=True, check=True
    ).stdout
    environment = Path(f"/proc/{pid}/environ").read_text("utf-8", "replace")
    running.signal(signal.SIGINT)
    ended = running.end()
    assert "doctor" in listed
    assert "scheme='digest'" in ended.err, "it was sent, and logged that it was"
    for place in (listed, environment, ended.out, ended.err):
        assert not [form for form in FORMS if form in place]


def _is_at_work(connections: str) -> bool:
    """Whether its session is kept alive; the first ones are opened and closed at once."""
    return re.search(r"lop=PING,.*to=3300,", connections) is not None


def test_it_lets_us_in(zkelect_command: Callable[..., Ended], config: Path, guarded: str) -> None:
    words = ("status", guarded, "--session-timeout", "2")
    assert zkelect_command(*words).status == 77
    assert zkelect_command(*words, "--config", str(config)).status == 0


@pytest.mark.parametrize("verbose", [(), ("-vv",)], ids=["quiet", "-vv"])
def test_a_wrong_one_is_a_missing_permission_and_is_not_shown(
    zkelect_command: Callable[..., Ended],
    config: Path,
    guarded: str,
    verbose: tuple[str, ...],
) -> None:
    config.write_text(config.read_text().replace('"ops"', '"mallory"'))
    ended = zkelect_command(
        "status", guarded, "--session-timeout", "2", "--config", str(config), *verbose
    )
    assert ended.status == 77
    assert "authenticated as digest" in ended.err
    assert SECRET not in ended.err


@pytest.mark.parametrize("mode", [0o644, 0o640])
@pytest.mark.parametrize("command", [("status",), ("pause", "--yes"), ("doctor",)])
def test_a_file_that_others_can_read_stops_everything(
    zkelect_command: Callable[..., Ended],
    config: Path,
    mode: int,
    command: tuple[str, ...],
) -> None:
    config.chmod(mode)
    with socket.create_server((NOBODYS, 0)) as listener:
        listener.setblocking(False)
        hosts = f"{NOBODYS}:{listener.getsockname()[1]}"
        ended = zkelect_command(
            command[0], "/elections/a", "-H", hosts, "--config", str(config), *command[1:]
        )
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert (ended.status, ended.out) == (64, "")
    assert f"chmod 600 {config}" in ended.err
    assert SECRET not in ended.err


def test_a_file_that_was_misspelt_is_not_quoted(
    zkelect_command: Callable[..., Ended], config: Path
) -> None:
    config.write_text(f"[digest]\nuser = ops\npassword = {SECRET}\n")
    ended = zkelect_command("status", "/elections/a", "--config", str(config), "-vv")
    assert ended.status == 64
    assert "is no TOML" in ended.err
    assert SECRET not in ended.err
