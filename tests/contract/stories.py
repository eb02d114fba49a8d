"""What ZooKeeper does, told once: the ensemble in memory and a real one are held to it.

A story takes a :class:`contract.world.World` and asserts. Those that begin with ``znodes``,
``watches`` and ``sessions`` tell what the library relies on; ``elections`` what it makes of
it. A story that passes on one of the two worlds only shows that the other one is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from contract.world import (
    SESSION_TIMEOUT,
    Stander,
    World,
    ask,
    candidate,
    children,
    create,
    crowd,
    delete,
    exists,
    faults,
    get,
    multi,
    put,
    remove,
    send_all,
)

import zkelect
from zkelect.core.history import decode_history
from zkelect.core.record import decode_term
from zkelect.core.state import Phase
from zkelect.session.gateway import Check, Delete, Failure, Fault, Put
from zkelect.session.terms import history_path, term_path
from zkelect.testing import expire

Story = Callable[[World], None]
STORIES: dict[str, Story] = {}


def story(tell: Story) -> Story:
    STORIES[tell.__name__] = tell
    return tell


def number_of(answer: Any) -> int:
    return int(answer[0][-10:])


# --- znodes and transactions -------------------------------------------------------------------


@story
def znodes_of_sequential_creates_are_numbered_by_every_child_ever_made(world: World) -> None:
    a = world.connect()
    first, plain, second, gone, third = ask(
        world,
        a,
        candidate(f"{world.path}/x-"),
        create(f"{world.path}/plain"),
        candidate(f"{world.path}/y-"),
        delete(f"{world.path}/plain"),
        candidate(f"{world.path}/x-"),
    )
    assert plain == f"{world.path}/plain"
    assert gone is True
    assert first[0] == f"{world.path}/x-0000000000"
    assert [number_of(answer) for answer in (first, second, third)] == [0, 2, 3]


@story
def znodes_numbers_restart_with_a_parent_made_anew(world: World) -> None:
    a = world.connect()
    parent = f"{world.path}/parent"
    _, old = ask(world, a, create(parent), candidate(f"{parent}/x-"))
    remove(world, a, parent)
    _, new = ask(world, a, create(parent), candidate(f"{parent}/x-"))
    assert number_of(old) == number_of(new) == 0
    assert new[1].czxid > old[1].czxid


@story
def znodes_each_write_takes_the_next_zxid_a_refused_one_too_a_read_none(world: World) -> None:
    a = world.connect()
    first, _, second, _, _, third = ask(
        world,
        a,
        candidate(f"{world.path}/x-"),
        children(world.path),
        candidate(f"{world.path}/x-"),
        create(world.path),
        multi(Check(path=f"{world.path}/nowhere")),
        candidate(f"{world.path}/x-"),
    )
    zxids = [answer[1].czxid for answer in (first, second, third)]
    assert [zxid - zxids[0] for zxid in zxids] == [0, 1, 4]
    assert a.zxid == zxids[-1]


@story
def znodes_tell_whose_they_are(world: World) -> None:
    a, b = world.connect(), world.connect()
    made = ask(world, a, candidate(f"{world.path}/x-", b"a"))
    seen = ask(world, b, get(made[0]))
    assert seen == (b"a", made[1])
    assert made[1].owner == a.session_id != b.session_id
    assert ask(world, b, get(world.path))[1].owner == 0


@story
def znodes_refuse_what_cannot_be_done(world: World) -> None:
    a = world.connect()
    mine = ask(world, a, candidate(f"{world.path}/x-"))[0]
    answers = ask(
        world,
        a,
        create(world.path),
        create(f"{world.path}/no/where"),
        candidate(f"{world.path}/no/where-"),
        create(f"{mine}/child"),
        delete(world.path),
        delete(f"{world.path}/nothing"),
        get(f"{world.path}/nothing"),
        exists(f"{world.path}/nothing"),
        children(f"{world.path}/nothing"),
    )
    assert [answer.fault if answer is not None else None for answer in answers] == [
        Fault.NODE_EXISTS,
        Fault.NO_NODE,
        Fault.NO_NODE,
        Fault.OTHER,
        Fault.OTHER,
        Fault.NO_NODE,
        Fault.NO_NODE,
        None,
        Fault.NO_NODE,
    ]
    assert [type(answer.cause).__name__ for answer in answers[3:5]] == [
        "NoChildrenForEphemeralsError",
        "NotEmptyError",
    ]


@story
def znodes_count_their_versions(world: World) -> None:
    a = world.connect()
    path = ask(world, a, create(f"{world.path}/x"))
    (first,) = ask(world, a, put(path, b"1", 0))
    stale = ask(world, a, put(path, b"2", 0))
    (second,) = ask(world, a, put(path, b"3"))
    assert (first.version, second.version) == (1, 2)
    assert faults(stale) == ["bad version"]
    assert ask(world, a, get(path))[0] == b"3"


@story
def znodes_multi_does_all_or_nothing_and_says_what_failed(world: World) -> None:
    a = world.connect()
    path = ask(world, a, create(f"{world.path}/x", b"old"))
    answer = ask(
        world,
        a,
        multi(
            Check(path=path),
            Put(path=path, data=b"new", version=0),
            Check(path=f"{path}/missing"),
            Delete(path=path),
            Check(path=f"{path}/missing too"),
        ),
    )
    assert faults(answer) == ["rolled back", "rolled back", "no node", "rolled back", "rolled back"]
    assert [type(item.cause).__name__ for item in answer] == [
        "RolledBackError",
        "RolledBackError",
        "NoNodeError",
        "RuntimeInconsistency",
        "RuntimeInconsistency",
    ]
    assert ask(world, a, get(path))[0] == b"old"


@story
def znodes_multi_sees_what_it_has_done_before(world: World) -> None:
    a = world.connect()
    path = ask(world, a, create(f"{world.path}/x"))
    good = multi(
        Check(path=path, version=0),
        Put(path=path, data=b"1", version=0),
        Put(path=path, data=b"2", version=1),
        Check(path=path, version=2),
        Delete(path=path),
    )
    answer = ask(world, a, good)
    assert faults(answer) == [None] * 5
    assert (answer[1].version, answer[2].version) == (1, 2)
    assert ask(world, a, exists(path)) is None
    again = ask(world, a, create(path), multi(Delete(path=path), Check(path=path)))
    assert faults(again[1]) == ["rolled back", "no node"]


@story
def znodes_and_all_above_them_are_made_where_missing(world: World) -> None:
    a = world.connect()
    deep = f"{world.path}/a/b/c"
    for _ in range(2):
        ask(world, a, lambda gateway, done: gateway.ensure(deep, done))
    assert ask(world, a, exists(deep)) is not None


@story
def answers_come_in_the_order_of_the_requests(world: World) -> None:
    """A create is handed over in two steps, so that what is asked after it could overtake."""
    a = world.connect()
    heard: list[str] = []
    path = f"{world.path}/x-"

    def note(told: str, _: Any) -> None:
        heard.append(told)

    with a.lock:
        for n in range(5):
            a.gateway.create_candidate(path, b"", partial(note, f"create {n}"))
            a.gateway.children(world.path, lambda names: heard.append(f"{len(names)} seen"))
    world.until(lambda: len(heard) == 10, "all ten were answered")
    assert heard == [told for n in range(5) for told in (f"create {n}", f"{n + 1} seen")]


# --- watches -----------------------------------------------------------------------------------


class Ear:
    """A watch, and what it heard: True for deleted, False for changed."""

    def __init__(self) -> None:
        self.heard: list[bool] = []

    @property
    def watch(self) -> Any:
        return self, self.heard.append


@story
def watches_fire_once(world: World) -> None:
    a, b = world.connect(), world.connect()
    path, ear = f"{world.path}/x", Ear()
    ask(world, a, create(path), get(path, ear.watch))
    ask(world, b, put(path, b"1"), put(path, b"2"), delete(path))
    world.until(lambda: ear.heard, "the watch fired")
    ask(world, a, exists(path))
    assert ear.heard == [False]


@story
def watches_tell_a_deletion_from_a_change(world: World) -> None:
    a, b = world.connect(), world.connect()
    paths, ears = [f"{world.path}/x", f"{world.path}/y"], [Ear(), Ear()]
    for path, ear in zip(paths, ears, strict=True):
        ask(world, a, create(path), get(path, ear.watch))
    ask(world, b, delete(paths[0]), put(paths[1], b"1"))
    world.until(lambda: all(ear.heard for ear in ears), "both watches fired")
    assert [ear.heard for ear in ears] == [[True], [False]]


@story
def watches_set_twice_on_one_znode_are_heard_once_each(world: World) -> None:
    a = world.connect()
    path, one, two = f"{world.path}/x", Ear(), Ear()
    ask(world, a, create(path), get(path, one.watch), get(path, one.watch), get(path, two.watch))
    ask(world, a, delete(path))
    world.until(lambda: one.heard and two.heard, "both heard of it")
    ask(world, a, exists(path))
    assert one.heard == two.heard == [True]


@story
def watches_by_get_need_a_znode_and_by_exists_do_not(world: World) -> None:
    a = world.connect()
    paths, by_get, by_exists = [f"{world.path}/x", f"{world.path}/y"], Ear(), Ear()
    assert ask(world, a, get(paths[0], by_get.watch)).fault is Fault.NO_NODE
    assert ask(world, a, exists(paths[1], by_exists.watch)) is None
    ask(world, a, *map(create, paths))
    world.until(lambda: by_exists.heard, "the creation was heard of")
    assert by_exists.heard == [False]
    assert by_get.heard == []


@story
def watches_are_forgotten_when_nobody_listens_any_more(world: World) -> None:
    a = world.connect()
    path, one, two = f"{world.path}/x", Ear(), Ear()
    ask(world, a, create(path), get(path, one.watch), get(path, two.watch))
    with a.lock:
        a.gateway.unwatch(path, one)
    ask(world, a, delete(path))
    world.until(lambda: two.heard, "the other one heard of it")
    assert one.heard == []


@story
def watches_of_a_connection_end_with_it(world: World) -> None:
    a, b = world.connect(), world.connect()
    path, ear = f"{world.path}/x", Ear()
    ask(world, a, create(path), get(path, ear.watch))
    world.reconnect(a)
    ask(world, b, delete(path))
    assert ask(world, a, exists(path)) is None
    assert ear.heard == []


@story
def watches_hear_of_ephemeral_znodes_that_go_with_their_session(world: World) -> None:
    a, b = world.connect(), world.connect()
    ears = [Ear(), Ear()]
    for ear in ears:
        ask(world, b, get(ask(world, a, candidate(f"{world.path}/x-"))[0], ear.watch))
    expire(a)
    world.until(lambda: all(ear.heard for ear in ears), "both deletions were heard of")
    assert [ear.heard for ear in ears] == [[True], [True]]


# --- sessions ----------------------------------------------------------------------------------


@story
def sessions_outlive_their_connections(world: World) -> None:
    a, b = world.connect(), world.connect()
    made = ask(world, a, candidate(f"{world.path}/x-"))
    session_id = a.session_id
    world.reconnect(a)
    assert a.session_id == session_id
    assert ask(world, b, get(made[0]))[1].owner == session_id


@story
def sessions_closed_from_outside_lose_everything_in_one_transaction(world: World) -> None:
    a, b = world.connect(), world.connect()
    for _ in range(3):
        ask(world, a, candidate(f"{world.path}/x-"))
    ask(world, a, create(f"{world.path}/stays"))
    session_id = a.session_id
    marks = [ask(world, b, candidate(f"{world.path}/mark-"))[1].czxid]
    expire(a)
    world.until(lambda: a.connected and a.session_id != session_id, "it has another session")
    assert {name.rstrip("0123456789") for name in ask(world, b, children(world.path))} == {
        "mark-",
        "stays",
    }
    marks.append(ask(world, b, candidate(f"{world.path}/mark-"))[1].czxid)
    assert marks[1] - marks[0] == 3  # the old session's end, the new one's beginning, this create


@story
def sessions_end_only_once(world: World) -> None:
    a = world.connect()
    session_id, password = a.credentials()

    class Ghost:
        hosts = a.hosts
        link = a.link

        def credentials(self) -> tuple[int, bytes]:
            return session_id, password

    expire(a)
    world.until(lambda: a.session_id not in (None, session_id), "it has another session")
    with pytest.raises(zkelect.ConnectFailed, match="has ended already"):
        expire(Ghost())


@story
def sessions_that_are_not_heard_of_expire(world: World) -> None:
    a, b = world.connect(), world.connect()
    path, ear = ask(world, a, candidate(f"{world.path}/x-"))[0], Ear()
    ask(world, b, get(path, ear.watch))
    session_id, began = a.session_id, b.now()
    world.cut(a)
    world.until(lambda: ear.heard, "the session expired")
    assert b.now() - began > SESSION_TIMEOUT / 2
    world.heal(a)
    world.until(lambda: a.connected and a.session_id != session_id, "it has another session")


@story
def sessions_that_are_connected_live_on_without_a_word(world: World) -> None:
    a, b = world.connect(), world.connect()
    path = ask(world, a, candidate(f"{world.path}/x-"))[0]
    session_id, until = a.session_id, b.now() + 2 * SESSION_TIMEOUT
    world.until(lambda: b.now() > until, "two session timeouts passed")
    assert (a.session_id, ask(world, b, get(path))[1].owner) == (session_id, session_id)


@story
def sessions_do_not_know_what_became_of_an_unanswered_request(world: World) -> None:
    """The reply is lost; the znode is there, and belongs to the session, which lives on."""
    a, b = world.connect(), world.connect()
    ask(world, a, children(world.path))
    session_id = a.session_id
    world.cut(a, "replies")
    answers: list[Any] = []
    send_all(a, answers, candidate(f"{world.path}/x-"), children(world.path))
    found: list[Any] = []

    def seen() -> bool:
        found[:] = ask(world, b, children(world.path))
        return bool(found)

    world.until(seen, "the server has done it")
    world.heal(a)
    world.until(lambda: len(answers) == 2 and a.connected, "it heard of the loss")
    assert [answer.fault for answer in answers] == [Fault.UNKNOWN, Fault.UNKNOWN]
    assert ask(world, a, get(f"{world.path}/{found[0]}"))[1].owner == session_id == a.session_id


@story
def sessions_do_not_do_what_never_reached_the_server(world: World) -> None:
    a, b = world.connect(), world.connect()
    ask(world, a, children(world.path))
    world.cut(a, "requests")
    answers: list[Any] = []
    send_all(a, answers, candidate(f"{world.path}/x-"))
    world.until(lambda: bool(answers), "it gave up")
    world.heal(a)
    world.until(lambda: a.connected, "it is back")
    assert answers[0].fault is Fault.UNKNOWN
    assert ask(world, b, children(world.path)) == ()


@story
def sessions_closed_by_their_program_leave_nothing(world: World) -> None:
    a, b = world.connect(), world.connect()
    path, ear = ask(world, a, candidate(f"{world.path}/x-"))[0], Ear()
    ask(world, b, get(path, ear.watch))
    a.close()
    world.until(lambda: ear.heard, "the znode went with the session")
    with pytest.raises(zkelect.SessionClosed):
        a.ensure_usable()


# --- elections ---------------------------------------------------------------------------------


def roll(world: World, session: zkelect.Session) -> list[str]:
    answer = ask(world, session, children(f"{world.path}/election"))
    return [] if isinstance(answer, Failure) else sorted(answer, key=lambda node: node[-10:])


def elected_by_an_event(world: World, stander: Stander) -> None:
    """The slow re-read of the roll would find it too, after three session timeouts or more."""
    began = stander.session.now()
    world.until(lambda: stander.terms, "the next one is elected")
    assert stander.session.now() - began < 3 * SESSION_TIMEOUT


@story
def elections_follow_the_queue(world: World) -> None:
    with ExitStack() as stack:
        a, b, c = crowd(stack, world, "a", "b", "c")
        assert a.phase is Phase.LEADING
        assert (b.phase, c.phase) == (Phase.WAITING, Phase.WAITING)
        a.leave()
        world.until(lambda: b.terms, "b is elected")
        b.leave()
        world.until(lambda: c.terms, "c is elected")
        tokens = [each.terms[0].token for each in (a, b, c)]
        assert tokens == sorted(tokens)
        assert len(set(tokens)) == 3
        world.until(lambda: len(roll(world, c.session)) == 1, "the others have left")
        assert a.told == b.told == ["elected", "deposed (resigned)"]


@story
def elections_walk_down_the_queue_as_those_ahead_go(world: World) -> None:
    with ExitStack() as stack:
        a, b, c = crowd(stack, world, "a", "b", "c")
        own = roll(world, c.session)[-1]
        b.leave()
        world.until(lambda: len(roll(world, c.session)) == 2, "b has left")
        world.quiet()
        assert c.terms == []
        a.leave()
        elected_by_an_event(world, c)
        assert roll(world, c.session) == [own]


@story
def elections_go_on_when_the_leaders_session_ends(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        first = a.terms[0]
        expire(a.session)
        world.until(lambda: b.terms, "b is elected")
        world.until(lambda: len(a.told) == 2, "a is deposed")
        assert a.told == ["elected", "deposed (expired)"]
        assert b.terms[0].token > first.token
        with pytest.raises(zkelect.LeadershipLost):
            first.check()


@story
def elections_a_candidate_that_lost_waits_again(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        expire(a.session)
        world.until(lambda: b.terms and len(roll(world, b.session)) == 2, "a stands behind b")
        world.until(lambda: a.phase is Phase.WAITING, "a says so")
        b.leave()
        world.until(lambda: len(a.terms) == 2, "a leads again")
        assert a.told == ["elected", "deposed (expired)", "elected"]
        assert a.terms[0].token < b.terms[0].token < a.terms[1].token


@story
def elections_an_evicted_leader_is_deposed(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        ask(world, b.session, delete(f"{world.path}/election/{a.terms[0].node}"))
        world.until(lambda: b.terms and len(a.told) == 2, "b leads and a has heard of it")
        assert a.told == ["elected", "deposed (evicted)"]
        assert b.told == ["elected"]
        world.until(lambda: len(roll(world, a.session)) == 2, "a stands behind b")


@story
def elections_an_evicted_waiter_stands_again(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        leader, waiter = roll(world, a.session)
        ask(world, a.session, delete(f"{world.path}/election/{waiter}"))
        world.until(
            lambda: len(now := roll(world, a.session)) == 2 and now[1] != waiter, "b stands again"
        )
        assert roll(world, a.session)[0] == leader
        assert (a.told, b.told) == (["elected"], [])


@story
def elections_survive_the_deletion_of_the_parent(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        remove(world, a.session, f"{world.path}/election")
        world.until(
            lambda: (
                len(roll(world, a.session)) == 2
                and sorted([a.phase, b.phase]) == [Phase.LEADING, Phase.WAITING]
            ),
            "the parent was made anew, and one of them leads",
        )
        assert a.told[:2] == ["elected", "deposed (evicted)"]
        tokens = [leadership.token for leadership in (*a.terms, *b.terms)]
        assert len(set(tokens)) == len(tokens) >= 2


@story
def elections_outlive_the_leaders_connection(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        token = a.terms[0].token
        for each in (a, b):
            world.reconnect(each.session)
        assert ask(world, a.session, children(world.path)) is not None
        assert a.terms[0].check() == token
        assert (a.told, b.told) == (["elected"], [])
        a.leave()
        elected_by_an_event(world, b)


@story
def elections_end_by_the_lease_before_the_next_leader_begins(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        first = a.terms[0]
        world.cut(a.session)
        world.until(lambda: first.reason is not None, "the lease of a ran out")
        assert b.terms == []
        world.until(lambda: b.terms, "b is elected")
        world.heal(a.session)
        world.until(lambda: len(a.told) == 2 and a.phase is Phase.WAITING, "a waits behind b")
        assert a.told == ["elected", "deposed (lapsed)"]
        assert first.token < b.terms[0].token


@story
def elections_write_their_terms_down(world: World) -> None:
    with ExitStack() as stack:
        a, b = crowd(stack, world, "a", "b")
        path = f"{world.path}/election"
        a.leave()
        world.until(lambda: b.terms, "b is elected")

        def written() -> bool:
            term = decode_term(ask(world, b.session, get(term_path(path)))[0])
            return term is not None and (term.token, term.count) == (b.terms[0].token, 2)

        world.until(written, "b has written its term, the second one")
        (ended,) = decode_history(ask(world, b.session, get(history_path(path)))[0])
        assert (ended.token, ended.name, ended.reason) == (a.terms[0].token, "a", "resigned")


@story
def elections_leave_nothing_of_those_who_left(world: World) -> None:
    with ExitStack() as stack:
        a, b, c = crowd(stack, world, "a", "b", "c")
        for each in (c, a, b):
            each.leave()
        world.until(lambda: not roll(world, a.session), "the queue is empty")
        assert {a.phase, b.phase, c.phase} <= {Phase.IDLE, Phase.LEAVING}
        world.until(lambda: {a.phase, b.phase, c.phase} == {Phase.IDLE}, "all are idle")
