"""``fence``: how stores are named, and that no password is ever shown."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner
from stores.bearers import make_bearer

from zkelect import stores
from zkelect.cli.fence.addresses import Question, is_secret, opened, shown
from zkelect.cli.fence.naming import find_url
from zkelect.cli.main import command

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = Question(domain="d", timeout=0.2)
ESCAPED = "%40 %2F %3F %23"
SECRETS = ("s3cret", "s3?cret", "s3/cret", "s3:cret")


# --- what is shown of a URL --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql+psycopg://ops@db/billing", "postgresql+psycopg://db/billing"),
        ("postgresql+psycopg://db:5433/b?sslpassword=x", "postgresql+psycopg://db:5433/b"),
        ("rediss://db:6380/0", "rediss://db:6380/0"),
        ("unix:///run/redis.sock?db=0", "unix:///run/redis.sock"),
        ("sqlite:////var/lib/ops@db.sqlite", "sqlite:////var/lib/ops@db.sqlite"),
        ("file:/etc/a:b@c", "file:/etc/a:b@c"),
        ("s3://bucket/key", "s3://bucket/key"),
        ("mongodb://ops:s3cret@db", "mongodb:…"),
        ("s3cret", "…"),
    ],
)
def test_a_url_is_shown_without_user_and_options(url: str, told: str) -> None:
    assert shown(url) == told
    assert shown(told) == told


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "mysql+pymysql", "redis", "mongodb"])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_password_is_shown_however_it_is_written(scheme: str, secret: str) -> None:
    url = f"{scheme}://ops:{secret}@db/billing"
    assert "s3" not in shown(url)
    assert "cret" not in shown(url)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_password_on_the_command_line_is_refused_untold(secret: str) -> None:
    url = f"redis://:{secret}@db/0"
    assert is_secret(url)
    with pytest.raises(click.UsageError, match="environment variable") as refused:
        find_url(url, {}, {})
    assert "cret" not in str(refused.value)
    assert find_url("STORE", {}, {"STORE": url}) == url
    assert find_url("jobs", {"jobs": url}, {}) == url


@pytest.mark.parametrize(
    "url", ["postgresql://db/b?password=x", "mysql://db/b?SSL_PASSPHRASE=x", "unix://:x@/run/s"]
)
def test_a_password_among_the_options_is_one(url: str) -> None:
    assert is_secret(url)


@pytest.mark.parametrize(
    "url", ["postgresql://ops@db:5432/b", "redis://db:6379/0", "file:/a:b@c", "sqlite:////a:b@c"]
)
def test_a_url_without_a_password_may_be_on_the_command_line(url: str) -> None:
    assert not is_secret(url)
    assert find_url(url, {}, {}) == url


@pytest.mark.parametrize("name", ["jobs", "HOME"])
def test_a_name_that_stands_for_no_url_is_told_with_those_that_do(name: str) -> None:
    with pytest.raises(click.UsageError, match=rf"{name!r} is no URL.*\(billing, orders\)"):
        find_url(name, {"orders": "redis://db", "billing": "redis://db"}, {"HOME": "/root"})


# --- stores ----------------------------------------------------------------------------------


def refused(url: str) -> str:
    with pytest.raises(click.UsageError) as told, opened(url, QUESTION) as store:
        store.status()
    return str(told.value)


def test_a_scheme_that_is_no_stores_is_answered_with_those_there_are() -> None:
    told = refused("mongodb://ops:s3cret@db")
    for form in ("postgresql+psycopg://", "mysql+pymysql://", "redis://", "file:/", "s3://"):
        assert form in told
    assert "s3cret" not in told


@pytest.mark.parametrize(
    ("url", "library", "extra"),
    [
        ("postgresql+psycopg://db/b", "sqlalchemy", "postgres"),
        ("mysql+pymysql://db/b", "pymysql", "mysql"),
        ("redis://db/0", "redis", "redis"),
        ("s3://bucket/key", "boto3", "s3"),
    ],
)
def test_a_library_that_is_missing_is_told_with_its_extra(
    url: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("zkelect.stores.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    told = refused(url)
    assert f"needs {library}, which is not installed" in told
    assert f"pip install 'zkelect[{extra}]'" in told


@pytest.mark.parametrize(
    "url", ["postgresql://db:port/b", "postgresql+nothing://db/b", "redis://db/x", "redis://db:0"]
)
def test_a_url_that_cannot_be_read_is_told_with_its_right_form(url: str) -> None:
    assert f"{shown(url)} cannot be read: say {url.partition(':')[0].partition('+')[0]}" in refused(
        url
    )


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "redis"])
@pytest.mark.parametrize("secret", ["s3@cret", "s3/cret", "s3?cret", "s3#cret"])
def test_a_password_that_is_not_escaped_is_told_how_to_be(scheme: str, secret: str) -> None:
    told = refused(f"{scheme}://ops:{secret}@db/billing")
    assert told == f"{scheme}://db/billing: in its user or password, @ / ? # are written {ESCAPED}"


def test_a_driver_that_cannot_wait_is_refused() -> None:
    assert "say postgresql+psycopg://" in refused("postgresql+asyncpg://db/b")


@pytest.mark.parametrize("url", ["sqlite:///nowhere.db", "file:nowhere", "sqlite://", "file:"])
def test_a_file_that_is_not_there_is_told_and_not_made(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no such file" in refused(url)
    assert not list(tmp_path.iterdir())


def test_files_are_named_from_here_or_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stores.SqliteFence("jobs.db", domain="d").claim(make_bearer(5))
    (tmp_path / "conf").write_bytes(b"")
    stores.FileFence("conf", domain="d").claim(make_bearer(6))
    found = []
    for url in (
        "sqlite:///jobs.db",
        f"sqlite+pysqlite:///{tmp_path}/jobs.db",
        "file:conf",
        f"file:{tmp_path}/conf",
        f"file://{tmp_path}/conf",
    ):
        with opened(url, QUESTION) as store:
            mark = store.status()
        assert mark is not None
        found.append(mark.token.czxid)
    assert found == [5, 5, 6, 6, 6]


# --- the command -----------------------------------------------------------------------------


def show(*arguments: str, **env: str) -> Any:
    config = {"ZKELECT_CONFIG": None, "XDG_CONFIG_HOME": "/nonexistent"}
    return CliRunner().invoke(command, ["fence", "show", *arguments], env={**config, **env})


def test_a_mark_is_shown_for_people(tmp_path: Path) -> None:
    stores.SqliteFence(tmp_path / "jobs.db", domain="d").claim(make_bearer(5))
    url = f"sqlite:///{tmp_path}/jobs.db"
    told = show(url, "--domain", "d")
    assert told.exit_code == 0
    assert told.stdout.splitlines() == [
        url,
        "  domain      d",
        "  token       00000000-0000000000000005-1234567890abcdef-ab637ccabb704fdb",
        "  history     generation 0 of lineage 1234567890abcdef",
        "  claimed by  host-a of /elections/d",
    ]


def test_a_claim_that_came_over_the_wire_has_no_holder(tmp_path: Path) -> None:
    stores.SqliteFence(tmp_path / "jobs.db", domain="d").claim(make_bearer(5).token)
    told = show(f"sqlite:///{tmp_path}/jobs.db", "--domain", "d")
    assert "  claimed by  a token over the wire" in told.stdout.splitlines()


def test_marks_are_shown_for_programs(tmp_path: Path) -> None:
    stores.SqliteFence(tmp_path / "jobs.db", domain="d").claim(make_bearer(5))
    url = f"sqlite:///{tmp_path}/jobs.db"
    (mark,) = json.loads(show(url, "--domain", "d", "-o", "json").stdout)
    assert (mark["czxid"], mark["holder"], mark["origin"]) == ("0000000000000005", "host-a", "")
    row = show(url, "--domain", "d", "-o", "tsv").stdout.rstrip("\n").split("\t")
    assert row == ["" if value is None else str(value) for value in mark.values()]
    (none,) = json.loads(show(url, "--domain", "other", "-o", "json").stdout)
    assert none == dict.fromkeys(mark) | {"store": url, "domain": "other"}


def test_what_a_store_says_is_shown_without_what_a_terminal_would_obey(tmp_path: Path) -> None:
    stores.SqliteFence(tmp_path / "jobs.db", domain="d").claim(make_bearer(5, name="a\x1b[2J"))
    told = show(f"sqlite:///{tmp_path}/jobs.db", "--domain", "d").stdout
    assert r"  claimed by  a\x1b[2J of /elections/d" in told.splitlines()
