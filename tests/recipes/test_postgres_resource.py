"""What is concluded from what a PostgreSQL server says of itself, or does not."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import attrs
import psycopg
import pytest
import sqlalchemy

from zkelect import RequestFailed, stores
from zkelect.recipes.clock import now
from zkelect.recipes.member import Member, Role
from zkelect.recipes.postgres import (
    Place,
    Postgres,
    checks,
    intake,
    promoting,
    resource,
    synchrony,
)
from zkelect.recipes.postgres.asking import NoAnswer
from zkelect.recipes.postgres.state import State
from zkelect.recipes.resource import NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PRIMARY = State(
    system="7",
    standby=False,
    follows="",
    paused=False,
    replayed=None,
    received=None,
    promised=None,
    streaming=False,
    receiver=None,
    idle=False,
)
STANDBY = attrs.evolve(PRIMARY, standby=True)


@attrs.frozen
class Control:
    """What the control file says."""

    standby: bool


@attrs.define
class Machine:
    """A server that is not there, in place of what the resource asks and does.

    :ivar state: what it says. :ivar control: what its control file says. :ivar done: to it.
    """

    state: State = STANDBY
    control: Control = Control(standby=True)
    done: list[str] = attrs.Factory(list)

    def kill(self, place: Place) -> None:
        self.done.append("kill")
        self.state, self.control = STANDBY, Control(standby=True)

    def note(self, what: str) -> Callable[..., None]:
        return lambda *_: self.done.append(what)


def fail(*_: object, **__: object) -> Any:
    raise NotNow("not by the deadline")


def refuse(*_: object, **__: object) -> Any:
    raise NoAnswer(psycopg.OperationalError("FATAL: no WAL sender is left"))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    given: dict[str, object] = {
        "find_postmaster": lambda place: 1,
        "read_state": lambda place, deadline: made.state,
        "locate": lambda conninfo, deadline: None,
        "control": lambda place, deadline: made.control,
        "kill": made.kill,
        "bar": made.note("bar"),
        "start": made.note("start"),
        "start_alone": made.note("start alone"),
        "mark_as_standby": made.note("mark"),
    }
    for name, value in given.items():
        monkeypatch.setattr(resource, name, value)
    monkeypatch.setattr(promoting, "is_primary", lambda place, deadline: not made.state.standby)
    monkeypatch.setattr(intake, "apply_received", lambda place, deadline: None)
    return made


@pytest.fixture
def server(tmp_path: Path) -> Postgres:
    place = Place(data_directory=tmp_path, local=f"host={tmp_path}", credentials="user=z")
    return Postgres(Member(name="a", address="host=127.0.0.1"), place, domain="/a")


def soon() -> float:
    return now() + 60


def test_a_server_that_is_not_to_be_looked_at_in_time_is_refused(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent ends with a message, and not with where it happened."""
    monkeypatch.setattr(resource, "claim", lambda folder: None)
    monkeypatch.setattr(checks, "check", fail)
    with pytest.raises(Unfit, match=r"within 60 s: not by the deadline"):
        server.check()


# --- it may become the primary at any moment ---------------------------------------------------


@pytest.mark.parametrize("planned", [False, True])
def test_h81_who_was_asked_to_lead_is_killed_though_it_is_a_standby_still(
    machine: Machine, server: Postgres, monkeypatch: pytest.MonkeyPatch, *, planned: bool
) -> None:
    """Its promotion may take minutes, and comes about after the lease."""
    monkeypatch.setattr(promoting, "become_primary", fail)
    with pytest.raises(NotNow):
        server.promote(soon())
    server.demote(planned=planned, deadline=soon())
    assert machine.done.count("kill") == 1


def test_h81_who_is_demoted_while_it_is_asked_to_lead_is_killed_once_more(
    machine: Machine, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease may end while the promotion is under way: it is asked again after that."""

    def demoted_meanwhile(place: Place, deadline: float) -> None:
        server.demote(planned=False, deadline=deadline)

    monkeypatch.setattr(promoting, "become_primary", demoted_meanwhile)
    server.promote(soon())
    server.demote(planned=False, deadline=soon())
    assert machine.done.count("kill") == 2


def test_a_standby_that_nobody_asked_is_left_as_it_is(machine: Machine, server: Postgres) -> None:
    server.demote(planned=False, deadline=soon())
    assert "kill" not in machine.done


def test_h81_who_is_promoted_while_it_comes_back_is_killed(
    machine: Machine, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    def promoted_meanwhile(place: Place, deadline: float) -> None:
        machine.state = PRIMARY

    monkeypatch.setattr(intake, "apply_received", promoted_meanwhile)
    assert server.demote(planned=False, deadline=soon()) is None
    assert machine.done[-1] == "kill"


# --- it answers, but does not tell where it stands ---------------------------------------------


def test_a_primary_that_has_no_wal_sender_left_is_a_primary_still(
    machine: Machine, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.state = PRIMARY
    monkeypatch.setattr(resource, "locate", refuse)
    seen = server.observe()
    assert (seen.role, seen.healthy, seen.position) == (Role.PRIMARY, True, None)
    assert "no WAL sender is left" in seen.detail


def test_a_primary_that_does_not_tell_in_time_may_hang(
    machine: Machine, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.state = PRIMARY
    monkeypatch.setattr(resource, "locate", refuse)
    monkeypatch.setattr(resource, "_LOOK_TIMEOUT", -1.0)
    assert not server.observe().healthy


def test_a_standby_that_does_not_tell_is_no_candidate(
    machine: Machine, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "locate", refuse)
    seen = server.observe()
    assert (seen.role, seen.healthy) == (Role.UNKNOWN, False)


# --- commits that wait for nobody --------------------------------------------------------------


def weak(monkeypatch: pytest.MonkeyPatch, *, names: str) -> None:
    found = {"synchronous_commit": "local", "synchronous_standby_names": names}
    monkeypatch.setattr(synchrony, "read_settings", lambda place, asked, deadline: found)


def test_nobody_is_required_where_commits_do_not_wait(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak(monkeypatch, names="")
    with pytest.raises(Unfit, match=r"synchronous_commit is 'local'.*set it to 'on'"):
        server.require(["b"], soon())
    with pytest.raises(Unfit, match="synchronous_commit is 'local'"):
        server.in_step()


def test_whoever_is_required_is_struck_off_when_commits_do_not_wait_any_more(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak(monkeypatch, names='FIRST 1 ("b")')
    assert server.in_step() == frozenset()


# --- a server that hangs in the claim ----------------------------------------------------------


@attrs.frozen
class Connection:
    """One over which no answer comes."""

    wire: socket.socket

    def fileno(self) -> int:
        return self.wire.fileno()


@attrs.frozen
class Lease:
    """A leadership of which little is left."""

    deadline: float


class SilentFence:
    """One that waits for an answer over the connection that it is given."""

    def __init__(self, connecting: Callable[[], Connection], *, domain: str) -> None:
        self._connecting = connecting

    def claim(self, leadership: Lease, *, initialize: bool) -> None:
        if self._connecting().wire.recv(1) == b"":
            raise RequestFailed("postgresql", "claim", "cut off")


@pytest.mark.timeout(20)
def test_no_answer_to_the_claim_is_waited_for_beyond_the_lease(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(psycopg, "connect", lambda *_, **__: Connection(ours))
        monkeypatch.setattr(sqlalchemy, "create_engine", lambda *_, creator, **__: creator)
        monkeypatch.setattr(stores, "SqlFence", SilentFence)
        lease: Any = Lease(now() + 0.05)
        with pytest.raises(RequestFailed, match="cut off"):
            server.claim(lease)
