"""Where to listen: what people write, and what they are told when it cannot be."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import zkelect
from zkelect.server import listen

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def taken() -> Iterator[int]:
    with closing(listen("127.0.0.1:0")) as there:
        yield there.port


@pytest.mark.parametrize(
    ("address", "url", "reached"),
    [
        (":0", r"http://[::]:{}", ["127.0.0.1", "::1"]),
        ("127.0.0.1:0", "http://127.0.0.1:{}", ["127.0.0.1"]),
        ("[::1]:0", "http://[::1]:{}", ["::1"]),
        ("[::]:0", "http://[::]:{}", ["::1"]),
        ("0.0.0.0:0", "http://0.0.0.0:{}", ["127.0.0.1"]),
    ],
)
def test_each_form_listens_where_it_says(address: str, url: str, reached: list[str]) -> None:
    with closing(listen(address)) as there:
        assert there.url == url.format(there.port)
        for host in ("127.0.0.1", "::1"):
            assert can_connect(host, there.port) == (host in reached)
    assert not can_connect(reached[0], there.port)


def can_connect(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as connection:
        return connection.connect_ex((host, port)) == 0


def test_a_name_is_each_of_its_addresses_with_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """And those that this host does not have are passed over, if it has one of them."""
    found = ["::1", "192.0.2.1", "127.0.0.1"]  # RFC 5737: nobody's
    resolve = socket.getaddrinfo

    def answer(host: str, port: int, **how: int) -> object:
        assert host == "host-a"
        return [info for each in found for info in resolve(each, port, **how)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with closing(listen("host-a:0")) as there:
        hosts, ports = zip(*(each.getsockname()[:2] for each in there.sockets), strict=True)
        assert hosts == ("::1", "127.0.0.1")
        assert ports == (there.port,) * 2
    found[:] = ["192.0.2.1"]
    with pytest.raises(zkelect.InvalidArgument, match="Cannot assign requested address"):
        listen("host-a:0")


def test_a_host_without_ipv6_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def no_ipv6(place: tuple[str, int], *, family: int = socket.AF_INET, **how: bool) -> object:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return create(place, family=family, **how)

    monkeypatch.setattr(socket, "create_server", no_ipv6)
    with closing(listen(":0")) as there:
        assert there.url == f"http://0.0.0.0:{there.port}"


@pytest.mark.parametrize("form", [":{}", "127.0.0.1:{}", "0.0.0.0:{}"])
def test_a_port_that_is_taken_is_told(form: str, taken: int) -> None:
    address = form.format(taken)
    with pytest.raises(zkelect.InvalidArgument) as refused:
        listen(address)
    assert (refused.value.argument, refused.value.value) == ("address", address)
    assert "cannot listen there: Address already in use" in str(refused.value)


def test_all_of_a_name_or_nothing(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _, port, **how: [*resolve("::1", port, **how), *resolve("127.0.0.1", port, **how)],
    )
    with pytest.raises(zkelect.InvalidArgument, match="Address already in use"):
        listen(f"host-a:{taken}")
    assert not can_connect("::1", taken)


@pytest.mark.parametrize(
    "address",
    [
        "8008",
        "",
        ":",
        ":http",
        ":65536",
        ":-1",
        ":\uff18",
        "::1:8008",
        "[::1]",
        "[]:80",
        "host:80:80",
        "http://host:80",
        "host :80",
        " :80",
        ":80\n",
        8008,
        None,
    ],
)
def test_another_form_is_refused_with_the_right_one(address: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match=r"':8008' \(all addresses of this host\)"):
        listen(address)


@pytest.mark.parametrize("address", ["host.invalid:80", "..:80", "[zz]:80"])
def test_a_name_that_is_none_is_told(address: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="cannot listen there: "):
        listen(address)
