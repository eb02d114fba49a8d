"""Ensembles in namespaces, without root: what programs are told, and what is said without them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zkelect.errors import InvalidArgument, Misuse, Unreachable
from zkelect.testing import netns
from zkelect.testing.configuration import Ports, Settings
from zkelect.testing.namespaces import LoopbackEnsemble, NamespaceEnsemble
from zkelect.testing.netns import NetworkUnavailable, find_missing
from zkelect.testing.wiring import Block, Slowness, between, rules

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = Block(0)
HUB = "/proc/7/ns/net"


# --- addresses and links -----------------------------------------------------------------------


def test_a_block_has_an_address_for_each() -> None:
    assert FIRST.network == "198.18.0.0/28"
    assert FIRST.clients == "198.18.0.1"
    assert [FIRST.server(index) for index in (0, 6)] == ["198.18.0.2", "198.18.0.8"]
    assert FIRST.hub == "198.18.0.14"


def test_blocks_fill_the_range_and_share_no_address() -> None:
    assert Block.COUNT == 8192
    last = Block(Block.COUNT - 1)
    assert (last.network, last.hub, last.link) == ("198.19.255.240/28", "198.19.255.254", "zk8191")
    assert len(last.link) <= 15  # as long as Linux lets a link's name be
    assert Block(1).clients == "198.18.0.17"


def test_a_block_is_claimed_by_the_name_of_a_link() -> None:
    assert FIRST.claim(HUB) == [
        *("link", "add", "zk0", "type", "veth"),
        *("peer", "name", "clients", "netns", HUB),
    ]


def test_the_hub_has_a_way_to_each_and_no_other() -> None:
    assert FIRST.at_hub(["/proc/8/ns/net", "/proc/9/ns/net"]).splitlines() == [
        "link set lo up",
        "address add 198.18.0.14/32 dev lo",
        "link add server0 type veth peer name eth0 netns /proc/8/ns/net",
        "link add server1 type veth peer name eth0 netns /proc/9/ns/net",
        "link set clients up",
        "route add 198.18.0.1/32 dev clients",
        "link set server0 up",
        "route add 198.18.0.2/32 dev server0",
        "link set server1 up",
        "route add 198.18.0.3/32 dev server1",
    ]


def test_a_server_has_a_way_to_its_network_and_no_other() -> None:
    assert FIRST.at_server(1).splitlines() == [
        "link set lo up",
        "address add 198.18.0.3/32 dev eth0",
        "link set eth0 up",
        "route add 198.18.0.0/28 via 198.18.0.14 dev eth0 onlink",
    ]
    assert "198.18.0.0/28 via 198.18.0.14 dev zk0" in FIRST.at_clients()
    assert "default" not in FIRST.at_server(0) + FIRST.at_clients() + FIRST.at_hub([HUB])


def test_servers_listen_on_their_own_address() -> None:
    ensemble = [Ports(2181, 2888, 3888, FIRST.server(index)) for index in range(3)]
    lines = Settings().zoo_cfg(Path("/d"), 1, ensemble).splitlines()
    assert "clientPortAddress=198.18.0.3" in lines
    assert "server.3=198.18.0.4:2888:3888" in lines


# --- rules -------------------------------------------------------------------------------------


def test_without_faults_there_is_no_rule() -> None:
    assert rules(set(), {}, []) == "*filter\n-F FORWARD\nCOMMIT\n"


def test_two_groups_are_parted_both_ways_or_one() -> None:
    there = {("a", "c"), ("b", "c")}
    assert between(["a", "b"], ["c"], one_way=True) == there
    assert between(["a", "b"], ["c"], one_way=False) == there | {("c", "a"), ("c", "b")}


def test_what_drops_comes_before_what_delays() -> None:
    """A queue's verdict ends the walk through the chain."""
    slow = {"c": Slowness(latency=0.1, loss=0.25), "a": Slowness(latency=0.0, loss=1.0)}
    assert rules({("b", "a"), ("a", "b")}, slow, ["a", "b", "c"]).splitlines() == [
        "*filter",
        "-F FORWARD",
        "-A FORWARD -s a -d b -j DROP",
        "-A FORWARD -s b -d a -j DROP",
        "-A FORWARD -s c -m statistic --mode random --probability 0.250000 -j DROP",
        "-A FORWARD -s a -m statistic --mode random --probability 1.000000 -j DROP",
        "-A FORWARD -s c -j NFQUEUE --queue-num 2",
        "COMMIT",
    ]


# --- what is missing ---------------------------------------------------------------------------


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have all programs but these, as that user, on a kernel that refuses."""

    def lack(*programs: str, user: int = 0) -> None:
        monkeypatch.setattr(
            shutil, "which", lambda name, path: None if name in programs else f"/sbin/{name}"
        )
        monkeypatch.setattr(os, "geteuid", lambda: user)
        monkeypatch.setattr(netns, "_leave_network", refuse)

    return lack


def refuse() -> None:
    raise PermissionError(1, "Operation not permitted")


def test_missing_programs_are_named_with_their_packages(lacking: Callable[..., None]) -> None:
    lacking("ip", "iptables-restore", user=1000)
    assert find_missing() == [
        "no program ip: apt-get install -y --no-install-recommends iproute2",
        "no program iptables-restore: apt-get install -y --no-install-recommends iptables",
        "you are not root: sudo, with the path of this Python",
    ]


def test_a_container_that_may_not_is_told_how_to_start(lacking: Callable[..., None]) -> None:
    lacking()
    (told,) = find_missing()
    assert "Operation not permitted" in told
    assert "docker run --privileged" in told


def test_elsewhere_there_are_no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert find_missing() == ["network namespaces are Linux's: run the tests there"]


def test_programs_are_found_where_administrators_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(shutil, "which", lambda _, path: asked.append(path))
    monkeypatch.setenv("PATH", "/home/me/bin")
    find_missing()
    assert set(asked) == {"/home/me/bin:/usr/sbin:/sbin"}


def test_nothing_is_started_where_something_is_missing(lacking: Callable[..., None]) -> None:
    lacking("ss")
    ensemble = NamespaceEnsemble()
    with pytest.raises(NetworkUnavailable, match="no program ss: apt-get install") as caught:
        ensemble.start()
    assert isinstance(caught.value, Unreachable)
    assert len(caught.value.missing) == 2
    assert ensemble.servers == ()


def test_who_has_no_namespaces_is_told_when_the_network_is_to_break(
    lacking: Callable[..., None],
) -> None:
    lacking(user=1000)
    plain = LoopbackEnsemble()
    for breaking in (
        lambda: plain.isolate(0),
        lambda: plain.partition({0}, {1, 2}),
        lambda: plain.slow(0),
    ):
        with pytest.raises(NetworkUnavailable, match="you are not root"):
            breaking()
    plain.heal()


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [0, 8])
def test_a_block_has_room_for_seven(servers: int) -> None:
    with pytest.raises(InvalidArgument, match="servers="):
        NamespaceEnsemble(servers)


def test_before_the_start_there_is_no_network() -> None:
    ensemble = NamespaceEnsemble()
    for breaking in (
        lambda: ensemble.isolate(0),
        lambda: ensemble.partition({0}, {1}),
        lambda: ensemble.slow(0),
        ensemble.heal,
    ):
        with pytest.raises(Misuse, match="not started"):
            breaking()
