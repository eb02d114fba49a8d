"""The configuration file: right, or refused with the reason; its secrets are shown nowhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import pytest
from click.testing import CliRunner

import zkelect
from zkelect.cli import config as module
from zkelect.cli.config import ConfigRefused, read_config
from zkelect.cli.connection import Target, reaching
from zkelect.cli.failures import telling_failures

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET: Final = "s3cret"
WHOLE: Final = f"""\
hosts = "zk1:2181,zk2:2181/app"
session_timeout = 10
tick_time = 2.0
acl = ["sasl:ops:cdrwa"]

[digest]
user = "ops"
password = "{SECRET}"

[tls]
ca = "/etc/ssl/zookeeper.pem"
keyfile_password = "{SECRET}"
check_hostname = false

[stores]
billing = "postgresql+psycopg://ops:{SECRET}@db/billing"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration file."""

    def create(text: str | bytes, mode: int = 0o600, name: str = "config.toml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return create


def refused(path: Path) -> str:
    with pytest.raises(ConfigRefused) as refusal:
        read_config(path)
    assert (refusal.value.path, refusal.value.exit_code) == (path, 64)
    message = refusal.value.format_message()
    assert message.startswith(f"{path}: ")
    assert SECRET not in message
    return message.removeprefix(f"{path}: ")


# --- what is in it -------------------------------------------------------------------------------


def test_all_of_it_is_read(write: Callable[..., Path]) -> None:
    found = read_config(write(WHOLE))
    assert found["hosts"] == "zk1:2181,zk2:2181/app"
    assert found["digest"] == {"user": "ops", "password": SECRET}
    assert found["stores"] == {"billing": f"postgresql+psycopg://ops:{SECRET}@db/billing"}


def test_an_empty_one_says_nothing(write: Callable[..., Path]) -> None:
    assert read_config(write("")) == {}


@pytest.mark.parametrize(
    "text",
    [
        "hosts = zk1",
        f"[digest]\npassword: {SECRET}",
        f'[digest]\npassword = "{SECRET}',
        f'[digest]\npassword = "{SECRET}"\npassword = "{SECRET}"',
        "\x00",
        b"\xff\xfe",
        "stores = " + "[" * 5000,
    ],
)
def test_what_is_no_toml_is_refused(write: Callable[..., Path], text: str | bytes) -> None:
    assert refused(write(text)).startswith("is no TOML")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("host = 'zk1'", "host"),
        (f"[digest]\nusername = 'ops'\npassword = '{SECRET}'", "digest.username"),
        ("[tls]\nverify = false", "tls.verify"),
        (f"password = '{SECRET}'", "password"),
        ("[zookeeper]\nhosts = 'zk1'", "zookeeper"),
    ],
)
def test_a_key_that_is_not_known_is_named_with_those_that_are(
    write: Callable[..., Path], text: str, key: str
) -> None:
    message = refused(write(text))
    assert message.startswith(f"there is no key {key}; there are ")
    known = "user, password" if key.startswith("digest") else "ca" if "." in key else "hosts"
    assert known in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts = 7", "hosts must be a text in quotes"),
        ("hosts = ['zk1', 'zk2']", "hosts must be a text in quotes"),
        ("session_timeout = '10'", "session_timeout must be a number"),
        ("session_timeout = true", "session_timeout must be a number"),
        ("tick_time = []", "tick_time must be a number"),
        ("acl = 'sasl:ops:cdrwa'", "acl must be a list"),
        ("digest = 'ops'", "digest must be a table: [digest]"),
        ("stores = 'sqlite:///x'", "stores must be a table: [stores]"),
        ("[stores]\nbilling = 7", "stores.billing must be a text in quotes"),
        ("[tls]\ncheck_hostname = 'no'", "tls.check_hostname must be true or false"),
        ("[tls]\nca = true", "tls.ca must be a text in quotes"),
        ("[sasl]\nuser = {}", "sasl.user must be a text in quotes"),
        ("[digest]\nuser = 'ops'", "[digest] needs a user and a password"),
        (f"[digest]\npassword = '{SECRET}'", "[digest] needs a user and a password"),
        (f"[digest]\nuser = ''\npassword = '{SECRET}'", "[digest] needs a user and a password"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(
    write: Callable[..., Path], text: str, message: str
) -> None:
    assert refused(write(text)) == message


# --- whose it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o660])
@pytest.mark.parametrize(
    "text",
    [
        f"[digest]\nuser = 'ops'\npassword = '{SECRET}'",
        f"[sasl]\nuser = 'ops'\npassword = '{SECRET}'",
        f"[tls]\nkeyfile_password = '{SECRET}'",
        f"[stores]\nbilling = 'redis://:{SECRET}@db/1'",
    ],
    ids=["digest", "sasl", "tls", "stores"],
)
def test_secrets_that_others_can_reach_are_refused(
    write: Callable[..., Path], text: str, mode: int
) -> None:
    path = write(text, mode)
    assert refused(path) == (
        f"holds credentials, and others may read it (mode {mode:04o}): chmod 600 {path}"
    )


def test_a_file_without_secrets_may_be_read_by_all(write: Callable[..., Path]) -> None:
    text = "hosts = 'zk1'\n[tls]\nca = '/etc/ca.pem'\n[sasl]\nmechanism = 'GSSAPI'"
    assert read_config(write(text, 0o644))["hosts"] == "zk1"


def test_secrets_in_somebody_elses_file_are_refused(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(WHOLE)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner != 0:
        assert refused(path) == f"holds credentials, and belongs to somebody else (uid {owner})"
    else:
        assert read_config(path), "what is root's, root has put there"
        os.chown(path, 4321, -1)
        assert refused(path) == "holds credentials, and belongs to somebody else (uid 4321)"


# --- where it is ---------------------------------------------------------------------------------


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_one_that_was_named_must_be_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.toml") == "cannot be read: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path) == "cannot be read: Is a directory"


def test_one_that_may_not_be_read_is_refused(
    home: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold our credentials: without them we would go on as nobody."""
    path = write("hosts = 'zk1'", name=".config/zkelect/config.toml")
    monkeypatch.setattr(Path, "open", _deny)
    with pytest.raises(ConfigRefused, match="cannot be read: Permission denied") as refusal:
        read_config(None)
    assert refusal.value.path == path == home / ".config/zkelect/config.toml"


def _deny(*_: object, **__: object) -> Any:
    raise PermissionError(13, "Permission denied")


def test_ones_own_is_found_at_home(home: Path, write: Callable[..., Path]) -> None:
    write("hosts = 'zk-home'", name=".config/zkelect/config.toml")
    assert read_config(None)["hosts"] == "zk-home"
    assert home.is_dir()


def test_where_desktops_keep_theirs_rules_over_home(
    home: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("hosts = 'zk-home'", name=".config/zkelect/config.toml")
    write("hosts = 'zk-xdg'", name="xdg/zkelect/config.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    assert read_config(None)["hosts"] == "zk-xdg"


def test_with_none_at_home_the_systems_is_read(
    home: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = write("hosts = 'zk-system'", name="etc/zkelect/config.toml")
    monkeypatch.setattr(module, "_usual_places", lambda: (home / "none.toml", system))
    assert read_config(None)["hosts"] == "zk-system"


def test_a_home_that_may_not_be_entered_holds_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exists(path: Path) -> bool:
        if path.is_relative_to(home):
            raise PermissionError(13, "Permission denied", str(path))
        return False

    monkeypatch.setattr(Path, "exists", exists)
    assert read_config(None) == {}


def test_who_has_no_home_has_the_systems_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert [str(place) for place in module._usual_places()] == ["/etc/zkelect/config.toml"]


# --- what becomes of it --------------------------------------------------------------------------


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Target | int]:
    """Run a command that reaches ZooKeeper, and return its target or its exit status."""
    found: list[Target] = []

    @click.command()
    @reaching
    def look(target: Target) -> None:
        found.append(target)

    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")

    def run(*words: str, **env: str) -> Target | int:
        found.clear()
        with telling_failures():
            result = CliRunner().invoke(look, words, env=env, standalone_mode=False)
            if result.exception is not None:
                raise result.exception
        return found[0]

    return run


def test_the_command_line_rules_then_the_environment_then_the_file(
    write: Callable[..., Path], targets: Callable[..., Target]
) -> None:
    path = str(write("hosts = 'zk-file'\nsession_timeout = 7.0"))
    assert targets("--config", path).hosts == "zk-file"
    assert targets("--config", path, ZKELECT_HOSTS="zk-env").hosts == "zk-env"
    assert targets("--config", path, "-H", "zk-typed", ZKELECT_HOSTS="zk-env").hosts == "zk-typed"
    assert targets(ZKELECT_CONFIG=path).session_timeout == 7.0
    assert targets("--session-timeout", "3", ZKELECT_CONFIG=path).session_timeout == 3.0
    assert targets(ZKELECT_HOSTS="", ZKELECT_CONFIG=path).hosts == "zk-file", "empty is not set"


def test_a_target_is_all_that_connect_takes(
    write: Callable[..., Path], targets: Callable[..., Target]
) -> None:
    target = targets("--config", str(write(WHOLE)), "--timeout", "4")
    assert target == Target(
        hosts="zk1:2181,zk2:2181/app",
        session_timeout=10,
        tick_time=2.0,
        auth=zkelect.Digest(user="ops", password=SECRET),
        tls=zkelect.Tls(ca="/etc/ssl/zookeeper.pem", keyfile_password=SECRET, check_hostname=False),
        acl=("sasl:ops:cdrwa",),
        timeout=4.0,
        stores={"billing": f"postgresql+psycopg://ops:{SECRET}@db/billing"},
    )
    assert SECRET not in f"{target!r} {target}"


def test_sasl_takes_its_place(write: Callable[..., Path], targets: Callable[..., Target]) -> None:
    text = f"hosts = 'zk1'\n[sasl]\nuser = 'ops'\npassword = '{SECRET}'"
    target = targets("--config", str(write(text)))
    assert target.auth == zkelect.Sasl(user="ops", password=SECRET)
    assert SECRET not in repr(target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[sasl]\nmechanism = 'GSSAPI'\n[digest]\nuser = 'ops'\npassword = 's3cret'\n",
        "[sasl]\nmechanism = 'PLAIN'",
        "[sasl]\nuser = 'ops'",
    ],
    ids=["no hosts", "digest and sasl", "mechanism", "no password"],
)
def test_what_cannot_be_is_wrong_usage(
    write: Callable[..., Path],
    targets: Callable[..., Target],
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hosts = "" if not text else "hosts = 'zk1'\n"
    with pytest.raises(click.exceptions.Exit) as refusal:
        targets("--config", str(write(hosts + text)))
    assert refusal.value.exit_code == 64
    assert SECRET not in capsys.readouterr().err


def test_a_file_is_made_private_by_the_advice_it_gives(write: Callable[..., Path]) -> None:
    path = write(WHOLE, 0o644)
    mode = int(refused(path).split("chmod ")[1].split()[0], 8)
    path.chmod(mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_config(path)
