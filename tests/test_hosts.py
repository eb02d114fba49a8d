"""Connection strings: understood, or refused with the right form, and nothing in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.errors import InvalidArgument
from zkelect.session.hosts import DEFAULT_PORT, Hosts, parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("zk1", "zk1:2181"),
        ("zk1:2181", "zk1:2181"),
        ("zk1,zk2:2182,zk3", "zk1:2181,zk2:2182,zk3:2181"),
        (" zk1 , zk2:2182 ", "zk1:2181,zk2:2182"),
        ("zk1,zk2/app", "zk1:2181,zk2:2181/app"),
        ("zk1,zk2 /app/deep/", "zk1:2181,zk2:2181/app/deep"),
        ("zk1/", "zk1:2181"),
        ("zk1//", "zk1:2181"),
        ("zk://zk1:2181/app", "zk1:2181/app"),
        ("zookeeper://zk1,zk2", "zk1:2181,zk2:2181"),
        ("ZK1.Example.COM", "zk1.example.com:2181"),
        ("127.0.0.1:2181", "127.0.0.1:2181"),
        ("[::1]:2182", "[::1]:2182"),
        ("[::1]", "[::1]:2181"),
        ("[fe80::1%eth0],[::2]:1/app", "[fe80::1%eth0]:2181,[::2]:1/app"),
        ("zk1/with space", "zk1:2181/with space"),
        ("zk1:65535", "zk1:65535"),
    ],
)
def test_h75_what_people_write_is_understood(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ",",
        "zk1,",
        "zk1,,zk2",
        "/app",
        ":2181",
        "zk1:",
        "zk1:port",
        "zk1:0",
        "zk1:65536",
        "zk1:-1",
        "zk1:2181:2182",
        "::1",
        "::1:2181",
        "[::1",
        "[nonsense]:2181",
        "zk1 zk2",
        "zk1;zk2",
        "zk1?retries=3",
        "zk1#2",
        "zk1\tzk2",
        "zk\n1",
        "zk1\\app",
        "http://zk1",
        "zk1/app//deep",
        "zk1/app/../other",
        "zk1/./app",
        "zk1/app /deep",
        "zk1/app\x00",
        "zk1/ap\u200bp",
        "zk1/gro\u0308\u00dfe",
        "[::1]2181",
        "[::1]2181:1",
        "zk1..example",
        "z" * 64,
    ],
)
def test_h75_what_cannot_be_meant_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        parse(text)
    assert (refusal.value.argument, refusal.value.value) == ("hosts", text)
    assert "zk1:2181,zk2:2181,zk3:2181/chroot" in str(refusal.value)


def test_h75_a_chroot_for_each_host_is_refused_in_so_many_words() -> None:
    with pytest.raises(InvalidArgument, match="one chroot for all, behind the last server"):
        parse("zk1/app,zk2/app")


@pytest.mark.parametrize(
    "text",
    [
        "ops:s3cret@zk1:2181",
        "zk://ops:s3cret@zk1,zk2/app",
        "zk1,ops:s3cret@zk2",
        "ops:s3c@ret@zk1",
        "ops:s3cret/x@zk1",
        "s3cret@zk1",
        "digest:ops:s3cret@zk1",
        "[s3cret@zk1]",
    ],
)
def test_credentials_in_the_hosts_are_refused_and_never_shown(text: str) -> None:
    with pytest.raises(InvalidArgument, match="no user and no password here") as refusal:
        parse(text)
    error: BaseException | None = refusal.value
    assert "@" in str(error)
    while error is not None:
        assert "s3c" not in f"{error!r} {error} {vars(error)}"
        error = error.__cause__ or error.__context__


def test_an_at_sign_in_the_chroot_is_part_of_a_name() -> None:
    assert parse("zk1/app@prod").chroot == "/app@prod"


@pytest.mark.parametrize("hosts", [None, 7, b"zk1", ["zk1"]], ids=repr)
def test_what_is_no_text_is_refused(hosts: Any) -> None:
    with pytest.raises(InvalidArgument, match="one text"):
        parse(hosts)


def test_each_server_has_a_name() -> None:
    assert parse("zk1,[::1]:2182/app").names == ("zk1:2181", "[::1]:2182")


def test_the_default_port_is_zookeepers() -> None:
    assert DEFAULT_PORT == 2181
    assert parse("zk1").servers == (("zk1", 2181),)


hosts = st.builds(
    Hosts,
    servers=st.lists(
        st.tuples(
            st.sampled_from(["zk1", "10.0.0.1", "::1", "fe80::1%eth0", "a.b-c.d"]),
            st.integers(1, 65535),
        ),
        min_size=1,
        max_size=5,
    ).map(tuple),
    chroot=st.sampled_from(["", "/app", "/app/deep", "/with space/x"]),
)


@given(hosts)
def test_the_canonical_form_reads_back_as_it_was(written: Hosts) -> None:
    assert parse(str(written)) == written
