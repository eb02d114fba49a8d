"""MariaDB as it may be set up: what cannot keep the promise is refused at the claim, by looking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from servers.mariadb import MariaDb
from sqlalchemy import text
from stores.sql_bench import SqlBench, engine_of

from zkelect.errors import UnfitStore
from zkelect.stores.sql import SqlFence
from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stores.bearers import FakeBearer

    MakeBearer = Callable[..., FakeBearer]


@pytest.fixture
def url(mariadb: MariaDb, mariadb_database: str) -> str:
    return mariadb.url(database=mariadb_database)


@pytest.fixture
def bench(url: str) -> Iterator[SqlBench]:
    with engine_of(url) as engine:
        yield SqlBench(engine)


def test_h63_an_engine_in_autocommit_is_unfit(url: str, bearer: MakeBearer) -> None:
    with engine_of(url, isolation_level="AUTOCOMMIT") as engine:
        _check_unfit(engine, bearer, "AUTOCOMMIT")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("table zkelect_fence ({columns}) engine = MyISAM collate utf8mb4_bin", "MyISAM"),
        ("table zkelect_fence ({columns}) collate utf8mb4_general_ci", "utf8mb4_general_ci"),
        ("view zkelect_fence as select entry as domain, log.* from log", "no table"),
    ],
)
def test_h63_a_table_that_cannot_guard_is_unfit(
    bench: SqlBench, bearer: MakeBearer, mariadb: MariaDb, form: str, told: str
) -> None:
    columns = "domain varchar(200) primary key, token varchar(59), election varchar(255)"
    columns += ", holder varchar(255), origin varchar(255)"
    database = bench.engine.url.database or ""
    mariadb.ask(f"create {form.format(columns=columns)}", database=database)
    _check_unfit(bench.engine, bearer, told)


def test_h63_a_server_that_is_read_only_is_unfit(
    bench: SqlBench, bearer: MakeBearer, mariadb: MariaDb
) -> None:
    fence, leader = bench.fence(), bearer(5)
    fence.claim(leader)
    mariadb.ask("set global read_only = 1")
    try:
        _check_unfit(bench.engine, bearer, "read-only")
        with pytest.raises(UnfitStore, match="read-only"), fence.transaction(leader):
            pass
    finally:
        mariadb.ask("set global read_only = 0")
    bench.write(fence, leader, "it writes again")


def test_h63_a_session_that_is_read_only_is_unfit(url: str, bearer: MakeBearer) -> None:
    read_only = {"init_command": "set session transaction read only"}
    with engine_of(url, connect_args=read_only) as engine:
        _check_unfit(engine, bearer, "read-only")


def test_h63_who_may_not_make_the_table_is_told_its_definition(
    bench: SqlBench, bearer: MakeBearer, mariadb: MariaDb
) -> None:
    url = bench.engine.url.set(username="reader")
    mariadb.ask("create or replace user reader@'127.0.0.1'")
    mariadb.ask(f"grant select, insert, update on {url.database}.* to reader@'127.0.0.1'")
    with engine_of(url) as engine:
        _check_unfit(engine, bearer, "CREATE TABLE")
        bench.fence().claim(bearer(5))  # another user makes it
        SqlFence(engine, domain="d").claim(bearer(6))


def test_h63_mysql_is_unfit(bench: SqlBench, bearer: MakeBearer) -> None:
    with bench.engine.connect():  # then it has seen which server this is
        vars(bench.engine.dialect)["is_mariadb"] = False
    _check_unfit(bench.engine, bearer, "not MariaDB")


def test_h63_a_galera_node_is_unfit(bearer: MakeBearer) -> None:
    port = Port()
    settings = {
        "wsrep-on": "ON",
        "wsrep-provider": "/usr/lib/galera/libgalera_smm.so",
        "wsrep-cluster-address": "gcomm://",
        "wsrep-node-address": LOOPBACK,
        "wsrep-provider-options": f"gmcast.listen_addr=tcp://{port.address}",
        "innodb-autoinc-lock-mode": "2",
    }
    with MariaDb(settings) as node, engine_of(node.url()) as engine:
        _check_unfit(engine, bearer, "Galera")
    port.release()


def _check_unfit(engine: sa.Engine, bearer: MakeBearer, told: str) -> None:
    leader = bearer(9)
    with pytest.raises(UnfitStore, match=told):
        SqlFence(engine, domain="unfit").claim(leader)
    assert leader.ends == []
    with engine.connect() as connection:
        if sa.inspect(connection).has_table("zkelect_fence"):
            rows = text("select * from zkelect_fence where domain = 'unfit'")
            assert connection.execute(rows).all() == []
