"""Plain znodes: read, and followed through changes, reconnects and their absence."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN
from kazoo.security import make_acl

import zkelect
from zkelect.testing import FaultProxy, expire

if TYPE_CHECKING:
    from conftest import Operator


@pytest.fixture
def znodes(session: zkelect.Session) -> zkelect.Znodes:
    return zkelect.Znodes(session)


def test_a_znode_is_read_with_its_version(
    znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    assert (znodes.get(path), znodes.children(path)) == (None, None)
    znodes.ensure(f"{path}/b")
    znodes.ensure(f"{path}/a")
    operator.kazoo.set(path, b"1")
    operator.kazoo.set(path, b"2")
    assert znodes.get(path) == zkelect.Znode(data=b"2", version=2)
    assert znodes.children(path) == ("a", "b")


def test_it_is_replaced_only_as_it_was_read(
    znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    assert not znodes.replace(path, b"1", version=0)
    operator.kazoo.create(path, b"0")
    assert znodes.replace(path, b"1", version=0)
    assert not znodes.replace(path, b"2", version=0)
    assert znodes.get(path) == zkelect.Znode(data=b"1", version=1)


def test_a_lost_answer_to_replacing_is_found_out(
    proxy: FaultProxy, znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    operator.kazoo.create(path, b"0")
    proxy.drop_reply("multi", path=path)
    assert znodes.replace(path, b"1", version=0)
    assert znodes.get(path) == zkelect.Znode(data=b"1", version=1)
    assert not proxy.unfired


@pytest.mark.usefixtures("no_slow_look")
def test_every_state_it_comes_to_rest_in_is_told(
    znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    with znodes.follow(path) as changes:
        assert next(changes) is None
        operator.kazoo.create(path, b"1")
        assert next(changes) == zkelect.Znode(data=b"1", version=0)
        operator.kazoo.set(path, b"2")
        assert next(changes) == zkelect.Znode(data=b"2", version=1)
        operator.kazoo.delete(path)
        assert next(changes) is None
        operator.kazoo.create(path, b"3")
        assert next(changes) == zkelect.Znode(data=b"3", version=0)
        assert changes.fresh


def test_one_made_between_the_two_questions_is_not_missed(
    proxy: FaultProxy, znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    held = proxy.delay_reply("getData", path=path)
    made = threading.Thread(target=lambda: operator.kazoo.create(path, b"1"))
    with znodes.follow(path) as changes:
        first = changes.znode
        made.start()
        made.join(WITHIN)
        held.release()
        while first is None:
            first = next(changes)
    assert first == zkelect.Znode(data=b"1", version=0)


def test_what_changes_while_the_link_is_down_is_told_when_it_is_back(
    proxy: FaultProxy, session: zkelect.Session, operator: Operator, path: str
) -> None:
    operator.kazoo.create(path, b"1")
    with zkelect.Znodes(session).follow(path) as changes:
        assert next(changes) == zkelect.Znode(data=b"1", version=0)
        proxy.isolate()
        operator.kazoo.set(path, b"2")
        proxy.heal()
        assert next(changes) == zkelect.Znode(data=b"2", version=1)
        expire(session)
        operator.kazoo.set(path, b"3")
        assert next(changes) == zkelect.Znode(data=b"3", version=2)


def test_a_swallowed_event_is_made_up_for(
    proxy: FaultProxy, znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    operator.kazoo.create(path, b"1")
    with znodes.follow(path) as changes:
        assert next(changes) == zkelect.Znode(data=b"1", version=0)
        swallowed = proxy.swallow_event(path=path)
        operator.kazoo.set(path, b"2")
        assert changes.wait(WITHIN)
        assert changes.znode == zkelect.Znode(data=b"2", version=1)
        assert swallowed not in proxy.unfired


def test_a_loop_ends_when_the_block_is_left_or_the_session_closed(
    session: zkelect.Session, znodes: zkelect.Znodes, path: str
) -> None:
    changes = znodes.follow(path)
    with changes:
        assert not changes.wait(0.0) or changes.znode is None
        ending = threading.Thread(target=changes.close)
        ending.start()
        assert list(changes) in ([], [None])
        ending.join(WITHIN)
    with znodes.follow(path) as changes:
        assert next(changes) is None
        threading.Thread(target=session.close).start()
        with pytest.raises(zkelect.SessionClosed):
            next(changes)


def test_without_permission_it_says_so(
    znodes: zkelect.Znodes, operator: Operator, path: str
) -> None:
    operator.kazoo.create(path, acl=[make_acl("digest", "nobody:" + "x" * 28, all=True)])
    for ask in (znodes.get, znodes.children, lambda where: znodes.follow(where).__enter__()):
        with pytest.raises(zkelect.PermissionDenied, match=path):
            ask(path)


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a/../b", "/\x00", 7])
def test_what_is_no_path_is_refused(znodes: zkelect.Znodes, path: str) -> None:
    for ask in (znodes.get, znodes.children, znodes.ensure, znodes.follow):
        with pytest.raises(zkelect.InvalidArgument):
            ask(path)
