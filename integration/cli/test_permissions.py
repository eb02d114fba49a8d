"""H76: a path that we may not touch is told with path, permission and who we came as; 77."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from kazoo.security import make_acl, make_digest_acl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.command import Ended
    from conftest import Operator

TIMES: Final = ("--session-timeout", "2")
LOOKING: Final = (("status",), ("history",), ("watch",))
OPERATING: Final = (
    ("pause", "--yes"),
    ("resume", "--yes"),
    ("resign", "--yes"),
    ("switchover", "--to", "b", "--yes"),
    ("evict", "b", "--yes"),
)
RUNNING: Final = (("run", "--", "true"),)


@pytest.fixture
def forbidden(operator: Operator, path: str) -> str:
    """An election that only ops may touch, its record included."""
    only_ops = [make_digest_acl("ops", "secret", all=True)]
    operator.kazoo.create(path, acl=only_ops)
    operator.kazoo.create(f"{path}.zkelect", b"{}", acl=only_ops)
    for page in ("term", "history", "switchover", "evict"):
        operator.kazoo.add_auth("digest", "ops:secret")
        operator.kazoo.create(f"{path}.zkelect/{page}", acl=only_ops)
    return path


@pytest.fixture
def stranger(tmp_path: Path) -> str:
    """A configuration with credentials that the servers accept, and the ACL does not name."""
    config = tmp_path / "config.toml"
    config.touch(0o600)
    config.write_text('[digest]\nuser = "mallory"\npassword = "s3cret"\n')
    return str(config)


def words(command: tuple[str, ...], path: str, *options: str) -> tuple[str, ...]:
    return (command[0], path, *TIMES, *options, *command[1:])


def assert_denied(ended: Ended, path: str, as_whom: str) -> None:
    assert (ended.status, ended.out) == (77, ""), ended.err
    message = next(line for line in reversed(ended.err.splitlines()) if "permission" in line)
    assert message.startswith(f"zkelect: {path}")
    assert "permission to " in message
    assert " is missing; " in message
    assert f"authenticated as {as_whom}." in message


@pytest.mark.parametrize(
    "command", [*LOOKING, *OPERATING, *RUNNING], ids=lambda command: command[0]
)
def test_h76_as_nobody(
    zkelect_command: Callable[..., Ended], forbidden: str, command: tuple[str, ...]
) -> None:
    ended = zkelect_command(*words(command, forbidden))
    assert_denied(ended, forbidden, "nobody (no auth was given)")


@pytest.mark.parametrize(
    "command", [*LOOKING, *OPERATING, *RUNNING], ids=lambda command: command[0]
)
def test_h76_as_somebody_else_by_a_wrong_password_too(
    zkelect_command: Callable[..., Ended],
    forbidden: str,
    stranger: str,
    command: tuple[str, ...],
) -> None:
    ended = zkelect_command(*words(command, forbidden, "--config", stranger))
    assert_denied(ended, forbidden, "digest")
    assert "s3cret" not in ended.err


def test_h76_the_parent_that_we_may_not_create_in(
    zkelect_command: Callable[..., Ended], operator: Operator, path: str
) -> None:
    readable = [make_acl("world", "anyone", read=True)]
    operator.kazoo.create(path, acl=readable)
    ended = zkelect_command(*words(RUNNING[0], f"{path}/below"))
    assert_denied(ended, path, "nobody (no auth was given)")


def test_h76_what_may_be_read_and_not_written(
    zkelect_command: Callable[..., Ended], operator: Operator, path: str
) -> None:
    """To look is allowed, to act is not."""
    record = b'{"uuid": "%s", "generation": 1, "paused": null}' % (b"0" * 32)
    readable = [make_acl("world", "anyone", read=True)]
    operator.kazoo.create(path, acl=readable)
    operator.kazoo.create(f"{path}.zkelect", record, acl=readable)
    assert zkelect_command(*words(("status",), path)).status == 0
    ended = zkelect_command(*words(OPERATING[0], path))
    assert_denied(ended, path, "nobody (no auth was given)")
