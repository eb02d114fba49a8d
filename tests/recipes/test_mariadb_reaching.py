"""What another member's MariaDB server says when it is asked whether it takes writes (H81).

There is no server: the driver's errors are those that it would raise.
"""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from zkelect.recipes.mariadb import MariaDB, Place, asking
from zkelect.recipes.member import Answer, Member

if TYPE_CHECKING:
    from collections.abc import Callable

OURS, THEIRS = Member(name="a", address="here:3306"), Member(name="b", address="there:3306")


def reach() -> Answer:
    place = Place(socket="s", data_directory="data", user="agent", replication_user="repl")
    return MariaDB(OURS, place, domain="/d").reach(THEIRS)


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        pytest.param(1040, Answer.YES, id="too many connections"),
        pytest.param(1203, Answer.YES, id="too many connections of the account"),
        pytest.param(1045, Answer.UNKNOWN, id="access denied"),
        pytest.param(1226, Answer.UNKNOWN, id="the account has used up what it may"),
        pytest.param(1862, Answer.UNKNOWN, id="the password has expired"),
        pytest.param(3159, Answer.UNKNOWN, id="secure transport required"),
        pytest.param(4151, Answer.UNKNOWN, id="account locked"),
        pytest.param(2059, Answer.UNKNOWN, id="the driver does not know how to log in"),
        pytest.param(0, Answer.UNKNOWN, id="somebody else listens there"),
        pytest.param(1053, Answer.NO, id="shutdown in progress"),
        pytest.param(2003, Answer.NO, id="no connection"),
        pytest.param(2006, Answer.NO, id="gone away"),
        pytest.param(2013, Answer.NO, id="lost connection"),
    ],
)
def test_h81_only_a_server_that_does_not_answer_takes_no_writes(
    monkeypatch: pytest.MonkeyPatch, code: int, answer: Answer
) -> None:
    error = pymysql.OperationalError(code, "told") if code else pymysql.InternalError("odd")
    monkeypatch.setattr(asking, "_join_remote", failing(error))
    assert reach() is answer


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        pytest.param(socket.gaierror(socket.EAI_AGAIN, "x"), Answer.UNKNOWN, id="no name server"),
        pytest.param(OSError(errno.EMFILE, "x"), Answer.UNKNOWN, id="our files"),
        pytest.param(OSError(errno.ENFILE, "x"), Answer.UNKNOWN, id="our host's files"),
        pytest.param(socket.gaierror(socket.EAI_NONAME, "x"), Answer.NO, id="no such name"),
        pytest.param(ConnectionRefusedError(errno.ECONNREFUSED, "x"), Answer.NO, id="refused"),
        pytest.param(TimeoutError("x"), Answer.NO, id="not in time"),
    ],
)
def test_h81_a_fault_of_ours_says_nothing_of_another_one(
    monkeypatch: pytest.MonkeyPatch, error: OSError, answer: Answer
) -> None:
    monkeypatch.setattr(socket, "create_connection", failing(error))
    assert reach() is answer
