"""What a contract story needs of a world, in memory or real."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final, Protocol, Self

import zkelect
from zkelect.core.state import Phase
from zkelect.session.gateway import Delete, Failure, Gateway, Operation, Put
from zkelect.session.session import Session
from zkelect.testing.conversation import Direction

TICK: Final = 0.2
SESSION_TIMEOUT: Final = 2.0

Send = Callable[[Gateway, Callable[[Any], None]], None]


class World(Protocol):
    """Sessions with an ensemble, and what can befall them.

    :ivar path: a parent that exists and is this story's own.
    """

    path: str

    def connect(self) -> Session:
        """Open a session on a machine of its own."""

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Let things happen until a condition holds."""

    def quiet(self) -> None:
        """Let happen what is under way: all that was asked is answered."""

    def reconnect(self, session: Session) -> None:
        """End a session's connection, and return when it has the next one."""

    def cut(self, session: Session, *directions: Direction) -> None:
        """Swallow what passes between a session and its server."""

    def heal(self, session: Session) -> None:
        """End every cut; a connection that has met one is reset."""


def ask(world: World, session: Session, *sends: Send) -> Any:
    """Send requests back to back; return the answers, a single one as it is."""
    answers: list[Any] = []
    send_all(session, answers, *sends)
    world.until(lambda: len(answers) == len(sends), "every request was answered")
    return answers[0] if len(sends) == 1 else answers


def send_all(session: Session, answers: list[Any], *sends: Send) -> None:
    """Send requests; the answers will be put into the list."""
    with session.lock:
        for send in sends:
            send(session.gateway, answers.append)


def faults(answer: Sequence[Any]) -> list[str | None]:
    """Return of each item of a multi why it failed; None: it did not."""
    return [str(item.fault) if isinstance(item, Failure) else None for item in answer]


def create(path: str, data: bytes = b"") -> Send:
    return lambda gateway, done: gateway.create(path, data, done)


def candidate(prefix: str, data: bytes = b"") -> Send:
    return lambda gateway, done: gateway.create_candidate(prefix, data, done)


def get(path: str, watch: Any = None) -> Send:
    return lambda gateway, done: gateway.get(path, done, watch=watch)


def exists(path: str, watch: Any = None) -> Send:
    return lambda gateway, done: gateway.exists(path, done, watch=watch)


def children(path: str) -> Send:
    return lambda gateway, done: gateway.children(path, done)


def delete(path: str) -> Send:
    return lambda gateway, done: gateway.delete(path, done)


def multi(*operations: Operation) -> Send:
    return lambda gateway, done: gateway.multi(operations, done)


def put(path: str, data: bytes, version: int = -1) -> Send:
    return multi(Put(path=path, data=data, version=version))


def remove(world: World, session: Session, path: str) -> None:
    """Delete a znode and its children in one transaction, as an operator does."""
    below = ask(world, session, children(path))
    doomed = [Delete(path=f"{path}/{child}") for child in below]
    answer = ask(world, session, multi(*doomed, Delete(path=path)))
    assert not any(faults(answer)), answer


# --- elections ---------------------------------------------------------------------------------


class Stander:
    """A candidate of the story's election, and what it is told.

    :ivar notes: ("elected", leadership), and so on.
    """

    def __init__(self, world: World, name: str) -> None:
        self.session = world.connect()
        self.election = zkelect.Election(self.session, f"{world.path}/election", name=name)
        self.notes: list[tuple[str, zkelect.Leadership]] = []

    @contextmanager
    def standing(self, world: World) -> Iterator[Self]:
        """Stand until the block ends."""
        with self.election.listen(self):
            self.election.start()
            try:
                yield self
            finally:
                self.leave()
                world.quiet()

    def leave(self) -> None:
        """Stand no more; nothing is waited for."""
        self.election.stop(0.0)

    def elected(self, leadership: zkelect.Leadership) -> None:
        self.notes.append(("elected", leadership))

    def suspended(self, leadership: zkelect.Leadership) -> None:
        self.notes.append(("suspended", leadership))

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self.notes.append(("deposed", leadership))

    @property
    def phase(self) -> zkelect.Phase:
        return self.election.phase

    @property
    def told(self) -> list[str]:
        """What was told, but for suspensions; with the reason of each end."""
        return [
            f"{what} ({leadership.reason})" if what == "deposed" else what
            for what, leadership in self.notes
            if what != "suspended"
        ]

    @property
    def terms(self) -> list[zkelect.Leadership]:
        return [leadership for what, leadership in self.notes if what == "elected"]


def crowd(stack: ExitStack, world: World, *names: str) -> list[Stander]:
    """Let candidates stand one after the other; the first one leads."""
    standing: list[Stander] = []
    for name in names:
        stander = stack.enter_context(Stander(world, name).standing(world))
        place = Phase.WAITING if standing else Phase.LEADING
        world.until(partial(_has_place, stander, place), f"{name} is {place}")
        standing.append(stander)
    return standing


def _has_place(stander: Stander, place: Phase) -> bool:
    return stander.phase is place and (place is Phase.WAITING or bool(stander.terms))
