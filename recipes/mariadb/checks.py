"""What must be so before an agent looks after a server; each refusal says what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zkelect.recipes.mariadb.asking import connect
from zkelect.recipes.mariadb.gtid import parse_set
from zkelect.recipes.mariadb.process import ensure_running, find_server
from zkelect.recipes.mariadb.settings import is_on, read_start
from zkelect.recipes.resource import NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkelect.recipes.mariadb.asking import Client
    from zkelect.recipes.mariadb.place import Place

__all__ = ["check"]

_VERSION: Final = "10.11."
_MUST_BE: Final = {
    "log_bin": ("ON", "without a binary log nobody can follow it"),
    "log_slave_updates": ("ON", "a replica that is promoted has to send on what it was sent"),
    "gtid_strict_mode": ("ON", "else transactions of two histories are mixed"),
    "sync_binlog": ("1", "else a crash of the host takes transactions back that others have"),
    "innodb_flush_log_at_trx_commit": ("1", "else a crash of the host takes transactions back"),
    "rpl_semi_sync_master_enabled": ("OFF", "this recipe does not know writers that wait"),
}
_MUST_BE_EMPTY: Final = (
    "replicate_do_db",
    "replicate_do_table",
    "replicate_ignore_db",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
)
_CLOSED: Final = {
    "read_only": "it would take writes when it is started anew",
    "skip_slave_start": "it would follow whom it followed when it is started anew",
}
_RIGHTS: Final = (
    "SELECT",
    "INSERT",
    "UPDATE",
    "CREATE",
    "RELOAD",
    "PROCESS",
    "SUPER",
    "BINLOG ADMIN",
    "BINLOG MONITOR",
    "CONNECTION ADMIN",
    "READ_ONLY ADMIN",
    "REPLICATION SLAVE ADMIN",
    "SLAVE MONITOR",
)
_OURS: Final = (
    "SELECT privilege_type AS it FROM information_schema.user_privileges WHERE grantee ="
    " CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''',"
    " SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"
)
_ABOVE: Final = (
    "SELECT grantee AS it FROM information_schema.user_privileges"
    " WHERE privilege_type = 'READ_ONLY ADMIN' AND grantee NOT LIKE CONCAT('''', %s, '''@%%')"
)
# Roles are not among them. The bit is READ_ONLY_ADMIN_ACL of MariaDB's sql/privilege.h.
_ROLES_ABOVE: Final = (
    "SELECT user AS it FROM mysql.global_priv WHERE JSON_VALUE(priv, '$.is_role')"
    " AND CAST(JSON_VALUE(priv, '$.access') AS UNSIGNED) & (1 << 33) <> 0"
)
_DATABASE: Final = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"


def check(place: Place, deadline: float) -> None:
    """Look at the server; one that is down is started.

    :raises Unfit: it cannot be looked after; the text says what to change.
    """
    if not place.data_directory.is_dir():
        raise Unfit(f"there is no data directory {place.data_directory}: correct its name")
    try:
        ensure_running(place, deadline)
        with connect(place, deadline) as client:
            _check_server(client, place, deadline)
            _check_rights(client, place)
            _check_history(client)
            _check_accounts(client, place)
    except NotNow as error:
        raise Unfit(
            f"the server at {place.socket} does not answer as it should: {error}"
        ) from error


def _check_server(client: Client, place: Place, deadline: float) -> None:
    told = {row["Variable_name"]: row["Value"] for row in client.rows("SHOW GLOBAL VARIABLES")}
    if not told["version"].startswith(_VERSION) or "MariaDB" not in told["version"]:
        raise Unfit(f"the server is {told['version']}; this recipe knows MariaDB {_VERSION}*")
    _check_place(place, Path(told["datadir"]), deadline)
    _check_settings(told)


def _check_place(place: Place, directory: Path, deadline: float) -> None:
    if directory.resolve() != place.data_directory.resolve():
        raise Unfit(
            f"the server at {place.socket} has its data in {directory}, not in"
            f" {place.data_directory}: correct one of the two"
        )
    pid = find_server(place.data_directory)
    if pid is None:
        raise Unfit(
            f"the process of the server at {place.socket} is not to be seen from here: run the"
            " agent on its host, as its user or root, and in the same container or pod with a"
            " shared process space"
        )
    _check_start(pid, deadline)


def _check_start(pid: int, deadline: float) -> None:
    """Make sure that a restart, by whomever, is closed and follows nobody."""
    try:
        options = read_start(pid, deadline)
    except OSError as error:
        raise Unfit(f"how the server would start cannot be told: {error}") from error
    for name, otherwise in _CLOSED.items():
        if not is_on(options, name):
            raise Unfit(f"{otherwise}: put {name}=1 below [mariadbd] in its configuration")


def _check_settings(told: Mapping[str, Any]) -> None:
    for name, (wanted, why) in _MUST_BE.items():
        if told[name] != wanted:
            raise Unfit(f"{name} is {told[name]}; set it to {wanted}: {why}")
    for name in _MUST_BE_EMPTY:
        if told[name]:
            raise Unfit(f"{name} is {told[name]!r}; take it away: the replica would lack the rest")
    if told.get("wsrep_on") == "ON":
        raise Unfit("the server is a node of a Galera cluster, and that looks after itself")


def _check_rights(client: Client, place: Place) -> None:
    have = {row["it"] for row in client.rows(_OURS)}
    if lacking := [right for right in _RIGHTS if right not in have]:
        raise Unfit(
            f"the account {place.user} lacks {', '.join(lacking)}: GRANT ALL PRIVILEGES ON *.* TO"
            " it"
        )
    if not client.row(_DATABASE, place.database):
        raise Unfit(
            f"there is no database {place.database}: make it, on the primary, by CREATE DATABASE"
            f" {place.database}"
        )


def _check_history(client: Client) -> None:
    row = client.row(
        "SELECT @@gtid_domain_id AS domain, @@global.gtid_binlog_pos AS written,"
        " @@global.gtid_slave_pos AS applied"
    )
    gtids = (*parse_set(row["written"]), *parse_set(row["applied"]))
    if strange := [str(each) for each in gtids if each.domain != row["domain"]]:
        raise Unfit(
            f"gtid_domain_id is {row['domain']}, and the server has {', '.join(strange)}: set it to"
            " the domain of all members, and let nobody write in another one"
        )
    if named := [
        row["Connection_name"]
        for row in client.rows("SHOW ALL SLAVES STATUS")
        if row["Connection_name"]
    ]:
        raise Unfit(
            f"it follows several: RESET SLAVE {', '.join(map(repr, named))} ALL, as this recipe"
            " uses the connection without a name"
        )


def _check_accounts(client: Client, place: Place) -> None:
    """Make sure that the lock is one: ``read_only`` does not hold for everybody."""
    found = (*client.rows(_ABOVE, place.user), *client.rows(_ROLES_ABOVE))
    above = sorted({row["it"] for row in found})
    if above:
        raise Unfit(
            f"{', '.join(above)} may write when the server is read_only: REVOKE READ_ONLY ADMIN ON"
            " *.* from each, for only the agent's account may have it"
        )
