"""Every kind of fault on a real server, as a plain kazoo client meets it."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from election.actor import TICK
from election.waiting import WITHIN, until
from kazoo import exceptions as kz
from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create, GetData
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import OPEN_ACL_UNSAFE

from zkelect.errors import InvalidArgument
from zkelect.session import wire
from zkelect.testing import FaultProxy, LocalEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GONE = (kz.ConnectionLoss, kz.ConnectionClosedError, kz.SessionExpiredError)


@contextmanager
def client(hosts: str, timeout: float = 4.0, **options: Any) -> Iterator[KazooClient]:
    """A client that is left behind where its server keeps silent."""
    kazoo = KazooClient(hosts, timeout=timeout, **options)
    kazoo.start(timeout=WITHIN)
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()


def again(kazoo: KazooClient, node: str) -> bytes:
    """Read as soon as the connection is back."""
    until(lambda: kazoo.connected, "the client reconnects")
    return bytes(kazoo.get(node)[0])


class States:
    """The states of a client, to be waited for."""

    def __init__(self, kazoo: KazooClient) -> None:
        self.told: list[str] = []
        self._changed = threading.Condition()
        kazoo.add_listener(self._note)

    def wait(self, state: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: state in self.told, WITHIN), self.told

    def _note(self, state: str) -> None:
        with self._changed:
            self.told.append(state)
            self._changed.notify_all()


def request(xid: int, asked: Any) -> bytes:
    return framed(struct.pack("!ii", xid, asked.type) + bytes(asked.serialize()))


def reply(xid: int) -> bytes:
    return framed(struct.pack("!iqi", xid, 0, 0))


def framed(body: bytes) -> bytes:
    return struct.pack("!i", len(body)) + body


def dial(hosts: str) -> socket.socket:
    host, _, port = hosts.partition(":")
    return socket.create_connection((host, int(port)), WITHIN)


def frame(connection: socket.socket) -> bytes:
    (length,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL)


def xid_of(connection: socket.socket) -> int:
    return wire.decode_reply_header(frame(connection)).xid


@pytest.fixture
def node(operator: Any, path: str) -> str:
    """A znode of this test."""
    operator.kazoo.create(path, b"first")
    return path


# --- lost frames -----------------------------------------------------------------------------


@pytest.mark.parametrize("done", [False, True])
def test_a_lost_create_is_done_or_not_and_the_session_goes_on(
    done: bool, proxy: FaultProxy, operator: Any, path: str
) -> None:
    with client(proxy.hosts) as kazoo:
        states, session = States(kazoo), kazoo.client_id
        lost = (proxy.drop_reply if done else proxy.drop_request)("create", path=path)
        with pytest.raises(GONE):
            kazoo.create(path, b"")
        assert lost.wait(WITHIN)
        states.wait(KazooState.SUSPENDED)
        states.wait(KazooState.CONNECTED)
        assert kazoo.client_id == session
    assert (operator.kazoo.exists(path) is not None) is done
    assert proxy.requests["create"] == done
    assert proxy.replies["create"] == 0


def test_a_link_that_hangs_carries_nothing_until_it_is_healed(
    proxy: FaultProxy, operator: Any, node: str
) -> None:
    with client(proxy.hosts) as kazoo:
        states = States(kazoo)
        hung = proxy.drop_request("getData", then="hang")
        pending = [kazoo.get_async(node), kazoo.set_async(node, b"never")]
        assert hung.wait(WITHIN)
        assert proxy.wait_for(lambda: any(f.name == "setData" for f in proxy.log), timeout=WITHIN)
        assert not states.told
        with client(proxy.hosts) as other:
            assert other.get(node)[0] == b"first"  # other connections go on
        proxy.heal()
        states.wait(KazooState.SUSPENDED)
        for each in pending:
            with pytest.raises(GONE):
                each.get(timeout=WITHIN)
        states.wait(KazooState.CONNECTED)
    assert operator.kazoo.get(node)[0] == b"first"


@pytest.mark.parametrize("size", [2, 12])
def test_a_reply_torn_in_the_middle_is_no_reply(size: int, proxy: FaultProxy, node: str) -> None:
    with client(proxy.hosts) as kazoo:
        torn = proxy.tear_reply("getData", size=size)
        with pytest.raises(GONE):
            kazoo.get(node)
        assert torn.fired
        assert again(kazoo, node) == b"first"


def test_a_request_torn_in_the_middle_is_never_done(
    proxy: FaultProxy, operator: Any, node: str
) -> None:
    with client(proxy.hosts) as kazoo:
        torn = proxy.tear_request("setData", size=30)
        with pytest.raises(GONE):
            kazoo.set(node, b"second")
        assert torn.fired
        assert again(kazoo, node) == b"first"


def test_what_came_before_a_lost_reply_arrives(proxy: FaultProxy, node: str) -> None:
    with client(proxy.hosts) as kazoo:
        proxy.drop_reply("getData", nth=3)
        answers = [kazoo.get_async(node) for _ in range(4)]
        assert [each.get(timeout=WITHIN)[0] for each in answers[:2]] == [b"first"] * 2
        for each in answers[2:]:
            with pytest.raises(GONE):
                each.get(timeout=WITHIN)


# --- to the byte, before a server that is none -----------------------------------------------


@pytest.fixture
def ends() -> Iterator[tuple[FaultProxy, socket.socket, socket.socket]]:
    """A proxy, a client's end and a server's end, the handshake over."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        FaultProxy(f"127.0.0.1:{listener.getsockname()[1]}") as proxy,
        dial(proxy.hosts) as ours,
        listener.accept()[0] as theirs,
    ):
        theirs.settimeout(WITHIN)
        ours.sendall(wire.encode_connect_request(timeout=4.0))
        frame(theirs)
        theirs.sendall(framed(struct.pack("!iiqi", 0, 4000, 7, 16) + bytes(17)))
        frame(ours)
        yield proxy, ours, theirs


def test_a_cut_ends_both_sides_behind_what_came_before(
    ends: tuple[FaultProxy, socket.socket, socket.socket],
) -> None:
    proxy, ours, theirs = ends
    proxy.drop_reply("getData", nth=2)
    for xid in (1, 2, 3):
        ours.sendall(request(xid, GetData("/", None)))
        frame(theirs)
    theirs.sendall(b"".join(map(reply, (1, 2, 3))))
    assert xid_of(ours) == 1
    for end in (ours, theirs):
        with suppress(ConnectionResetError):  # something may have been on its way
            assert end.recv(1) == b""


def test_a_link_that_hangs_is_silent_both_ways_and_stays_open(
    ends: tuple[FaultProxy, socket.socket, socket.socket],
) -> None:
    proxy, ours, theirs = ends
    hung = proxy.drop_request("getData", then="hang")
    ours.sendall(request(1, GetData("/", None)))
    assert hung.wait(WITHIN)
    theirs.sendall(reply(wire.PING_XID))
    assert proxy.wait_for(lambda: proxy.log[-1].name == "ping", timeout=WITHIN)
    assert not proxy.log[-1].passed
    theirs.close()
    proxy.accept()  # goes through the proxy's thread once more
    assert not select.select([ours], [], [], 0)[0]
    proxy.heal()
    with pytest.raises(ConnectionResetError):
        ours.recv(1)


# --- delays ----------------------------------------------------------------------------------


def test_a_delayed_reply_is_done_and_told_when_it_is_released(
    proxy: FaultProxy, operator: Any, path: str
) -> None:
    with session(proxy.hosts) as connection:
        delay = proxy.delay_reply("create", path=path)
        connection.sendall(request(1, Create(path, b"x", OPEN_ACL_UNSAFE, 0)))
        connection.sendall(request(2, GetData(path, None)))
        assert delay.wait(WITHIN)
        assert operator.kazoo.exists(path)
        assert proxy.wait_for(lambda: proxy.replies["getData"] == 1, timeout=WITHIN)
        with client(proxy.hosts):  # whatever passed before has been written by now
            assert not select.select([connection], [], [], 0)[0]
        delay.release()
        assert [xid_of(connection), xid_of(connection)] == [1, 2]


@contextmanager
def session(hosts: str) -> Iterator[socket.socket]:
    """A connection whose bytes can be looked at, with a session of its own."""
    with dial(hosts) as connection:
        connection.sendall(wire.encode_connect_request(timeout=4.0))
        assert not wire.decode_connect_response(frame(connection)).expired
        yield connection


def test_a_delayed_request_is_not_done_until_it_is_released(
    proxy: FaultProxy, operator: Any, path: str
) -> None:
    with client(proxy.hosts) as kazoo:
        delay = proxy.delay_request("create", path=path)
        made = kazoo.create_async(path, b"x")
        assert delay.wait(WITHIN)
        operator.kazoo.sync("/")
        assert operator.kazoo.exists(path) is None
        delay.release()
        assert made.get(timeout=WITHIN) == path


# --- one direction, and a server that does not know ------------------------------------------


def test_requests_alone_are_cut(proxy: FaultProxy, operator: Any, node: str) -> None:
    with client(proxy.hosts) as kazoo:
        seen = threading.Event()
        kazoo.get(node, watch=lambda _: seen.set())
        proxy.cut("requests")
        kazoo.set_async(node, b"never")
        assert proxy.wait_for(lambda: proxy.log[-1].name == "setData", timeout=WITHIN)
        assert not proxy.log[-1].passed
        operator.kazoo.set(node, b"second", version=0)
        assert seen.wait(WITHIN)  # events still come
        proxy.heal()


def test_an_isolated_server_keeps_a_client_connected_until_its_session_is_gone(
    proxy: FaultProxy, operator: Any, node: str
) -> None:
    """Pings and old reads are answered all the while: it cannot know."""
    with client(proxy.hosts, timeout=2.0) as kazoo:
        states = States(kazoo)
        kazoo.create(f"{node}/mine", ephemeral=True)
        assert kazoo.get(node)[0] == b"first"
        proxy.isolate()
        operator.kazoo.set(node, b"second")
        gone = threading.Event()
        operator.kazoo.exists(f"{node}/mine", watch=lambda _: gone.set())
        assert gone.wait(WITHIN)
        assert kazoo.state == KazooState.CONNECTED
        assert not states.told
        assert kazoo.get(node)[0] == b"first"
        assert proxy.replies["ping"] >= 1
        written = kazoo.set_async(node, b"third")
        later = kazoo.get_async(node)  # behind a write that is never answered
        count = len(proxy.log)
        assert proxy.wait_for(lambda: len(proxy.log) >= count, timeout=WITHIN)
        proxy.heal()
        states.wait(KazooState.LOST)
        for each in (written, later):
            with pytest.raises(GONE):
                each.get(timeout=WITHIN)
    assert operator.kazoo.get(node)[0] == b"second"


# --- events, older answers, errors -----------------------------------------------------------


def test_a_swallowed_event_is_missed_and_nothing_else(
    proxy: FaultProxy, operator: Any, node: str
) -> None:
    with client(proxy.hosts) as kazoo:
        told: list[str] = []
        swallow = proxy.swallow_event("changed", path=node)
        kazoo.get(node, watch=lambda event: told.append(event.path))
        kazoo.get_children(node, watch=lambda event: told.append(event.type))
        operator.kazoo.set(node, b"second")
        operator.kazoo.create(f"{node}/child")
        until(lambda: told, "the other watch fires")
        assert swallow.fired
        assert told == ["CHILD"]
        assert kazoo.get(node)[0] == b"second"


def test_a_read_is_answered_by_what_it_was_answered_before(
    proxy: FaultProxy, operator: Any, node: str
) -> None:
    with client(proxy.hosts) as kazoo:
        assert kazoo.get_children(node) == []
        stale = proxy.answer_stale("getChildren", path=node, times=2)
        operator.kazoo.create(f"{node}/child")
        kazoo.sync(node)
        assert kazoo.get_children(node) == []
        assert kazoo.get_children(node, watch=print) == []
        assert kazoo.get_children(node) == ["child"]
        assert stale.firings == 2


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ("NodeExists", kz.NodeExistsError),
        ("SessionExpired", kz.SessionExpiredError),
        (-118, kz.SessionMovedError),
        (-124, kz.SessionClosedRequireSaslError),
        ("QuotaExceeded", kz.QuotaExceededError),
    ],
)
def test_a_request_fails_with_any_error_and_is_not_done(
    error: int | str, raised: type[Exception], proxy: FaultProxy, operator: Any, path: str
) -> None:
    with client(proxy.hosts) as kazoo:
        failed = proxy.fail("create", error, path=f"{path}*")
        asked = kazoo.create_async(f"{path}-", b"", sequence=True)
        assert failed.wait(WITHIN)
        with pytest.raises(raised):
            asked.get(timeout=WITHIN)
        assert kazoo.exists("/") is not None  # in order, and connected still
    parent, _, name = path.rpartition("/")
    assert not [
        child for child in operator.kazoo.get_children(parent) if child.startswith(f"{name}-")
    ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_that_kazoo_does_not_know_ends_its_loop(proxy: FaultProxy, path: str) -> None:
    with client(proxy.hosts) as kazoo:
        proxy.fail("create", -999)
        kazoo.create_async(path)
        until(lambda: kazoo.client_state == KeeperState.CLOSED, "kazoo's loop ends")


def test_a_request_that_failed_may_have_been_done(
    proxy: FaultProxy, operator: Any, path: str
) -> None:
    with client(proxy.hosts) as kazoo:
        proxy.fail("create", "ConnectionLoss", path=path, done=True)
        with pytest.raises(kz.ConnectionLoss):
            kazoo.create(path)
    assert operator.kazoo.exists(path)


def test_a_reply_is_rewritten_by_any_function(proxy: FaultProxy, node: str) -> None:
    with client(proxy.hosts) as kazoo:
        proxy.rewrite_reply("getData", lambda body: body.replace(b"first", b"FIRST"))
        assert kazoo.get(node)[0] == b"FIRST"
        assert kazoo.get(node)[0] == b"first"


# --- handshakes ------------------------------------------------------------------------------


def test_a_welcome_names_another_session(proxy: FaultProxy) -> None:
    proxy.rewrite_connect(session_id=-77)
    with client(proxy.hosts) as kazoo:
        assert kazoo.client_id[0] == -77


def test_a_welcome_says_that_the_session_has_expired(proxy: FaultProxy) -> None:
    with client(proxy.hosts) as kazoo:
        states = States(kazoo)
        proxy.rewrite_connect(timeout=0.0)
        proxy.drop()
        states.wait(KazooState.LOST)
        states.wait(KazooState.CONNECTED)


def test_a_server_says_that_it_is_read_only(proxy: FaultProxy) -> None:
    rule = proxy.rewrite_connect(read_only=True, times=None)
    with client(proxy.hosts, read_only=True) as kazoo:
        until(lambda: kazoo.client_state == KeeperState.CONNECTED_RO, "the client may only read")
        rule.cancel()
        # kazoo asks every server whether it writes, and finds one.
        until(lambda: kazoo.client_state == KeeperState.CONNECTED, "the client may write")


def test_a_session_is_swapped_without_a_word(proxy: FaultProxy, operator: Any, node: str) -> None:
    with client(proxy.hosts) as kazoo:
        states, before = States(kazoo), kazoo.client_id[0]
        kazoo.create(f"{node}/mine", ephemeral=True)
        swap = proxy.swap_session()
        proxy.drop()
        assert swap.wait(WITHIN)
        states.wait(KazooState.CONNECTED)
        assert kazoo.client_id[0] != before
        assert KazooState.LOST not in states.told
        assert operator.kazoo.exists(f"{node}/mine").ephemeralOwner == before


# --- several ---------------------------------------------------------------------------------


def test_every_server_has_a_port_and_the_chroot_is_passed_on(
    proxy: FaultProxy, zookeeper: LocalEnsemble, operator: Any, node: str
) -> None:
    with LocalEnsemble(tick_time=TICK) as other:
        hosts = f"{zookeeper.hosts},{other.hosts}{node}"
        with FaultProxy(hosts) as both:
            assert both.hosts.endswith(node)
            first, second = both.hosts.removesuffix(node).split(",")
            with client(f"{first}{node}") as one:
                one.create("/child")
            with client(second) as two:
                assert two.exists(node) is None
    assert operator.kazoo.exists(f"{node}/child")


def test_proxies_before_one_server_do_not_hear_each_other(
    proxy: FaultProxy, zookeeper: LocalEnsemble, node: str
) -> None:
    with FaultProxy(zookeeper.hosts) as other, client(proxy.hosts), client(other.hosts) as kazoo:
        proxy.cut()
        kazoo.get(node)
        assert other.requests["getData"] == 1
        assert proxy.requests["getData"] == 0
        proxy.heal()


def test_rules_that_did_not_fire_can_be_told(proxy: FaultProxy, node: str) -> None:
    with client(proxy.hosts) as kazoo:
        first, never = proxy.drop_reply("getData"), proxy.drop_reply("delete")
        with pytest.raises(GONE):
            kazoo.get(node)
        assert proxy.rules == (first, never)
        assert proxy.unfired == (never,)
        never.cancel()
        assert not proxy.unfired
    assert repr(first) == "<Rule drop_reply getData matches=1 firings=1>"
    assert [f.fault for f in proxy.log if not f.passed] == ["drop_reply getData"]


@pytest.mark.parametrize(
    "make",
    [
        lambda proxy: proxy.drop_reply("creat"),
        lambda proxy: proxy.drop_request("event"),
        lambda proxy: proxy.drop_reply("create", then="close"),
        lambda proxy: proxy.drop_reply("create", nth=0),
        lambda proxy: proxy.fail("ping", -1),
        lambda proxy: proxy.fail("create", 3),
        lambda proxy: proxy.answer_stale("create"),
        lambda proxy: proxy.swallow_event("gone"),
        lambda proxy: proxy.tear_reply("create", size=-1),
        lambda _: FaultProxy("h1:1/a,h2:2"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    make: Callable[[FaultProxy], object], proxy: FaultProxy
) -> None:
    with pytest.raises(InvalidArgument):
        make(proxy)
    assert proxy.rules == ()


# --- the command -----------------------------------------------------------------------------


class Command:
    """``python -m zkelect.testing.proxy``, with its output as lines."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "zkelect.testing.proxy", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.hosts = self.process.stdout.readline().strip()

    def order(self, line: str) -> str:
        """Give a command that is answered by one line, and return that."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.told()

    def told(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline().strip()

    def quit(self) -> str:
        out, _ = self.process.communicate("quit\n", timeout=WITHIN)
        assert self.process.returncode == 0
        return out


def test_the_command_shows_frames_and_obeys(zookeeper: LocalEnsemble, node: str) -> None:
    command = Command(zookeeper.hosts, "--do", f"drop_reply getData path={node}")
    try:
        assert command.told() == f"rule 1: drop_reply getData path={node}"
        assert command.order("fail create -110 nth=2 times=all").endswith(
            "fail create error=-110 nth=2 times=all"
        )
        assert "no such command" in command.order("fall create")
        assert "then='close'" in command.order("drop_reply create then=close")
        assert "unexpected keyword" in command.order("drop_reply create when=now")
        with client(command.hosts) as kazoo:
            with pytest.raises(GONE):
                kazoo.get(node)
            assert again(kazoo, node) == b"first"
        assert command.order("rules").startswith("rule 1: drop_reply getData")
        shown = command.quit()
    finally:
        command.process.kill()
        command.process.communicate()
    assert f"< getData xid=1 {node} [lost: drop_reply getData path={node}]" in shown
    assert shown.count("> connect") == 2


def test_the_command_refuses_hosts_that_are_none() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "zkelect.testing.proxy", "zk1:port"],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (64, "")
    assert "zk1:port" in ended.stderr
