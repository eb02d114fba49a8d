"""The thread that serves: it comes and goes with its block, and leaves the program its own."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest
from server.test_pages import Source
from uvicorn.protocols.http.h11_impl import H11Protocol

import zkelect
from zkelect import server
from zkelect.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


def ask(port: int, request: bytes) -> bytes:
    """Send these bytes; return all that is answered until the end."""
    with socket.create_connection(("127.0.0.1", port), 30.0) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_what_load_balancers_send_is_answered() -> None:
    with server.serve("127.0.0.1:0", Source()) as there:
        for request in (
            b"OPTIONS / HTTP/1.0\r\n\r\n",  # HAProxy's, without a word of configuration
            b"HEAD /leader HTTP/1.0\r\n\r\n",
            b"GET /leader HTTP/1.0\r\n\r\n",
            b"GET /leader HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        ):
            head, _, body = ask(there.port, request).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n"), request
            assert (body == b"") == request.startswith(b"HEAD")


def test_pages_of_ones_own_are_answered_alike() -> None:
    holds = True
    with server.serve_pages("127.0.0.1:0", {"/own": lambda: (holds, {"lag": 7})}) as there:
        head, _, body = ask(there.port, b"GET /own HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
        assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 200 OK", b'{"lag": 7}\n')
        assert b"cache-control: no-store" in head
        holds = False
        for request in (b"OPTIONS /own HTTP/1.0\r\n\r\n", b"HEAD /own HTTP/1.0\r\n\r\n"):
            assert ask(there.port, request).startswith(b"HTTP/1.1 503 ")
        assert ask(there.port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 404 ")


def test_a_connection_can_be_kept() -> None:
    with (
        server.serve("127.0.0.1:0", Source()) as there,
        closing(HTTPConnection("127.0.0.1", there.port, 30.0)) as connection,
    ):
        for method in ("GET", "HEAD", "OPTIONS") * 3:
            connection.request(method, "/leader")
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, method != "HEAD")


def test_it_stops_with_the_block_also_by_an_error_and_with_open_connections() -> None:
    class Oops(Exception): ...

    before = threading.active_count()
    listener = server.listen("127.0.0.1:0")
    place = ("127.0.0.1", listener.port)
    with socket.create_connection(place), socket.create_connection(place) as half:
        half.sendall(b"GET /leader HTTP/1.1\r\n")
        with suppress(Oops), server.serve(listener, Source()):
            ask(listener.port, b"GET / HTTP/1.0\r\n\r\n")  # the others were accepted before
            assert threading.active_count() == before + 1
            raise Oops
        assert threading.active_count() == before
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place)


def test_it_waits_for_nobody_who_does_not_read() -> None:
    listener = server.listen("127.0.0.1:0")
    for side in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        listener.sockets[0].setsockopt(socket.SOL_SOCKET, side, 4096)
    with socket.create_connection(("127.0.0.1", listener.port), 1.0) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with server.serve(listener, Source()):
            flood(deaf)
        assert not [each for each in threading.enumerate() if each.name == "zkelect-server"]


def flood(connection: socket.socket) -> None:
    """Ask and ask, and never read, until the server waits for us, and reads no more itself."""
    with suppress(TimeoutError):
        while True:
            connection.sendall(b"GET /leader HTTP/1.1\r\nHost: x\r\n\r\n" * 100)


def test_a_server_that_did_not_come_up_keeps_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_run", lambda *_: None)
    with server.serve("127.0.0.1:0", Source()) as there:
        pass
    assert there.sockets[0].fileno() == -1


def test_a_block_that_is_left_at_once_is_left_in_order() -> None:
    for _ in range(20):
        with server.serve("127.0.0.1:0", Source()) as there:
            pass
        assert there.sockets[0].fileno() == -1


def test_a_listener_is_taken_over_and_its_waiting_connections_answered() -> None:
    listener = server.listen("127.0.0.1:0")
    with socket.create_connection(("127.0.0.1", listener.port), 30.0) as early:
        early.sendall(b"GET /leader HTTP/1.0\r\n\r\n")
        with server.serve(listener, Source()) as there:
            assert there is listener
            assert early.recv(65536).startswith(b"HTTP/1.1 200 OK")
    assert listener.sockets[0].fileno() == -1


def test_a_port_that_is_taken_is_told_before_anything_runs() -> None:
    before = threading.active_count()
    with closing(server.listen("127.0.0.1:0")) as taken:
        serving = server.serve(f"127.0.0.1:{taken.port}", Source())
        with pytest.raises(zkelect.InvalidArgument, match="Address already in use"), serving:
            pytest.fail("the block was entered")
    assert threading.active_count() == before


def test_the_program_keeps_its_signals_and_its_loggers(caplog: pytest.LogCaptureFixture) -> None:
    """Also those of a uvicorn that the program runs itself."""
    names = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
    caplog.set_level(logging.INFO, "uvicorn.access")

    def state() -> list[Any]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        loggers = [logging.getLogger(name) for name in names]
        return [handlers, [(each.level, each.propagate, each.handlers[:]) for each in loggers]]

    before = state()
    with server.serve("127.0.0.1:0", Source()) as there:
        ask(there.port, b"GET / HTTP/1.0\r\n\r\n")
        assert state() == before
    assert state() == before
    assert [record for record in caplog.records if record.name == "uvicorn.access"] == []


@contextmanager
def noisy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(serving, "_Quiet", H11Protocol)
        yield


def test_without_our_protocol_there_would_be_a_line_for_every_poll(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "uvicorn.access")
    with noisy(monkeypatch), server.serve("127.0.0.1:0", Source()) as there:
        ask(there.port, b"GET / HTTP/1.0\r\n\r\n")
    assert [record for record in caplog.records if record.name == "uvicorn.access"] != []


BARE = """
import sys
from importlib.abc import MetaPathFinder

class Bare(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Bare())
import zkelect
from zkelect import server
assert not {"starlette", "uvicorn"} & sys.modules.keys()
server.listen
try:
    server.serve
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_a_library_that_is_missing_is_told_with_what_to_type(library: str) -> None:
    command = [sys.executable, "-c", BARE, library]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"zkelect.server.serve needs {library}, which is not installed: "
        "pip install 'zkelect[server]'\n"
    )


@pytest.mark.parametrize("name", server.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(server, name).__name__ == name
    assert name in dir(server)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match=r"'zkelect\.server' has no attribute 'Server'"):
        getattr(server, "Server")  # noqa: B009  # mypy knows it, too
