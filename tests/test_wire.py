"""ZooKeeper's frames: cut right however they arrive, and never a password in a repr."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zkelect.errors import Unreachable
from zkelect.session import wire

SECRET = b"sixteen bytes...."[:16]


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack("!i", len(body)) + body for body in bodies)


def connect_response(
    timeout_ms: int = 4000,
    session_id: int = 0x10002345,
    password: bytes = SECRET,
    tail: bytes = b"\0",
) -> bytes:
    return struct.pack("!iiqi", 0, timeout_ms, session_id, len(password)) + password + tail


def fed(chunks: list[bytes]) -> list[bytes]:
    reader = wire.FrameReader()
    return [frame for chunk in chunks for frame in reader.feed(chunk)]


# --- frames -------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_frames_do_not_depend_on_chunks(bodies: list[bytes], data: st.DataObject) -> None:
    stream = framed(*bodies)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    bounds = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(bounds)]
    assert fed(chunks) == bodies


def test_one_byte_at_a_time() -> None:
    bodies = [b"", b"a", b"\0" * 300]
    assert fed([bytes([byte]) for byte in framed(*bodies)]) == bodies


def test_an_incomplete_frame_waits() -> None:
    reader = wire.FrameReader()
    assert reader.feed(framed(b"whole", b"half")[:-1]) == [b"whole"]
    assert reader.feed(b"") == []
    assert reader.feed(b"f") == [b"half"]


@pytest.mark.parametrize("length", [-1, -(2**31), wire.MAX_FRAME + 1, 2**31 - 1])
@pytest.mark.parametrize("early", [0, 3])
def test_an_absurd_length_is_refused_for_good(length: int, early: int) -> None:
    reader = wire.FrameReader()
    start = struct.pack("!i", length)
    assert reader.feed(start[:early]) == []
    with pytest.raises(wire.MalformedFrame, match=str(length)):
        reader.feed(start[early:])
    with pytest.raises(wire.MalformedFrame):
        reader.feed(framed(b"fine"))


@pytest.mark.parametrize("start", [b"HTTP/1.1 400 Bad Request", b"\x15\x03\x03\x00\x02\x02\x28"])
def test_another_protocol_is_told(start: bytes) -> None:
    with pytest.raises(wire.MalformedFrame, match="TLS") as caught:
        wire.FrameReader().feed(start)
    assert caught.value.data == start[:16]
    assert isinstance(caught.value, Unreachable)


def test_the_largest_length_is_waited_for_without_room_being_made() -> None:
    assert wire.FrameReader().feed(struct.pack("!i", wire.MAX_FRAME) + b"x") == []


# --- connect response ---------------------------------------------------------------------


def test_connect_response() -> None:
    response = wire.decode_connect_response(connect_response(timeout_ms=4500, session_id=-2))
    assert response == wire.ConnectResponse(
        timeout=4.5, session_id=-2, password=SECRET, read_only=False
    )
    assert not response.expired


@pytest.mark.parametrize(("tail", "read_only"), [(b"", False), (b"\0", False), (b"\1", True)])
def test_read_only_may_be_absent(tail: bytes, read_only: bool) -> None:
    assert wire.decode_connect_response(connect_response(tail=tail)).read_only is read_only


def test_an_unknown_session_is_expired() -> None:
    response = wire.decode_connect_response(connect_response(timeout_ms=0, session_id=0))
    assert response.expired


def test_a_null_password_is_empty() -> None:
    frame = struct.pack("!iiqi", 0, 4000, 7, -1) + b"\1"
    response = wire.decode_connect_response(frame)
    assert (response.password, response.read_only) == (b"", True)


def test_the_password_is_never_shown() -> None:
    response = wire.decode_connect_response(connect_response())
    assert "sixteen" not in repr(response)
    assert "password" not in repr(response)
    assert repr(response).startswith("ConnectResponse(timeout=4.0, session_id=268444485")


@given(st.integers(0, len(connect_response()) - 2))
def test_a_short_connect_response_is_refused(size: int) -> None:
    with pytest.raises(wire.MalformedFrame):
        wire.decode_connect_response(connect_response()[:size])


# --- headers ------------------------------------------------------------------------------


def test_reply_header() -> None:
    frame = struct.pack("!iqi", 7, 0x1_0000_0002, -101) + b"body"
    assert wire.decode_reply_header(frame) == wire.ReplyHeader(
        xid=7, zxid=0x1_0000_0002, error=-101
    )


def test_request_header() -> None:
    frame = struct.pack("!ii", 3, 14) + b"body"
    header = wire.decode_request_header(frame)
    assert header == wire.RequestHeader(xid=3, opcode=14)
    assert wire.opcode_name(header.opcode) == "multi"
    assert wire.opcode_name(999) == "opcode 999"


def test_short_headers_are_refused() -> None:
    with pytest.raises(wire.MalformedFrame):
        wire.decode_reply_header(bytes(15))
    with pytest.raises(wire.MalformedFrame):
        wire.decode_request_header(bytes(7))


def test_special_xids() -> None:
    special = (wire.WATCH_EVENT_XID, wire.PING_XID, wire.AUTH_XID)
    assert special == (-1, -2, -4)


# --- requests -----------------------------------------------------------------------------


def test_connect_request() -> None:
    sent = wire.encode_connect_request(timeout=2.5, session_id=-5, password=SECRET)
    (frame,) = wire.FrameReader().feed(sent)
    protocol, zxid, timeout_ms, session_id, size = struct.unpack_from("!iqiqi", frame)
    assert (protocol, zxid, timeout_ms, session_id, size) == (0, 0, 2500, -5, 16)
    assert frame[28:] == SECRET + b"\0"


def test_connect_request_for_a_new_session() -> None:
    (frame,) = wire.FrameReader().feed(wire.encode_connect_request(timeout=1.0))
    assert frame[16:] == struct.pack("!qi", 0, 16) + bytes(17)


def test_close_request() -> None:
    (frame,) = wire.FrameReader().feed(wire.encode_close_request(9))
    header = wire.decode_request_header(frame)
    assert (header.xid, wire.opcode_name(header.opcode)) == (9, "closeSession")
    assert len(frame) == 8


@pytest.mark.parametrize("start", [b"ruok", b"srvr", b"isro", b"ruok\n"])
def test_four_letter_words(start: bytes) -> None:
    assert wire.is_four_letter_word(start)


@pytest.mark.parametrize("start", [b"", b"ruo", struct.pack("!i", 44), b"RUOK", b"ru0k"])
def test_frames_are_no_four_letter_words(start: bytes) -> None:
    assert not wire.is_four_letter_word(start)


@given(st.integers(0, wire.MAX_FRAME))
def test_no_legal_length_is_a_four_letter_word(length: int) -> None:
    assert not wire.is_four_letter_word(struct.pack("!i", length))
