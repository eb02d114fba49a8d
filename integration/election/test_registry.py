"""Who is there: notes that go with their sessions, and come again with the next one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN, until
from kazoo.security import make_acl

import zkelect
from zkelect.testing import FaultProxy, expire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Operator

    from zkelect.testing import LocalEnsemble


@pytest.fixture
def other(zookeeper: LocalEnsemble) -> Iterator[zkelect.Session]:
    with zkelect.connect(zookeeper.hosts, session_timeout=2.0, tick_time=0.2) as opened:
        yield opened


@pytest.fixture
def registry(session: zkelect.Session, path: str) -> zkelect.Registry:
    return zkelect.Registry(session, path)


def entries(session: zkelect.Session, path: str) -> dict[str, bytes]:
    return zkelect.Registry(session, path).entries()


def test_a_note_is_there_from_registering_to_closing(
    registry: zkelect.Registry, other: zkelect.Session, path: str
) -> None:
    assert registry.entries() == {}
    with registry.register("a", b"1") as registration:
        assert registration.settled
        assert entries(other, path) == {"a": b"1"}
        registration.update(b"2")
        registration.wait(WITHIN)
        assert entries(other, path) == {"a": b"2"}
    assert entries(other, path) == {}
    registration.close()


def test_it_is_ephemeral_and_goes_with_its_session(
    proxy: FaultProxy, other: zkelect.Session, path: str
) -> None:
    with zkelect.connect(proxy.hosts, session_timeout=2.0, tick_time=0.2) as session:
        zkelect.Registry(session, path).register("a", b"")
    assert entries(other, path) == {}


def test_after_a_lost_session_it_is_made_again(
    registry: zkelect.Registry, session: zkelect.Session, other: zkelect.Session, path: str
) -> None:
    with registry.register("a", b"1") as registration:
        first = session.session_id
        expire(session)
        until(lambda: session.session_id not in (None, first), "there is a new session")
        registration.wait(WITHIN)
        assert entries(other, path) == {"a": b"1"}


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_lost_answer_leaves_one_note_with_what_was_said_last(
    nth: int,
    proxy: FaultProxy,
    registry: zkelect.Registry,
    other: zkelect.Session,
    path: str,
) -> None:
    zkelect.Znodes(other).ensure(path)
    proxy.drop_reply("multi", path=f"{path}/a", nth=nth)
    with registry.register("a", b"1", timeout=WITHIN) as registration:
        for data in (b"2", b"3"):
            registration.update(data)
            registration.wait(WITHIN)
        assert entries(other, path) == {"a": b"3"}
        assert not proxy.unfired


def test_what_is_said_while_the_link_is_down_is_said_when_it_is_back(
    proxy: FaultProxy, registry: zkelect.Registry, other: zkelect.Session, path: str
) -> None:
    with registry.register("a", b"1") as registration:
        proxy.isolate()
        for number in range(100):
            registration.update(b"%d" % number)
        proxy.heal()
        registration.wait(WITHIN)
        assert entries(other, path) == {"a": b"99"}


def test_one_that_somebody_deletes_is_made_again(
    registry: zkelect.Registry, operator: Operator, path: str
) -> None:
    with registry.register("a", b"1") as registration:
        operator.kazoo.delete(f"{path}/a")
        registration.update(b"2")
        registration.wait(WITHIN)
        assert registry.entries() == {"a": b"2"}


@pytest.mark.usefixtures("no_slow_look")
def test_a_name_that_another_session_holds_is_waited_for(
    registry: zkelect.Registry, other: zkelect.Session, path: str
) -> None:
    holder = zkelect.Registry(other, path).register("a", b"theirs")
    with pytest.raises(zkelect.NameTaken) as taken:
        registry.register("a", b"ours", timeout=3.0)
    assert taken.value.path == f"{path}/a"
    assert registry.entries() == {"a": b"theirs"}

    registered: list[zkelect.Registration] = []
    waiting = threading.Thread(
        target=lambda: registered.append(registry.register("a", b"ours", timeout=WITHIN))
    )
    waiting.start()
    holder.close()
    waiting.join(WITHIN)
    assert registry.entries() == {"a": b"ours"}
    registered[0].close()


def test_registering_without_permission_says_so(
    registry: zkelect.Registry, operator: Operator, path: str
) -> None:
    operator.kazoo.create(path, acl=[make_acl("digest", "nobody:" + "x" * 28, all=True)])
    with pytest.raises(zkelect.PermissionDenied, match=path):
        registry.register("a", b"1")
    with pytest.raises(zkelect.PermissionDenied, match=path):
        registry.entries()


@pytest.mark.parametrize(
    ("name", "data"), [("a/b", b""), ("", b""), (".", b""), ("a", b"x" * (2**19 + 1))]
)
def test_bad_input_is_refused_and_nothing_is_made(
    registry: zkelect.Registry, name: str, data: bytes
) -> None:
    with pytest.raises(zkelect.InvalidArgument):
        registry.register(name, data)
    assert registry.entries() == {}


def test_of_a_closed_session_nothing_is_kept(proxy: FaultProxy, path: str) -> None:
    session = zkelect.connect(proxy.hosts, session_timeout=2.0, tick_time=0.2)
    registration = zkelect.Registry(session, path).register("a", b"1")
    session.close()
    with pytest.raises(zkelect.SessionClosed):
        registration.update(b"2")
    with pytest.raises(zkelect.SessionClosed):
        registration.wait(0.0)
    registration.close()
