"""Where servers are, and what members may be called: refused before anything is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from psycopg.conninfo import conninfo_to_dict

from zkelect import InvalidArgument
from zkelect.recipes.member import Member
from zkelect.recipes.postgres import Place, Postgres
from zkelect.recipes.postgres.naming import check_name, slot_of

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"


def place(**changes: object) -> Place:
    fields = {"data_directory": "/data", "local": "host=/run", "credentials": "user=postgres"}
    return Place(**{**fields, **changes})  # type: ignore[arg-type]  # what is wrong is the test


@pytest.mark.parametrize("field", ["local", "credentials"])
@pytest.mark.parametrize(
    "conninfo", [f"host=a password={SECRET}", f"postgresql://me:{SECRET}@a", f"me:{SECRET} = 1 ="]
)
def test_a_password_is_refused_and_not_shown(field: str, conninfo: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        place(**{field: conninfo})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["10.0.0.1:5432", "port=5432", f"host=a password={SECRET}", "host"]
)
def test_an_address_by_which_nobody_gets_there_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Postgres(Member(name="a", address=address), place(), domain="/d")
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("host=::1 port=5433", "::1", "5433"),
        ("postgresql://[fe80::1]:5433", "fe80::1", "5433"),
        ("host=db.example.org port=5433", "db.example.org", "5433"),
    ],
)
def test_the_credentials_are_added_to_any_kind_of_address(
    address: str, host: str, port: str
) -> None:
    found = conninfo_to_dict(
        place(credentials="user=me passfile='/a b/it\\'s'").remote(address, application_name="x y")
    )
    assert (found["host"], found["port"], found["user"]) == (host, port, "me")
    assert (found["passfile"], found["application_name"]) == ("/a b/it's", "x y")


@pytest.mark.parametrize("name", ["gr\u00f6\u00dfe", "a\tb", "a\n", "x" * 64, "*", ""])
def test_h84_a_name_that_the_primary_would_not_know_again_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="name"):
        check_name(name, slots=False)


def test_names_that_it_knows_again_are_not() -> None:
    for name in ("db1", "DB-1", 'the "b"', "o'brien", "x" * 63):
        check_name(name, slots=False)


def test_each_member_has_a_slot_of_its_own() -> None:
    names = ("db-1", "db_1", "DB_1", "db.1", "db_2d1")
    assert len({slot_of(name) for name in names}) == len(names)
    assert slot_of("beta2") == "zkelect_beta2"


def test_a_name_too_long_for_a_slot_is_refused_if_there_are_slots() -> None:
    with pytest.raises(InvalidArgument, match="slot"):
        check_name("x" * 60, slots=True)
    check_name("x" * 60, slots=False)


@pytest.mark.parametrize("named", ["host=other", "port=5433", "hostaddr=10.0.0.9", "service=main"])
def test_credentials_that_name_a_server_are_refused(named: str) -> None:
    """They would win over each member's address, and the agent would ask its own server."""
    with pytest.raises(InvalidArgument, match="each member's address says"):
        place(credentials=f"user=me {named}")


def test_a_log_is_where_it_is_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The server is started in the root directory."""
    monkeypatch.chdir(tmp_path)
    assert place(log="server.log").log_file == tmp_path / "server.log"
