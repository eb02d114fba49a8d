"""Questions that a thread of the user's waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zkelect.errors import ConnectFailed
from zkelect.session.gateway import Done, Failure, Fault, Gateway
from zkelect.session.limits import check_timeout
from zkelect.session.session import Session

__all__ = ["ask"]


def ask(session: Session, send: Callable[[Gateway, Done], None], timeout: float) -> Any:
    """Send a read and wait for its answer: a value or a Failure.

    Asked again after each reconnect, for nothing is queued while the link is down.

    :param timeout: seconds, from 0. :raises ConnectFailed: no answer by then.
    """
    check_timeout(timeout, endless=False)
    session.ensure_usable()  # before any lock: a forked child must not wait for the parent's
    deadline = session.now() + timeout
    while True:
        answer = _ask_once(session, send, deadline)
        if answer and not (isinstance(answer[0], Failure) and answer[0].fault is Fault.UNKNOWN):
            return answer[0]
        if not answer or session.now() >= deadline:
            raise ConnectFailed(session.hosts, timeout, {})


def _ask_once(
    session: Session, send: Callable[[Gateway, Done], None], deadline: float
) -> list[Any] | None:
    answer: list[Any] = []

    def done(value: Any) -> None:
        answer.append(value)
        session.changed.notify_all()

    def until(condition: Callable[[], bool]) -> bool:
        return session.changed.wait_for(condition, max(deadline - session.now(), 0.0))

    with session.changed:
        session.ensure_usable()
        if not until(lambda: session.connected or session.ended):
            return None
        session.ensure_usable()
        send(session.gateway, done)
        return answer if until(lambda: bool(answer)) else None
