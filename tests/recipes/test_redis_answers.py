"""What a server that gives no answer may be doing: writing, unless nobody is there."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING

import pytest
from redis import Redis, exceptions

from zkelect.recipes.member import Answer, Member
from zkelect.recipes.redis.place import Place
from zkelect.recipes.redis.resource import RedisServer

if TYPE_CHECKING:
    from pathlib import Path


def reached(monkeypatch: pytest.MonkeyPatch, folder: Path, error: BaseException) -> Answer:
    """Return what is said of another member when asking ends with that."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Redis, "info", fail)
    place = Place(url="redis://127.0.0.1:1/0", record=folder / "record")
    us, other = (Member(name=name, address="127.0.0.1:1") for name in "ab")
    return RedisServer(us, place, domain="d").reach(other)


def after(cause: OSError) -> exceptions.RedisError:
    """Return what redis-py makes of an error that it meets: it raises another one meanwhile."""
    try:
        try:
            raise cause
        except OSError as error:
            raise exceptions.ConnectionError(f"Error connecting: {error}")  # noqa: B904  # so does redis-py
    except exceptions.ConnectionError as error:
        return error


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectionError("max number of clients reached", status_code="ERR"),
        exceptions.AuthenticationError("invalid username-password pair"),
        exceptions.ResponseError("BUSY Redis is busy running a script"),
        after(ssl.SSLCertVerificationError(1, "certificate verify failed: has expired")),
        after(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
        after(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
        after(OSError(errno.EMFILE, "Too many open files")),
        after(OSError(errno.ENFILE, "Too many open files in system")),
    ],
    ids=lambda error: str(error)[:40],
)
def test_somebody_who_could_not_be_asked_may_take_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: exceptions.RedisError
) -> None:
    assert reached(monkeypatch, tmp_path, error) is Answer.UNKNOWN


@pytest.mark.parametrize(
    "error",
    [
        after(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")),
        after(OSError(errno.EHOSTUNREACH, "No route to host")),
        after(socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
        exceptions.TimeoutError("Timeout connecting to server"),
        exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    ],
    ids=lambda error: str(error)[:40],
)
def test_where_nobody_answers_nobody_takes_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: exceptions.RedisError
) -> None:
    assert reached(monkeypatch, tmp_path, error) is Answer.NO
