"""``fence show`` and ``fence adopt``: marks of real stores, and an ensemble that was wiped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until
from sqlalchemy import create_engine

import zkelect
from zkelect import stores

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.command import Ended, Running
    from conftest import Actor, Operator

QUICK = ("--session-timeout", "2")
PASSWORD = "s3cret"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def fence(database: Path) -> stores.SqliteFence:
    return stores.SqliteFence(database, domain="billing")


@pytest.fixture
def config(tmp_path: Path, database: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(
        "[stores]\n"
        f'jobs = "sqlite:///{database}"\n'
        f'db = "postgresql+psycopg://ops:{PASSWORD}@127.0.0.1:1/billing"\n'
    )
    path.chmod(0o600)
    return path


def claimed(cast: Callable[..., Actor], fence: stores.SqliteFence) -> stores.Mark:
    """Lead once, claim, and leave."""
    a = cast("a")
    fence.claim(a.lead())
    assert a.election.stop(WITHIN), "its znode is gone"
    mark = fence.status()
    assert mark is not None
    return mark


def wipe(operator: Operator, path: str) -> None:
    """Lose the history, as an ensemble does that is replaced."""
    for each in (path, f"{path}.zkelect"):
        operator.kazoo.delete(each, recursive=True)


# --- show ------------------------------------------------------------------------------------


def test_marks_are_shown_of_stores_of_several_kinds_and_by_name(
    cast: Callable[..., Actor],
    fence: stores.SqliteFence,
    config: Path,
    tmp_path: Path,
    zkelect_command: Callable[..., Ended],
    path: str,
) -> None:
    mark = claimed(cast, fence)
    engine = create_engine(f"sqlite:///{tmp_path}/other.db")
    stores.SqlFence(engine, domain="billing").claim(mark.token)
    engine.dispose()
    file = stores.FileFence(tmp_path / "leader.conf", domain="billing")
    file.claim(mark.token)
    file.replace(mark.token, b"host-a")
    shown = zkelect_command(
        *("fence", "show", "jobs", "OTHER", f"file:{tmp_path}/leader.conf"),
        *("--domain", "billing", "--config", str(config), "-o", "json"),
        OTHER=f"sqlite:///{tmp_path}/other.db",
        ZKELECT_HOSTS=None,  # ZooKeeper is not asked
    )
    assert shown.status == 0, shown.err
    found = json.loads(shown.out)
    assert [each["token"] for each in found] == [str(mark.token)] * 3
    assert found[0] == {
        "store": f"sqlite:///{tmp_path}/jobs.db",
        "domain": "billing",
        "token": str(mark.token),
        "lineage": mark.token.lineage,
        "generation": 1,
        "czxid": f"{mark.token.czxid:016x}",
        "election": path,
        "holder": "a",
        "origin": "",
    }


def test_a_domain_that_nobody_has_claimed_is_told(
    cast: Callable[..., Actor],
    fence: stores.SqliteFence,
    database: Path,
    zkelect_command: Callable[..., Ended],
) -> None:
    claimed(cast, fence)
    shown = zkelect_command("fence", "show", f"sqlite:///{database}", "--domain", "other")
    assert shown.status == 0
    assert shown.out.splitlines()[1:] == ["  domain      other", "  claimed by  nobody"]


def test_one_store_that_cannot_be_asked_keeps_no_other_from_being_shown(
    cast: Callable[..., Actor],
    fence: stores.SqliteFence,
    config: Path,
    zkelect_command: Callable[..., Ended],
) -> None:
    mark = claimed(cast, fence)
    shown = zkelect_command(
        "fence", "show", "db", "jobs", "--domain", "billing", "--config", str(config)
    )
    assert shown.status == os.EX_UNAVAILABLE
    assert f"  token       {mark.token}" in shown.out.splitlines()
    assert "127.0.0.1:1/billing" in shown.err
    assert PASSWORD not in shown.out + shown.err


def test_a_password_on_the_command_line_is_refused_and_not_repeated(
    zkelect_command: Callable[..., Ended],
) -> None:
    url = f"postgresql+psycopg://ops:{PASSWORD}@127.0.0.1:1/billing"
    refused = zkelect_command("fence", "show", url, "--domain", "billing")
    assert refused.status == os.EX_USAGE
    assert "[stores]" in refused.err
    assert PASSWORD not in refused.err


def test_a_password_is_in_no_argument_of_any_process(
    begin: Callable[..., Running], tmp_path: Path
) -> None:
    """While it waits for a store that does not answer, ``ps`` shows what everybody sees."""
    pipe = tmp_path / "config.toml"
    os.mkfifo(pipe, 0o600)
    running = begin("fence", "show", "db", "--domain", "billing", "--config", str(pipe))
    with pipe.open("w") as config:  # it reads its configuration, so it runs
        arguments = Path(f"/proc/{running.process.pid}/cmdline").read_bytes()
        config.write(f'[stores]\ndb = "redis://:{PASSWORD}@127.0.0.1:1/0"\n')
    ended = running.end()
    assert ended.status == os.EX_UNAVAILABLE, ended.err
    assert b"fence\0show\0db\0" in arguments
    assert PASSWORD.encode() not in arguments
    assert PASSWORD not in ended.out + ended.err


# --- adopt -----------------------------------------------------------------------------------


def test_after_a_wipe_the_marks_are_adopted_and_the_next_leader_is_accepted(
    cast: Callable[..., Actor],
    fence: stores.SqliteFence,
    operator: Operator,
    config: Path,
    zkelect_command: Callable[..., Ended],
    path: str,
) -> None:
    mark = claimed(cast, fence)
    wipe(operator, path)
    b = cast("b")
    with pytest.raises(zkelect.LineageMismatch):
        fence.claim(b.lead())
    b.election.stop()
    until(lambda: not operator.nodes(path), "nobody stands")
    told = ("--domain", "billing", "--config", str(config), "--reason", "restored", "--by", "ada")
    asked = zkelect_command("fence", "adopt", path, "jobs", *told, *QUICK)
    assert asked.status == os.EX_USAGE
    assert "say --yes" in asked.err
    done = zkelect_command("fence", "adopt", path, "jobs", *told, *QUICK, "--yes", "-o", "json")
    assert done.status == 0, done.err
    assert json.loads(done.out) == {"path": path, "lineage": mark.token.lineage, "generation": 2}
    assert f"  token       {mark.token}" in done.err.splitlines()
    fence.claim(cast("c").lead())
    (act,) = (each for each in b.election.history() if isinstance(each, zkelect.Act))
    assert str(act) == f"adopt '{mark.token}' by 'ada': restored"


def test_nothing_is_adopted_while_somebody_leads(
    cast: Callable[..., Actor],
    fence: stores.SqliteFence,
    operator: Operator,
    database: Path,
    zkelect_command: Callable[..., Ended],
    path: str,
) -> None:
    claimed(cast, fence)
    wipe(operator, path)
    b = cast("b")
    term = b.lead()
    url = f"sqlite:///{database}"
    refused = zkelect_command("fence", "adopt", path, url, "--domain", "billing", *QUICK, "-y")
    assert refused.status == 1
    assert "'b'" in refused.err
    assert term.check() == term.token


def test_a_store_without_a_mark_is_nothing_to_adopt(
    cast: Callable[..., Actor],
    fence: stores.SqliteFence,
    database: Path,
    zkelect_command: Callable[..., Ended],
    path: str,
) -> None:
    claimed(cast, fence)
    url = f"sqlite:///{database}"
    none = zkelect_command("fence", "adopt", path, url, "--domain", "other", *QUICK, "-y")
    assert none.status == os.EX_USAGE
    assert "at least one store that has a mark" in none.err
    fits = zkelect_command("fence", "adopt", path, url, "--domain", "billing", *QUICK, "-y")
    assert fits.status == 1
    assert none.out == fits.out == ""
