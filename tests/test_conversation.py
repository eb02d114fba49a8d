"""The frames of a connection get their names, whichever way the bytes are cut."""

from __future__ import annotations

import struct

import pytest

from zkelect.session import wire
from zkelect.testing.conversation import REPLIES, REQUESTS, Conversation

GREETED = struct.pack("!iiiqi", 36, 0, 4000, 7, 16) + bytes(16)
EVENT, PING, AUTH = wire.WATCH_EVENT_XID, wire.PING_XID, wire.AUTH_XID


def request(xid: int, opcode: int) -> bytes:
    return struct.pack("!iii", 8, xid, opcode)


def reply(xid: int) -> bytes:
    return struct.pack("!iiqi", 16, xid, 0, 0)


@pytest.fixture
def conversation() -> Conversation:
    """A conversation whose greeting is over."""
    begun = Conversation()
    assert begun.hear(REQUESTS, wire.encode_connect_request(timeout=4.0)) == [("connect", None)]
    assert begun.hear(REPLIES, GREETED) == [("connect", None)]
    return begun


def test_requests_and_replies_carry_the_name_of_the_request(conversation: Conversation) -> None:
    sent = request(1, 14) + request(2, 4)
    assert conversation.hear(REQUESTS, sent) == [("multi", 1), ("getData", 2)]
    assert conversation.hear(REPLIES, reply(1)) == [("multi", 1)]
    assert conversation.hear(REPLIES, reply(2)) == [("getData", 2)]
    assert conversation.hear(REPLIES, reply(2)) == [("unasked", 2)]


def test_events_pings_and_auth_are_no_replies_by_number(conversation: Conversation) -> None:
    assert conversation.hear(REQUESTS, request(PING, 11) + request(AUTH, 100)) == [
        ("ping", PING),
        ("auth", AUTH),
    ]
    heard = conversation.hear(REPLIES, reply(EVENT) + reply(PING) + reply(AUTH))
    assert heard == [("event", EVENT), ("ping", PING), ("auth", AUTH)]


def test_a_frame_is_told_by_its_last_byte(conversation: Conversation) -> None:
    chunks = [bytes([byte]) for byte in request(5, 1)]
    heard = [conversation.hear(REQUESTS, chunk) for chunk in chunks]
    assert heard == [[]] * 11 + [[("create", 5)]]


@pytest.mark.parametrize("chunks", [[b"srvr"], [b"s", b"rv", b"r"]])
def test_a_four_letter_word_is_its_own_name(chunks: list[bytes]) -> None:
    conversation = Conversation()
    heard = [frame for chunk in chunks for frame in conversation.hear(REQUESTS, chunk)]
    assert heard == [("srvr", None)]
    assert conversation.hear(REPLIES, b"Zookeeper version: 3.8.0") == []


def test_another_protocol_is_told_as_nothing() -> None:
    conversation = Conversation()
    assert conversation.hear(REQUESTS, b"\x16\x03\x01\x02\x00\x01\x00") == []
    assert conversation.hear(REPLIES, GREETED) == []
