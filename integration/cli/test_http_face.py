"""docs/http_face.md: its answers, its HAProxy and its programs, on real servers."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from cli.household import Household
from election.waiting import WITHIN, until
from servers.packages import program
from starlette.applications import Starlette

import zkelect
from zkelect import server
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zkelect.testing import LocalEnsemble

PAGE: Final = (Path(__file__).parents[2] / "docs" / "http_face.md").read_text("utf-8")
NAMES: Final = ("host-a", "host-b")
SESSION: Final = ("--session-timeout", "2")
SERVICE: Final = """
import os, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as service:
    while True:
        connection, _ = service.accept()
        with connection:
            connection.sendall(os.environ["ZKELECT_NAME"].encode())
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


class Host:
    """A host of the page: its ports, and what runs there."""

    def __init__(self, name: str, zookeeper: str, path: str, ports: tuple[int, int]) -> None:
        self.name = name
        self.page, self.service = ports
        self._zookeeper, self._path = zookeeper, path
        self.household: Household | None = None

    def start(self, stack: ExitStack) -> None:
        """Run the service while leading, and serve the page."""
        options = ("--name", self.name, "--serve", f"127.0.0.1:{self.page}", *SESSION)
        command = ("--", sys.executable, "-c", SERVICE, str(self.service))
        made = Household(self._zookeeper, self._path, *options, *command)
        self.household = stack.enter_context(made)

    def ask(self, method: str = "GET", **headers: str) -> int | None:
        with closing(HTTPConnection("127.0.0.1", self.page, WITHIN)) as connection:
            try:
                connection.request(method, "/leader", headers=headers)
                return connection.getresponse().status
            except ConnectionError:
                return None


@pytest.fixture
def ports() -> Iterator[Callable[[], int]]:
    """Hold a free port until the end of the test."""
    with ExitStack() as stack:

        def hold() -> int:
            port = Port()
            stack.callback(port.release)
            return port.number

        yield hold


@pytest.fixture
def hosts(
    zookeeper: LocalEnsemble, path: str, ports: Callable[[], int]
) -> Iterator[tuple[Host, Host]]:
    """host-a, which leads, and host-b, which waits."""
    with ExitStack() as stack:
        a, b = (Host(name, zookeeper.hosts, path, (ports(), ports())) for name in NAMES)
        a.start(stack)
        until(lambda: a.ask() == 200, "host-a serves")
        b.start(stack)
        until(lambda: b.ask() == 503, "host-b waits")
        yield a, b


# --- the answers ------------------------------------------------------------------------------


CONSOLE: Final = "\n" + blocks("console")[0]
EXAMPLES: Final = re.findall(r"\n(host-.)\$ (.*)((?:\n(?!host-).*)*)", CONSOLE)


def alike(text: str, path: str = "/elections/billing") -> str:
    """Without what is of the moment."""
    text = text.replace("\r\n", "\n").replace(path, "/elections/billing").strip()
    for moment, shape in (
        (r'"remaining": [1-9]\d*\.\d+|"remaining": 0\.\d*[1-9]', '"remaining": SOME'),
        (r"[0-9a-f]{8}(-[0-9a-f]{16}){3}", "TOKEN"),
        (r"date: .*GMT", "date: NOW"),
        (r"content-length: \d+", "content-length: SO MANY"),
    ):
        text = re.sub(moment, shape, text)
    return text


def test_curl_is_answered_as_the_page_says(hosts: tuple[Host, Host], path: str) -> None:
    by_name = {host.name: host for host in hosts}
    assert len(EXAMPLES) == PAGE.count("$ curl ")
    for name, command, answer in EXAMPLES:
        typed = command.replace("localhost:8008", f"localhost:{by_name[name].page}")
        done = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, check=False)
        assert alike(done.stdout, path) == alike(answer), typed
        assert done.stderr == ""


def test_a_kubelet_is_answered(hosts: tuple[Host, Host]) -> None:
    like = {"User-Agent": "kube-probe/1.34", "Accept": "*/*", "Connection": "close"}
    assert [host.ask(**like) for host in hosts] == [200, 503]


# --- HAProxy ----------------------------------------------------------------------------------


class HaProxy:
    """The page's configuration, with the ports of this test, in front of its hosts.

    :ivar port: where it listens.
    """

    def __init__(self, folder: Path, hosts: tuple[Host, Host], port: int) -> None:
        self.port = port
        (text,) = blocks("haproxy")
        text = _replaced(text, "bind :5000", f"bind 127.0.0.1:{self.port}")
        for number, host in enumerate(hosts, start=1):
            there = f"server {host.name} 10.0.0.{number}:5432 check port 8008"
            here = f"server {host.name} 127.0.0.1:{host.service} check port {host.page}"
            text = _replaced(text, there, here)
        file = folder / "haproxy.cfg"
        file.write_text(text, "utf-8")
        self._process = subprocess.Popen([program("haproxy"), "-db", "-q", "-f", str(file)])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def who(self) -> set[str | None]:
        """Return who answers many clients, one after the other; None: somebody got no answer."""
        return {self._ask() for _ in range(50)}

    def _ask(self) -> str | None:
        try:
            with socket.create_connection(("127.0.0.1", self.port), WITHIN) as client:
                return client.recv(100).decode() or None
        except ConnectionError:
            return None


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_haproxy_follows_the_leadership(
    number: signal.Signals,
    hosts: tuple[Host, Host],
    ports: Callable[[], int],
    tmp_path: Path,
) -> None:
    a, b = hosts
    assert a.household is not None and b.household is not None
    with closing(HaProxy(tmp_path, hosts, ports())) as proxy:
        until(lambda: proxy.who() == {a.name}, "all traffic goes to host-a")
        a.household.run.signal(number)
        until(lambda: proxy.who() == {b.name}, "all traffic goes to host-b")
        assert b.ask() == 200
        a.household.run.signal(signal.SIGCONT)
        assert proxy.who() == {b.name}


# --- the programs -----------------------------------------------------------------------------


@pytest.fixture
def page() -> dict[str, Any]:
    """The functions of the page, by name."""
    names: dict[str, Any] = {"zkelect": zkelect, "threading": threading, "Starlette": Starlette}
    for block in blocks("python"):
        exec(compile(block, "http_face.md", "exec"), names)  # noqa: S102  # ours
    return names


def test_a_program_serves_while_it_stands_and_leads(
    page: dict[str, Any],
    zookeeper: LocalEnsemble,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the ports and the path of this test in the place of the page's."""
    listener, stop, answers = server.listen("127.0.0.1:0"), threading.Event(), []

    def lead(leadership: zkelect.Leadership) -> None:
        with closing(HTTPConnection("127.0.0.1", listener.port, WITHIN)) as connection:
            connection.request("GET", "/leader")
            answers.append(connection.getresponse().status)
        stop.set()
        leadership.wait_lost(WITHIN)

    serve = server.serve
    monkeypatch.setitem(vars(server), "serve", lambda _, election: serve(listener, election))
    page["lead"] = lead
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0) as session:
        page["serve_and_lead"](session, stop)
    assert answers == [200]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", listener.port))


def test_pages_are_mounted_in_an_application(
    page: dict[str, Any], zookeeper: LocalEnsemble, path: str
) -> None:
    app = Starlette()

    async def ask(election: str) -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            return (await client.get(f"/election/leader{election}")).status_code

    async def lead_both(session: zkelect.Session) -> list[int]:
        billing = zkelect.Election(session, f"{path}/billing")
        stock = zkelect.AsyncElection(zkelect.AsyncSession(session), f"{path}/stock")
        page["add_pages"](app, billing, stock)
        async with stock.campaign():
            return [await ask(each.path) for each in (billing, stock)] + [await ask("")]

    with zkelect.connect(zookeeper.hosts, session_timeout=2.0) as session:
        assert asyncio.run(lead_both(session)) == [503, 200, 404]
