"""Servers that cannot be used: each is named with what it answered, within the time given."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import pytest
from access.scripted import close_at_once, keep_silent, serve_3_4, speak_http
from election.waiting import WITHIN

import zkelect
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

    Connect = Callable[..., zkelect.Session]
    Refused = Callable[..., Any]
    Measured = Callable[[str, float, float], None]

TIMEOUT: Final = 1.0


@pytest.fixture
def port() -> Iterator[Port]:
    """A port on which nobody listens."""
    held = Port()
    yield held
    held.release()


@pytest.fixture
def unreachable(refused: Refused, measured: Measured) -> Callable[[str], zkelect.ConnectFailed]:
    """Fail to connect within the time given."""

    def fail(hosts: str, timeout: float = TIMEOUT) -> zkelect.ConnectFailed:
        began = time.monotonic()
        error: zkelect.ConnectFailed = refused(
            zkelect.ConnectFailed,
            lambda: zkelect.connect(hosts, session_timeout=2.0, tick_time=0.2, timeout=timeout),
        )
        measured("refused", time.monotonic() - began, timeout)
        assert isinstance(error, zkelect.Unreachable)
        assert (error.hosts, error.timeout) == (hosts, timeout)
        return error

    return fail


def assert_answer(error: zkelect.ConnectFailed, address: str, answer: str) -> None:
    assert answer in error.causes[address]
    assert f"{address}: " in str(error)
    assert answer in str(error)


def test_nobody_listens(unreachable: Any, port: Port) -> None:
    error = unreachable(port.address)
    assert_answer(error, port.address, "Connection refused")
    assert isinstance(error.__cause__, ConnectionRefusedError)


def test_a_black_hole(unreachable: Any, scripted: Any) -> None:
    server = scripted(keep_silent)
    error = unreachable(server.address)
    assert_answer(error, server.address, "took the connection and did not answer")
    assert isinstance(error.__cause__, TimeoutError)


def test_a_black_hole_that_is_found_out_before_the_time_is_over(
    unreachable: Any, scripted: Any
) -> None:
    server = scripted(keep_silent)
    error = unreachable(server.address, timeout=4.0)
    assert_answer(error, server.address, "took the connection and did not answer")
    assert server.callers > 1


def test_each_of_two_black_holes_is_named(unreachable: Any, scripted: Any) -> None:
    first, second = scripted(keep_silent), scripted(keep_silent)
    error = unreachable(f"{first.address},{second.address}", timeout=4.0)
    for server in (first, second):
        assert_answer(error, server.address, "took the connection and did not answer")


def test_a_black_hole_is_left_at_once_when_there_is_no_time(
    unreachable: Any, scripted: Any, refused: Refused
) -> None:
    """Also while the connection is just being made."""
    server = scripted(keep_silent)
    call = lambda: zkelect.connect(server.address, session_timeout=60.0, timeout=0.0)  # noqa: E731
    began = time.monotonic()
    for _ in range(10):
        refused(zkelect.ConnectFailed, call)
    assert time.monotonic() - began < WITHIN  # kazoo itself would wait for the session timeout


def test_a_black_hole_when_tls_is_expected(
    scripted: Any, connect: Connect, refused: Refused
) -> None:
    server = scripted(keep_silent)
    call = lambda: connect(server.address, timeout=2.0, tls=zkelect.Tls())  # noqa: E731
    error = refused(zkelect.ConnectFailed, call)
    assert "timed out" in error.causes[server.address]
    assert isinstance(error.__cause__, TimeoutError)


def test_a_server_that_closes_at_once(unreachable: Any, scripted: Any) -> None:
    server = scripted(close_at_once)
    error = unreachable(server.address)
    assert_answer(error, server.address, "closed the connection instead of answering")
    assert "may have no quorum" in str(error)
    assert isinstance(error.__cause__, ConnectionResetError)


def test_a_server_that_speaks_http(unreachable: Any, scripted: Any) -> None:
    server = scripted(speak_http)
    error = unreachable(server.address)
    assert_answer(error, server.address, "HTTP")
    assert "check that the port is ZooKeeper's client port" in str(error)
    assert isinstance(error.__cause__, zkelect.Unreachable)


def test_a_name_that_does_not_resolve(unreachable: Any) -> None:
    error = unreachable("zookeeper.invalid:2181")
    assert_answer(error, "zookeeper.invalid:2181", "the name does not resolve")


def test_a_name_server_that_keeps_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a name has no timeout of its own: resolv.conf's goes to 30 s and more."""
    ask, given_up, told = socket.getaddrinfo, threading.Event(), threading.Event()

    def ask_in_vain(host: Any, *rest: Any, **options: Any) -> Any:
        if host != "slow.invalid":
            return ask(host, *rest, **options)
        given_up.wait(WITHIN)
        told.set()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", ask_in_vain)
    with pytest.raises(zkelect.ConnectFailed) as caught:
        zkelect.connect("slow.invalid", session_timeout=2.0, tick_time=0.2, timeout=TIMEOUT)
    assert not told.is_set()
    given_up.set()
    assert_answer(caught.value, "slow.invalid:2181", "the name does not resolve")


def test_the_name_as_given_is_in_the_message(unreachable: Any, port: Port) -> None:
    error = unreachable(f"localhost:{port.number}")
    assert any(address.startswith("localhost:") for address in error.causes)


def test_each_of_several_servers_is_named(unreachable: Any, scripted: Any, port: Port) -> None:
    closing, http = scripted(close_at_once), scripted(speak_http)
    hosts = f"{port.address},{closing.address},{http.address},zookeeper.invalid:2181"
    error = unreachable(hosts, timeout=3.0)
    assert set(error.causes) == set(hosts.split(","))
    assert_answer(error, port.address, "Connection refused")
    assert_answer(error, closing.address, "closed the connection")
    assert_answer(error, http.address, "HTTP")
    assert_answer(error, "zookeeper.invalid:2181", "does not resolve")
    assert error.__cause__ is not None


def test_a_server_that_is_given_twice(unreachable: Any, port: Port) -> None:
    error = unreachable(f"{port.address},{port.address}")
    assert_answer(error, port.address, "Connection refused")


def test_one_good_server_is_enough(
    connect: Connect, scripted: Any, port: Port, zookeeper: LocalEnsemble, path: str
) -> None:
    bad = (port.address, scripted(close_at_once).address, scripted(speak_http).address)
    hosts = ",".join((*bad, "zookeeper.invalid:2181", zookeeper.hosts))
    with zkelect.Election(connect(hosts), path).campaign(timeout=30.0) as leadership:
        leadership.check()


def test_a_server_before_3_5(scripted: Any, connect: Connect, refused: Refused) -> None:
    server = scripted(serve_3_4)
    error = refused(zkelect.ServerTooOld, lambda: connect(server.address))
    assert error.hosts == server.address
    assert server.address in str(error)
    assert "3.5" in str(error)
    assert "UnimplementedError" in repr(error.__cause__)
    assert server.requests == ["create2", "closeSession"]  # refused, and so nothing was made


def test_a_server_before_3_5_is_told_before_the_chroot(
    scripted: Any, connect: Connect, refused: Refused
) -> None:
    server = scripted(serve_3_4)
    refused(zkelect.ServerTooOld, lambda: connect(f"{server.address}/app"))
    assert {"create", "create2"} & set(server.requests) == {"create2"}
