"""Redis addresses and settings that cannot work are refused, with what to change."""

from __future__ import annotations

import pytest

from zkelect import InvalidArgument
from zkelect.recipes.redis.checks import check_encryption
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
