"""Election paths and names: one right spelling, refused where ZooKeeper or we could not hold it."""

from __future__ import annotations

from typing import Any

import pytest

from zkelect.core.paths import NAME_LIMIT, check_name, normalize
from zkelect.errors import InvalidArgument


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/elections/billing", "/elections/billing"),
        ("/elections/billing/", "/elections/billing"),
        ("/elections/billing//", "/elections/billing"),
        ("/a", "/a"),
        ("/größe/候補", "/größe/候補"),
        ("/with space/and.dots...", "/with space/and.dots..."),
        ("/elections/zookeeper", "/elections/zookeeper"),
        ("/zookeepers", "/zookeepers"),
        ("/zkelect", "/zkelect"),
        ("/a.zkelect.b", "/a.zkelect.b"),
    ],
)
def test_h75_two_spellings_never_make_two_elections(written: str, path: str) -> None:
    assert normalize(written) == path
    assert normalize(path) == path


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "a relative path"),
        ("elections/billing", "a relative path"),
        (" /elections", "a relative path"),
        ("/", "the root cannot hold an election"),
        ("///", "the root cannot hold an election"),
        ("/a//b", "an empty part between slashes"),
        ("//a", "an empty part between slashes"),
        ("/a/./b", "'.' and '..' are not resolved"),
        ("/a/..", "'.' and '..' are not resolved"),
        ("/a\x00b", "a character ZooKeeper does not allow"),
        ("/a\x1fb", "a character ZooKeeper does not allow"),
        ("/a\x7fb", "a character ZooKeeper does not allow"),
        ("/a\x9fb", "a character ZooKeeper does not allow"),
        ("/a\ud800b", "a character ZooKeeper does not allow"),
        ("/a\uf8ffb", "a character ZooKeeper does not allow"),
        ("/a\ufff0b", "a character ZooKeeper does not allow"),
        ("/zookeeper", "/zookeeper belongs to the servers"),
        ("/zookeeper/config", "/zookeeper belongs to the servers"),
        ("/elections/billing ", "a space at an end of a part"),
        ("/elections /billing", "a space at an end of a part"),
        ("/elections/ billing", "a space at an end of a part"),
        ("/elections/bil\u200bling", "an invisible character"),
        ("/elections/billing\u202e", "an invisible character"),
        ("/elections/bil\u00a0ling", "an invisible character"),
        ("/elections/gro\u0308\u00dfe", "a letter and its accent apart"),
        ("/elections/billing.zkelect", "the record of an election"),
        ("/elections.zkelect/billing", "the record of an election"),
    ],
)
def test_a_path_that_cannot_hold_an_election_is_refused_with_the_reason(
    path: str, why: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        normalize(path)
    assert (refusal.value.argument, refusal.value.value) == ("path", path)
    assert why in str(refusal.value)
    assert "'/elections/billing'" in str(refusal.value)


@pytest.mark.parametrize("name", ["", "host-a", "größe", "\N{PILE OF POO}", "x" * NAME_LIMIT])
def test_h74_a_name_is_any_text_up_to_8_kib(name: str) -> None:
    assert check_name(name) == name.encode()


@pytest.mark.parametrize(
    "name", ["x" * (NAME_LIMIT + 1), "\N{PILE OF POO}" * (NAME_LIMIT // 4 + 1)]
)
def test_h74_a_longer_name_is_refused_and_the_limit_named(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"at most {NAME_LIMIT} bytes") as refusal:
        check_name(name)
    assert len(str(refusal.value)) < 400, "the message does not repeat it all"


def test_h74_a_name_that_utf_8_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="UTF-8") as refusal:
        check_name("host-\udcff")
    assert isinstance(refusal.value.__cause__, UnicodeEncodeError)


def test_the_error_names_the_argument_that_was_given() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        check_name("\udcff", "address")
    assert refusal.value.argument == "address"


@pytest.mark.parametrize("given", [None, 7, b"/elections/billing"], ids=repr)
def test_what_is_no_text_is_refused_as_such(given: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"path=.*: text"):
        normalize(given)
    with pytest.raises(InvalidArgument, match=r"name=.*: text"):
        check_name(given)
