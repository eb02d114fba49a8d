"""The observed socket: what it tells of a connection is what the lease begins with."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler

from zkelect.session.handler import ObservedHandler
from zkelect.testing.fake_clock import MachineClock, VirtualClock


class Silent:
    """An observer that hears nothing."""

    def welcomed(self, *_: Any) -> None: ...
    def replied(self, *_: Any) -> None: ...
    def unwelcome(self, *_: Any) -> None: ...


def test_a_connection_begins_before_it_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first probe proves from that instant on: later is a lease too long."""
    world = VirtualClock(now=100.0)
    ours, theirs = socket.socketpair()

    def dial(*_: Any, **__: Any) -> socket.socket:
        world.now += 3.0  # a slow network, a slow handshake
        return ours

    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", dial)
    handler = ObservedHandler(clock=MachineClock(world), observer=Silent(), patience=5.0, tls=None)
    with ours, theirs:
        assert handler.create_connection(("fake-1", 2181)).started == 100.0


def test_waiting_tells_what_may_be_read_and_what_written() -> None:
    handler = ObservedHandler(
        clock=MachineClock(VirtualClock()), observer=Silent(), patience=5.0, tls=None
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert handler.select([ours], [], [], 0.0) == ([], [], [])
        assert handler.select([ours], [ours], [], 0.0) == ([], [ours], [])
        theirs.send(b"\0")
        assert handler.select([ours, theirs], [ours], [], 0.0) == ([ours], [ours], [])


def test_a_link_that_is_given_up_is_shut_so_that_kazoo_hears_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kazoo would stay CONNECTED for 20 to 40 s on a dead link."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", lambda *_, **__: ours)
    handler = ObservedHandler(
        clock=MachineClock(VirtualClock()), observer=Silent(), patience=5.0, tls=None
    )
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        connection = handler.create_connection(("fake-1", 2181))
        handler.shut()
        assert connection.was_shut
        assert connection.recv(1) == theirs.recv(1) == b""  # its end, on both sides, at once
