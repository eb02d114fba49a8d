"""What a pool is to do under a page, and the file that pgbouncer includes."""

from __future__ import annotations

from pathlib import Path

import pytest

import zkelect
from zkelect.recipes.member import Member
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.pgbouncer.aim import Address, Aim, aim_of
from zkelect.recipes.pgbouncer.database import Database
from zkelect.recipes.pgbouncer.listing import Listing
from zkelect.recipes.resource import Unfit

MEMBERS = (
    Member(name="a", address="host=10.0.0.1 port=5433"),
    Member(name="b", address="host=/run/postgresql"),
)
FIRST = Address("10.0.0.1", 5433)


def page(phase: Phase, primary: str | None = "a") -> Page:
    return Page(phase=phase, serial=7, token="t", coordinator="c", primary=primary, members=MEMBERS)


# --- what is to be so --------------------------------------------------------------------------


@pytest.mark.parametrize("phase", Phase)
def test_clients_wait_until_the_primary_is_open(phase: Phase) -> None:
    assert aim_of(page(phase)) == Aim(7, FIRST, held=phase is not Phase.STEADY)


@pytest.mark.parametrize("found", [None, page(Phase.PROMOTE, None), page(Phase.STEADY, "c")])
def test_before_there_was_a_primary_nothing_is_done(found: Page | None) -> None:
    assert aim_of(found) is None


def test_the_port_may_be_left_out() -> None:
    assert Address.parse("host=/run/postgresql") == Address("/run/postgresql", 5432)


@pytest.mark.parametrize(
    "conninfo", ["", "port=1", "host=a,b", "host='a b'", "nonsense", "host=a port=x"]
)
def test_an_address_that_pgbouncer_cannot_have_is_refused(conninfo: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="host=… port=…"):
        Address.parse(conninfo)


# --- databases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("app", "app = host=10.0.0.1 port=5433"),
        ("app=dbname=x pool_size=5", "app = host=10.0.0.1 port=5433 dbname=x pool_size=5"),
        (" app = dbname=x ", "app = host=10.0.0.1 port=5433 dbname=x"),
    ],
)
def test_a_database_is_a_line_of_the_file(text: str, line: str) -> None:
    assert Database.parse(text).line(FIRST) == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'app', or"),
        ("=dbname=x", "'app', or"),
        ("*", "the name of one database"),
        ("a b", "the name of one database"),
        ("a" * 61, "the name of one database"),
        ("app=host=10.0.0.9", "without host and port"),
        ("app=dbname=x port = 1", "without host and port"),
        ("app=dbname=x\nother = host=h", "without host and port"),
        ("app=user=me password=geheim", "no password"),
        ("app=host=h password=geheim", "no password"),
    ],
)
def test_another_text_is_refused(text: str, expected: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match=expected) as refused:
        Database.parse(text)
    assert "geheim" not in str(refused.value)


# --- the file ----------------------------------------------------------------------------------


def test_the_file_says_where_and_whether_clients_are_held(tmp_path: Path) -> None:
    listing = Listing(tmp_path / "file.ini", [Database("app"), Database("b", "dbname=x")])
    assert not listing.held
    assert listing.write(FIRST, held=True)
    assert listing.held
    assert not listing.write(FIRST, held=True)
    assert listing.write(FIRST, held=False)
    assert not listing.held
    assert listing.file.read_text().splitlines()[1:] == [
        "[databases]",
        "app = host=10.0.0.1 port=5433",
        "b = host=10.0.0.1 port=5433 dbname=x",
    ]
    assert listing.file.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["file.ini"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    listing = Listing(tmp_path / "none" / "file.ini", [Database("app")])
    with pytest.raises(Unfit, match=r"none/file\.ini cannot be written .*No such file"):
        listing.write(FIRST, held=False)
