"""Redis addresses and settings that cannot work are refused, with what to change."""

from __future__ import annotations

from typing import Any, cast

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from zkelect import InvalidArgument
from zkelect.recipes.redis.checks import check_commands, check_encryption
from zkelect.recipes.redis.place import split_address
from zkelect.recipes.resource import Unfit


@pytest.mark.parametrize(
    ("url", "settings", "wanted"),
    [
        ("redis://a:1/0", {"tls-replication": "yes"}, "'no'"),
        ("rediss://a:1/0", {"tls-replication": "no"}, "'yes'"),
        ("rediss://a:1/0", {}, "'yes'"),
    ],
)
def test_replication_is_encrypted_as_the_address_is(
    url: str, settings: dict[str, str], wanted: str
) -> None:
    with pytest.raises(Unfit, match=f"tls-replication is .*: set it to {wanted}"):
        check_encryption(url, settings)


def test_where_both_are_alike_it_is_not_refused() -> None:
    check_encryption("redis://a:1/0", {"tls-replication": "no"})
    check_encryption("redis://a:1/0", {})
    check_encryption("rediss://a:1/0", {"tls-replication": "yes"})


def test_an_address_of_ipv6_needs_its_brackets() -> None:
    assert split_address("[::1]:6379") == ("::1", 6379)
    for address in ("::1:6379", "[::1:6379", "::1]:6379"):
        with pytest.raises(InvalidArgument, match=r"\[::1\]:6379"):
            split_address(address)


class Commands:
    """A server's commands: those that are renamed, and those that the user may not run."""

    def __init__(self, renamed: str = "", refused: str = "") -> None:
        self._renamed = renamed
        self._refused = refused

    def execute_command(self, _: str, *names: str) -> list[Any]:
        return [None if name == self._renamed else [name] for name in names]

    def acl_whoami(self) -> str:
        if self._refused == "acl":
            raise NoPermissionError("this user has no permissions to run the 'acl|whoami' command")
        return "app"

    def acl_dryrun(self, user: str, *words: str) -> str:
        told = f"{user} has no permissions to run the '{self._refused}' command"
        return told if "|".join(words).lower().startswith(self._refused or "none") else "OK"


def check_those(commands: Commands) -> None:
    check_commands(cast("Redis", commands))


@pytest.mark.parametrize("name", ["replicaof", "client|pause", "eval", "psync"])
def test_a_command_that_is_renamed_or_forbidden_is_missed_before_it_is_needed(name: str) -> None:
    with pytest.raises(Unfit, match=f"{name.upper().replace('|', ' ')}.*rename-command"):
        check_those(Commands(renamed=name))
    with pytest.raises(Unfit, match=r"user 'app'.*\+@all"):
        check_those(Commands(refused=name))


def test_a_user_who_may_not_ask_for_rights_is_believed_to_have_them() -> None:
    check_those(Commands())
    check_those(Commands(refused="acl"))
