"""One pgbouncer under pages that a test writes: held, led on, restarted, abandoned."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from election.waiting import until
from recipes.bouncer import Bouncer, Leader
from servers.postgresql import PostgreSql

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.clock import now
from zkelect.recipes.member import Member
from zkelect.recipes.notes import encode
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from zkelect.testing import LocalEnsemble


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, PostgreSql]]:
    """Two that take writes, and know nothing of each other: it is only asked who answers."""
    with PostgreSql() as a, PostgreSql() as b:
        yield {"a": a, "b": b}


class Scene:
    """A page, and a pgbouncer that is led by it."""

    def __init__(
        self, servers: dict[str, PostgreSql], zookeeper: LocalEnsemble, path: str, stack: ExitStack
    ) -> None:
        self.servers = servers
        self.zookeeper = zookeeper
        self.path = path
        session = stack.enter_context(zkelect.connect(zookeeper.hosts, session_timeout=2.0))
        self.board = Board(session, path)
        self.board.prepare()
        self._znodes = zkelect.Znodes(session)
        self._members = tuple(
            Member(name=name, address=f"host=127.0.0.1 port={server.port}")
            for name, server in servers.items()
        )
        self._serial = 0
        self._clients = stack.enter_context(ThreadPoolExecutor())
        self.steady("a")

    # --- pages ------------------------------------------------------------------------------------

    def write(self, phase: Phase, primary: str) -> None:
        self._serial += 1
        page = Page(
            phase=phase, serial=self._serial, token="t", coordinator="a", primary=primary,
            members=self._members, planned=True,
        )  # fmt: skip
        znode = self._znodes.get(f"{self.path}/page")
        assert znode is not None
        assert self._znodes.replace(f"{self.path}/page", encode(page), version=znode.version)

    def steady(self, primary: str) -> None:
        self.write(Phase.STEADY, primary)

    def change(self) -> None:
        """Begin to change the primary a, and wait until the pool is ready for it."""
        self.write(Phase.DEMOTE, "a")
        until(lambda: self.ready, "the pool is ready")

    @property
    def ready(self) -> bool:
        return self.board.pools() == {"pool": Pool(ready=self._serial)}

    # --- clients ----------------------------------------------------------------------------------

    def ask(self, bouncer: Bouncer) -> Future[str]:
        """Have a client ask who serves it; it may have to wait."""
        return self._clients.submit(self._ask, bouncer)

    def _ask(self, bouncer: Bouncer) -> str:
        with bouncer.connect() as client:
            return self.who(client)

    def who(self, client: psycopg.Connection[Any]) -> str:
        row = client.execute("select inet_server_port()").fetchone()
        assert row is not None
        (name,) = (name for name, server in self.servers.items() if server.port == row[0])
        return name

    # --- pgbouncer --------------------------------------------------------------------------------

    @contextmanager
    def led(self, bouncer: Bouncer, *options: str) -> Iterator[Leader]:
        """Have it led, and wait until it leads to the primary."""
        bouncer.file.touch()
        bouncer.start()
        with Leader(bouncer, self.zookeeper.hosts, self.path, *options) as leader:
            until(lambda: leads_to(bouncer, self.servers["a"]), "it leads to a")
            assert self.ask(bouncer).result(30) == "a"
            until(lambda: self.board.pools() == {"pool": Pool()}, "the pool is known")
            yield leader


@pytest.fixture
def scene(servers: dict[str, PostgreSql], zookeeper: LocalEnsemble, path: str) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(servers, zookeeper, path, stack)


@pytest.fixture
def bouncer() -> Iterator[Bouncer]:
    with Bouncer() as made:
        yield made


# --- a change ------------------------------------------------------------------------------------


def test_clients_wait_while_the_primary_is_changed_and_go_on_at_the_new_one(
    scene: Scene, bouncer: Bouncer
) -> None:
    with scene.led(bouncer), bouncer.connect() as client:
        assert scene.who(client) == "a"
        begun = now()
        scene.change()
        held = now() - begun
        assert bouncer.shown("SERVERS") == []
        waiting = scene.ask(bouncer)
        until(lambda: waits(bouncer), "a client waits")
        for phase in (Phase.FREEZE, Phase.CATCH_UP, Phase.PROMOTE, Phase.OPEN):
            scene.write(phase, "b" if phase is Phase.OPEN else "a")
            until(lambda: scene.ready, "the pool is ready")
            assert not waiting.done()
        begun = now()
        scene.steady("b")
        assert waiting.result(30) == "b"
        print(f"held after {held:.3f} s, gone on after {now() - begun:.3f} s")
        assert scene.who(client) == "b"


def test_a_change_that_is_called_off_leads_back(scene: Scene, bouncer: Bouncer) -> None:
    with scene.led(bouncer):
        scene.change()
        waiting = scene.ask(bouncer)
        scene.steady("a")
        assert waiting.result(30) == "a"


def test_an_open_transaction_is_waited_for_and_not_for_ever(scene: Scene, bouncer: Bouncer) -> None:
    with scene.led(bouncer, "--within", "0.5"), bouncer.connect(autocommit=False) as client:
        assert scene.who(client) == "a"
        scene.change()  # it is ready although the transaction is open
        assert bouncer.paused()
        assert scene.who(client) == "a"
        client.commit()
        scene.steady("b")
        assert scene.who(client) == "b"


def test_with_session_pooling_open_sessions_stay_and_new_ones_wait(scene: Scene) -> None:
    session = ("pool_mode = transaction", "pool_mode = session")
    with (
        Bouncer(session) as bouncer,
        scene.led(bouncer, "--within", "0.5"),
        bouncer.connect() as client,
    ):
        assert scene.who(client) == "a"
        scene.change()
        waiting = scene.ask(bouncer)
        assert scene.who(client) == "a"
        assert not waiting.done()
        scene.steady("b")
        assert waiting.result(30) == "b"


# --- what may happen meanwhile -------------------------------------------------------------------


def test_a_pgbouncer_that_is_restarted_in_between_is_held_again(
    scene: Scene, bouncer: Bouncer
) -> None:
    with scene.led(bouncer):
        scene.change()
        bouncer.process.kill()
        bouncer.start()
        until(bouncer.paused, "it is held")
        waiting = scene.ask(bouncer)
        scene.steady("b")
        assert waiting.result(30) == "b"


def test_a_pgbouncer_that_is_down_is_not_waited_for_for_ever(
    scene: Scene, bouncer: Bouncer
) -> None:
    """And when it is started it leads to the new primary."""
    with scene.led(bouncer):
        bouncer.process.kill()
        scene.change()
        scene.steady("b")
        until(lambda: str(scene.servers["b"].port) in bouncer.file.read_text(), "the file is new")
        bouncer.start()
        assert scene.ask(bouncer).result(30) == "b"


@pytest.mark.parametrize("meanwhile", ["a", "b"])
def test_who_comes_after_one_that_was_killed_lets_the_clients_go_on(
    scene: Scene, bouncer: Bouncer, meanwhile: str
) -> None:
    with scene.led(bouncer) as leader:
        scene.change()
        waiting = scene.ask(bouncer)
        leader.end(signal.SIGKILL)
        scene.steady(meanwhile)
        assert bouncer.paused()
        leader.start()
        assert waiting.result(30) == meanwhile


def test_one_that_is_ended_lets_the_clients_go(scene: Scene, bouncer: Bouncer) -> None:
    with scene.led(bouncer) as leader:
        scene.change()
        assert leader.end() == 128 + signal.SIGTERM
        assert not bouncer.paused()
        assert scene.ask(bouncer).result(30) == "a"


def test_whom_somebody_else_has_paused_stays_so(scene: Scene, bouncer: Bouncer) -> None:
    with scene.led(bouncer) as leader:
        bouncer.told("PAUSE app")
        scene.steady("b")
        until(lambda: leads_to(bouncer, scene.servers["b"]), "it leads to b")
        assert leader.end() == 128 + signal.SIGTERM
        assert bouncer.paused()


def test_without_zookeeper_it_is_left_as_it_is(
    servers: dict[str, PostgreSql], doomed: LocalEnsemble, path: str, bouncer: Bouncer
) -> None:
    with ExitStack() as stack:
        scene = Scene(servers, doomed, path, stack)
        with scene.led(bouncer):
            scene.change()
            doomed.servers[0].kill()
            waiting = scene.ask(bouncer)
            bouncer.process.kill()  # and is held again, by the page that was read last
            bouncer.start()
            until(bouncer.paused, "it is held")
            again = scene.ask(bouncer)
            doomed.servers[0].start()
            scene.steady("b")
            assert again.result(30) == "b"
            with pytest.raises(psycopg.Error):
                waiting.result(30)


# --- what is refused ----------------------------------------------------------------------------


def test_a_configuration_that_does_not_include_the_file_is_told(
    scene: Scene, bouncer: Bouncer
) -> None:
    bouncer.configure((f"%include {bouncer.file}", ""))
    bouncer.start()
    with Leader(bouncer, scene.zookeeper.hosts, scene.path) as leader:
        assert leader.wait() == 1
    assert "does not lead app to 127.0.0.1:" in leader.said
    assert f"%include {bouncer.file}" in leader.said
    assert "Traceback" not in leader.said


def test_a_configuration_that_includes_the_file_no_more_is_told_and_mended(
    scene: Scene, bouncer: Bouncer
) -> None:
    with scene.led(bouncer) as leader:
        scene.change()
        waiting = scene.ask(bouncer)
        bouncer.configure((f"%include {bouncer.file}", ""))
        scene.steady("b")
        until(lambda: "does not lead app to" in leader.said, "it is told")
        bouncer.configure()
        until(lambda: leads_to(bouncer, scene.servers["b"]), "it leads to b")
        assert scene.ask(bouncer).result(30) == "b"
        assert leader.process.poll() is None
        waiting.exception(30)  # pgbouncer may have sent it away with the database


def test_a_user_who_may_only_look_is_told(scene: Scene, bouncer: Bouncer) -> None:
    bouncer.file.touch()
    bouncer.start()
    looker = bouncer.admin.replace("user=pgbouncer", "user=looker")
    with Leader(bouncer, scene.zookeeper.hosts, scene.path, admin=looker) as leader:
        assert leader.wait() == 1
    assert "must be in admin_users" in leader.said
    assert "Traceback" not in leader.said


# --- looking ------------------------------------------------------------------------------------


def waits(bouncer: Bouncer) -> bool:
    return any(int(row["cl_waiting"]) for row in bouncer.shown("POOLS"))


def leads_to(bouncer: Bouncer, server: PostgreSql) -> bool:
    rows = bouncer.shown("DATABASES")
    return ("app", server.port) in {(row["name"], row["port"]) for row in rows}
