"""Who is knocked at and does not open: nobody is there, or it was our own fault (H81)."""

from __future__ import annotations

import errno
import socket

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer
from zkelect.recipes.postgres.knocking import knock


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        pytest.param(socket.gaierror(socket.EAI_AGAIN, "x"), Answer.UNKNOWN, id="no name server"),
        pytest.param(OSError(errno.EMFILE, "x"), Answer.UNKNOWN, id="our files"),
        pytest.param(OSError(errno.ENOBUFS, "x"), Answer.UNKNOWN, id="our memory"),
        pytest.param(socket.gaierror(socket.EAI_NONAME, "x"), Answer.NO, id="no such name"),
        pytest.param(ConnectionRefusedError(errno.ECONNREFUSED, "x"), Answer.NO, id="refused"),
        pytest.param(TimeoutError("x"), Answer.NO, id="not in time"),
    ],
)
def test_h81_a_fault_of_ours_says_nothing_of_another_one(
    monkeypatch: pytest.MonkeyPatch, error: OSError, answer: Answer
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    assert knock("host=there port=5432", now() + 3) is answer
