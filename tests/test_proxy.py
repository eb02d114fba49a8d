"""What a fault proxy does to frames, without a network: which rule fires, and what passes.

Requests are encoded by kazoo, so that the paths we find are those that a client means.
"""

from __future__ import annotations

import inspect
import re
import struct
import threading
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as kz
from kazoo.security import OPEN_ACL_UNSAFE

from zkelect.errors import InvalidArgument, Misuse
from zkelect.session import wire
from zkelect.testing import proxy_frames, proxy_memory
from zkelect.testing.conversation import REPLIES, REQUESTS, Conversation, Direction, Message
from zkelect.testing.journal import Frame, Journal
from zkelect.testing.jute import kind_of_event, pack_text, paths_in
from zkelect.testing.proxy import FaultProxy
from zkelect.testing.proxy_command import COMMANDS, shown
from zkelect.testing.proxy_faults import Delay, Drop, Fail, Rewrite, Swallow, Tear
from zkelect.testing.proxy_names import FAMILIES, names_meant
from zkelect.testing.proxy_numbers import Shift
from zkelect.testing.proxy_rules import Pattern, Rule
from zkelect.testing.proxy_tap import FaultTap, Script
from zkelect.testing.tap import Act, End, Hang, Hold, Send

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zkelect.testing.proxy_faults import Fault

SESSION = 0x1234
WELCOME = struct.pack("!iiiqi", 37, 0, 4000, SESSION, 16) + b"sixteen bytes...."[:16] + b"\0"
STAT = bytes(68)


def framed(body: bytes) -> bytes:
    return struct.pack("!i", len(body)) + body


def request(xid: int, asked: Any) -> bytes:
    return framed(struct.pack("!ii", xid, asked.type) + bytes(asked.serialize()))


def reply(xid: int, body: bytes = b"", *, zxid: int = 7, error: int = 0) -> bytes:
    return framed(struct.pack("!iqi", xid, zxid, error) + body)


def event(kind: int, path: str) -> bytes:
    return reply(wire.WATCH_EVENT_XID, struct.pack("!ii", kind, 3) + pack_text(path), zxid=-1)


def names(*children: str) -> bytes:
    return struct.pack("!i", len(children)) + b"".join(map(pack_text, children))


def create(path: str = "/e/u__lock__") -> Any:
    return kz.Create2(path, b"data", OPEN_ACL_UNSAFE, 3)


def get(path: str = "/e", *, watch: bool = False) -> Any:
    return kz.GetData(path, print if watch else None)


def children(path: str = "/e") -> Any:
    return kz.GetChildren(path, None)


def multi(*operations: Any) -> Any:
    return kz.Transaction(operations)


class Room:
    """A connection through a fault proxy, its handshake over: bytes in, acts out."""

    def __init__(self, *rules: Rule, script: Script | None = None) -> None:
        self.journal = Journal()
        self.cut: set[Direction] = set()
        self.script = Script(rules=list(rules)) if script is None else script
        self.tap = FaultTap(self.cut, self.journal, self.script)
        if self.tap.begin():
            self.ask(wire.encode_connect_request(timeout=4.0))
            self.answer(WELCOME)

    def ask(self, data: bytes) -> list[Act]:
        return list(self.tap.take(REQUESTS, data))

    def answer(self, data: bytes) -> list[Act]:
        return list(self.tap.take(REPLIES, data))

    @property
    def last(self) -> Frame:
        return self.journal.frames[-1]


def rule(
    direction: Direction,
    name: str,
    fault: Fault,
    *,
    path: str | None = None,
    nth: int = 1,
    times: int | None = 1,
    label: str = "rule",
) -> Rule:
    pattern = Pattern(direction=direction, names=names_meant(name, ("connect", "event")), path=path)
    return Rule(label, pattern, fault, nth, times, threading.Condition(), lambda: None)


def sent(acts: Iterable[Act], direction: Direction) -> bytes:
    return b"".join(a.data for a in acts if isinstance(a, Send) and a.direction == direction)


# --- which frame ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "paths"),
    [
        (create("/e/x"), ("/e/x",)),
        (kz.Create("/é", b"", OPEN_ACL_UNSAFE, 0), ("/é",)),
        (kz.Delete("/e/x", -1), ("/e/x",)),
        (kz.Exists("/e", None), ("/e",)),
        (get("/e", watch=True), ("/e",)),
        (children("/e"), ("/e",)),
        (kz.SetData("/e", b"abc", 3), ("/e",)),
        (kz.Sync("/e"), ("/e",)),
        (
            multi(
                kz.CheckVersion("/a", -1),
                kz.Create("/b", b"/no/path", OPEN_ACL_UNSAFE, 0),
                kz.SetData("/c", b"/nor/this", 1),
                kz.Delete("/d", 5),
                kz.CheckVersion("/e", 2),
            ),
            ("/a", "/b", "/c", "/d", "/e"),
        ),
        (multi(), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_request_and_its_reply_are_known_by_its_paths(asked: Any, paths: tuple[str, ...]) -> None:
    room = Room()
    room.ask(request(1, asked))
    assert room.last.paths == paths
    room.answer(reply(1))
    assert room.last.paths == paths
    assert room.last.name == wire.opcode_name(asked.type)


def test_an_event_is_known_by_its_own_path() -> None:
    room = Room()
    room.answer(event(2, "/e/gone"))
    assert (room.last.name, room.last.paths) == ("event", ("/e/gone",))


@given(st.binary(max_size=60), st.sampled_from([1, 2, 4, 5, 8, 14, 15, 22, 999]))
def test_a_frame_that_makes_no_sense_has_no_paths_and_passes(body: bytes, opcode: int) -> None:
    room = Room()
    data = framed(struct.pack("!ii", 1, opcode) + body)
    assert room.ask(data) == [Send(REQUESTS, data)]
    answer = reply(1, body)
    room.script.shifts.append(Shift("/e", 1))
    assert sent(room.answer(answer), REPLIES)


@given(st.binary(max_size=40), st.booleans(), st.booleans())
def test_no_frame_stops_the_proxy(body: bytes, greeted: bool, isolated: bool) -> None:
    """Whatever a peer sends, others go through the same thread."""
    kinds = frozenset({"connect", "event", "getData"})
    pattern = Pattern(direction=REPLIES, names=kinds, also=lambda m: bool(kind_of_event(m.frame)))
    resumed = Pattern(direction=REQUESTS, names=kinds, also=proxy_frames.resumes)
    welcome = partial(proxy_frames.rewritten_welcome, timeout=1.0)
    faults = ((pattern, welcome), (resumed, proxy_frames.new_session_request))
    rules = [
        Rule("rule", each, Rewrite(make), 1, None, threading.Condition(), lambda: None)
        for each, make in faults
    ]
    script = Script(rules=rules, shifts=[Shift("/e", 1)])
    tap = FaultTap(set(), Journal(), script)
    if greeted:
        tap.take(REQUESTS, wire.encode_connect_request(timeout=4.0))
        tap.take(REPLIES, WELCOME)
    script.isolated = isolated
    for direction in (REQUESTS, REPLIES):
        tap.take(direction, framed(body))


def test_names_stand_for_what_people_mean() -> None:
    assert names_meant("create") == {"create", "create2", "createContainer", "createTTL"}
    assert names_meant("create2") == {"create2"}
    assert names_meant("any") == FAMILIES["read"] | FAMILIES["write"]
    assert not FAMILIES["read"] & FAMILIES["write"]
    assert "ping" not in names_meant("any")
    with pytest.raises(InvalidArgument, match="creat2"):
        names_meant("creat2")


@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("times", [1, 2, None])
def test_a_rule_fires_at_the_nth_match_and_so_many_times(nth: int, times: int | None) -> None:
    swallow = rule(REPLIES, "event", Swallow(), nth=nth, times=times)
    room = Room(swallow)
    for _ in range(6):
        room.ask(request(1, get()))
        room.answer(reply(1) + event(3, "/e"))
    lost = [
        i for i, f in enumerate(f for f in room.journal.frames if f.name == "event") if not f.passed
    ]
    assert lost == list(range(nth - 1, 6))[:times]
    assert (swallow.matches, swallow.firings) == (6, len(lost))
    assert swallow.fired


def test_a_path_is_a_shell_pattern_and_a_multi_has_several() -> None:
    mine = rule(REQUESTS, "any", Drop("cut"), path="/e.zkelect/*")
    room = Room(mine)
    room.ask(request(1, get("/e.zkelect")) + request(2, multi(kz.CheckVersion("/e", 1))))
    assert not mine.matches
    room.ask(request(3, multi(kz.CheckVersion("/e", 1), kz.Delete("/e.zkelect/term", 1))))
    assert mine.fired


def test_the_first_rule_fires_and_the_next_is_due_at_the_next_frame() -> None:
    first = rule(REPLIES, "event", Swallow(), label="first")
    second = rule(REPLIES, "event", Swallow(), label="second")
    room = Room(first, second)
    told = []
    for _ in range(3):
        room.answer(event(3, "/e"))
        told.append(room.last.fault)
    assert told == ["first", "second times=1".removesuffix(" times=1"), ""]
    assert (first.firings, second.firings) == (1, 1)


def test_a_cancelled_rule_neither_counts_nor_fires() -> None:
    swallow = rule(REPLIES, "event", Swallow())
    swallow.cancel()
    room = Room(swallow)
    assert room.answer(event(3, "/e"))
    assert (swallow.matches, swallow.fired, swallow.cancelled) == (0, False, True)


@pytest.mark.parametrize("wrong", [{"nth": 0}, {"nth": -1}, {"times": 0}])
def test_numbers_that_no_frame_has_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        rule(REPLIES, "event", Swallow(), **wrong)


def test_waiting_tells_whether_it_has_fired() -> None:
    swallow = rule(REPLIES, "event", Swallow(), times=2)
    assert not swallow.wait(0.0)
    Room(swallow).answer(event(3, "/e"))
    assert swallow.wait(0.0)
    assert not swallow.wait(0.0, count=2)


def test_what_a_rewrite_raises_is_raised_where_it_is_waited_for() -> None:
    def rewrite(_: Message) -> bytes:
        raise ZeroDivisionError

    broken = rule(REPLIES, "getData", Rewrite(rewrite))
    room = Room(broken)
    room.ask(request(1, get()))
    assert room.answer(reply(1)) == [End(REPLIES)]
    with pytest.raises(Misuse, match="failed") as raised:
        broken.wait(0.0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


# --- what becomes of it ----------------------------------------------------------------------


@pytest.mark.parametrize(("then", "end"), [("cut", End), ("hang", Hang)])
def test_nothing_passes_behind_a_lost_frame(then: Any, end: Any) -> None:
    room = Room(rule(REPLIES, "create", Drop(then)))
    for xid, asked in ((1, get()), (2, create()), (3, get())):
        room.ask(request(xid, asked))
    acts = room.answer(reply(1) + reply(2) + reply(3))
    assert acts == [Send(REPLIES, reply(1)), end(REPLIES)]
    assert [f.passed for f in room.journal.frames[-3:]] == [True, False, False]
    assert room.journal.passed(REPLIES)["create2"] == 0
    assert room.answer(event(3, "/e")) == []
    assert room.tap.broken


@pytest.mark.parametrize("size", [0, 3, 4, 11, 1000])
def test_a_torn_frame_begins_and_never_ends(size: int) -> None:
    room = Room(rule(REQUESTS, "getData", Tear(size, "hang")))
    whole = request(1, get())
    begun, end = room.ask(whole)
    assert end == Hang(REQUESTS)
    assert isinstance(begun, Send)
    assert begun.data == whole[: min(size, len(whole) - 1)]


def test_a_swallowed_event_is_lost_alone() -> None:
    room = Room(rule(REPLIES, "event", Swallow(), path="/e/mine"))
    room.ask(request(1, get()))
    acts = room.answer(event(2, "/e/other") + event(2, "/e/mine") + reply(1))
    assert acts == [Send(REPLIES, event(2, "/e/other")), Send(REPLIES, reply(1))]


def test_what_is_delayed_goes_first_when_it_is_released() -> None:
    delay = rule(REPLIES, "create2", Delay())
    room = Room(delay)
    with pytest.raises(Misuse, match="nothing yet"):
        delay.release()
    room.ask(request(1, create()) + request(2, children()))
    hold, *passing = room.answer(reply(1) + reply(2))
    assert isinstance(hold, Hold)
    assert not hold.gate.open
    assert passing == [Send(REPLIES, reply(1)), Send(REPLIES, reply(2))]
    assert delay.fired
    delay.release()
    assert hold.gate.open


def test_a_failed_request_is_answered_in_its_turn_and_never_done() -> None:
    room = Room(rule(REQUESTS, "create", Fail(-110, done=False)))
    asked = room.ask(request(1, get()) + request(2, create()) + request(3, get()))
    harmless = request(2, kz.Exists("/", None))
    assert sent(asked, REQUESTS) == request(1, get()) + harmless + request(3, get())
    answers = room.answer(reply(1) + reply(2, STAT, zxid=9) + reply(3))
    assert sent(answers, REPLIES) == reply(1) + reply(2, zxid=9, error=-110) + reply(3)
    assert [f.error for f in room.journal.frames[-3:]] == [0, -110, 0]


def test_a_request_may_fail_though_it_is_done() -> None:
    room = Room(rule(REQUESTS, "create", Fail(-118, done=True)))
    assert sent(room.ask(request(1, create())), REQUESTS) == request(1, create())
    assert sent(room.answer(reply(1, STAT)), REPLIES) == reply(1, error=-118)
    assert sent(room.answer(reply(1)), REPLIES) == reply(1)  # the number is free again


@pytest.mark.parametrize(
    ("error", "code"), [(-125, -125), ("NodeExists", -110), ("SessionExpired", -112)]
)
def test_errors_are_given_by_code_or_name(error: int | str, code: int) -> None:
    assert proxy_frames.error_code(error) == code


@pytest.mark.parametrize("error", [0, 1, -(2**31) - 1, "NodeExist"])
def test_what_is_no_error_is_refused(error: int | str) -> None:
    with pytest.raises(InvalidArgument, match="NodeExists"):
        proxy_frames.error_code(error)


def test_faults_refuse_what_they_cannot_do() -> None:
    with pytest.raises(InvalidArgument, match="'cut' or 'hang'"):
        Drop("close")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidArgument, match="size"):
        Tear(-1, "cut")


# --- handshake -----------------------------------------------------------------------------


def welcome(**changes: Any) -> wire.ConnectResponse:
    rewrite = Rewrite(partial(proxy_frames.rewritten_welcome, **changes))
    room = Room(rule(REPLIES, "connect", rewrite, nth=1))
    told = FaultTap(set(), Journal(), Script([rule(REPLIES, "connect", rewrite)]))
    told.take(REQUESTS, wire.encode_connect_request(timeout=4.0))
    (frame,) = wire.FrameReader().feed(sent(told.take(REPLIES, WELCOME), REPLIES))
    assert room.last.name == "connect"
    return wire.decode_connect_response(frame)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"session_id": -5},
        {"timeout": 2.5},
        {"read_only": True},
        {"timeout": 0.0, "session_id": 0},
    ],
)
def test_a_welcome_is_rewritten_in_the_parts_that_are_given(changes: dict[str, Any]) -> None:
    granted = welcome(**changes)
    kept = {"timeout": 4.0, "session_id": SESSION, "read_only": False}
    assert granted == wire.ConnectResponse(**{**kept, **changes}, password=granted.password)
    assert granted.password == WELCOME[24:40]


def test_a_reconnect_is_told_from_a_connect_and_made_one() -> None:
    conversation = Conversation()
    old = wire.encode_connect_request(timeout=2.0, session_id=77, password=b"x" * 16)
    (message,) = conversation.read(REQUESTS, old)
    assert proxy_frames.resumes(message)
    assert proxy_frames.resumed_session(message) == 77
    made = proxy_frames.new_session_request(message)
    assert made == wire.encode_connect_request(timeout=2.0)
    (message,) = Conversation().read(REQUESTS, made)
    assert not proxy_frames.resumes(message)


# --- older answers -------------------------------------------------------------------------


def test_an_older_answer_is_for_the_same_question_only() -> None:
    room = Room()
    room.ask(request(1, children("/e")) + request(2, get("/e")))
    room.answer(reply(1, names("a"), zxid=3) + reply(2, b"old", zxid=3))
    answers = dict(room.script.memory.answers)
    stale = Rule(
        "stale",
        Pattern(
            direction=REPLIES,
            names=names_meant("read"),
            also=partial(proxy_memory.has_older, answers),
        ),
        Rewrite(partial(proxy_memory.stale_answer, answers)),
        1,
        None,
        threading.Condition(),
        lambda: None,
    )
    room.script.rules.append(stale)
    room.ask(request(3, children("/other")) + request(4, get("/e", watch=True)))
    acts = room.answer(reply(3, names("b")) + reply(4, b"new", zxid=9))
    assert sent(acts, REPLIES) == reply(3, names("b")) + reply(4, b"old", zxid=3)
    room.ask(request(5, children("/e")))
    assert sent(room.answer(reply(5, names(), zxid=9)), REPLIES) == reply(5, names("a"), zxid=3)


def test_an_answer_that_the_proxy_made_is_not_remembered() -> None:
    room = Room(rule(REQUESTS, "getData", Fail(-102, done=False)))
    room.ask(request(1, get()))
    room.answer(reply(1, STAT))
    assert room.script.memory.answers == {}


# --- isolation -----------------------------------------------------------------------------


def isolated() -> Room:
    """A connection on which /e was read, then cut off from the servers."""
    room = Room()
    room.ask(request(1, get("/e")))
    room.answer(reply(1, b"old"))
    room.script.isolated = True
    return room


def test_an_isolated_server_answers_pings_and_old_reads_and_swallows_writes() -> None:
    room = isolated()
    ping = framed(struct.pack("!ii", wire.PING_XID, 11))
    assert room.ask(request(2, get("/e"))) == [Send(REPLIES, reply(2, b"old"))]
    assert room.ask(ping) == [Send(REPLIES, reply(wire.PING_XID, zxid=0))]
    assert room.ask(request(3, multi(kz.CheckVersion("/e", -1)))) == []
    assert room.ask(request(4, get("/e"))) == []  # behind what was never answered
    assert room.ask(ping) == [Send(REPLIES, reply(wire.PING_XID, zxid=0))]
    assert room.answer(event(2, "/e") + reply(9)) == []
    assert room.tap.broken


def test_an_isolated_server_keeps_silent_behind_what_it_owes() -> None:
    room = Room()
    room.ask(request(1, get("/e")))
    room.answer(reply(1, b"old"))
    room.ask(request(2, create()))
    room.script.isolated = True
    assert room.ask(request(3, get("/e"))) == []
    assert not room.tap.admits(REPLIES)


def test_an_isolated_server_welcomes_back_whom_it_knows() -> None:
    script = isolated().script
    assert not FaultTap(set(), Journal(), script).begin()  # no server hears of it
    room = Room(script=script)
    again = wire.encode_connect_request(timeout=4.0, session_id=SESSION, password=b"x" * 16)
    assert room.ask(again) == [Send(REPLIES, WELCOME)]
    assert room.ask(request(1, get("/e"))) == [Send(REPLIES, reply(1, b"old"))]
    stranger = Room(script=script)
    assert stranger.ask(wire.encode_connect_request(timeout=4.0)) == []


def test_a_cut_silences_an_isolated_server_too() -> None:
    room = isolated()
    room.cut |= {REQUESTS, REPLIES}
    assert room.ask(framed(struct.pack("!ii", wire.PING_XID, 11))) == []


def test_a_connection_that_was_idle_through_an_isolation_goes_on() -> None:
    room = isolated()
    room.script.isolated = False
    assert not room.tap.broken
    assert room.ask(request(2, get()))


# --- numbers -------------------------------------------------------------------------------


def test_numbers_are_shifted_for_the_client_and_back_for_the_server() -> None:
    room = Room()
    room.script.shifts.append(Shift("/e", 2**31 - 2))
    seen, real = "/e/u__lock__2147483647", "/e/u__lock__0000000001"
    assert sent(room.ask(request(1, create())), REQUESTS) == request(1, create())
    told = sent(room.answer(reply(1, pack_text(real) + STAT)), REPLIES)
    assert told == reply(1, pack_text(seen) + STAT)
    asked = sent(room.ask(request(2, get(seen))), REQUESTS)
    assert asked == request(2, get(real))
    room.answer(reply(2))
    both = multi(kz.CheckVersion(seen, -1), kz.Delete(seen, -1), kz.CheckVersion("/f", 1))
    asked = sent(room.ask(request(3, both)), REQUESTS)
    real_both = multi(kz.CheckVersion(real, -1), kz.Delete(real, -1), kz.CheckVersion("/f", 1))
    assert asked == request(3, real_both)
    assert sent(room.answer(event(2, real)), REPLIES) == event(2, seen)


def test_numbers_past_the_end_are_negative_as_java_writes_them() -> None:
    room = Room()
    room.script.shifts.append(Shift("/e", 2**31 - 1))
    room.ask(request(1, children("/e")) + request(2, children("/f")))
    real = names("a-x0000000000", "b-x0000000001", "c-x1147483649", "other")
    seen = names("a-x2147483647", "b-x-2147483648", "c-x-1000000000", "other")
    acts = room.answer(reply(1, real) + reply(2, real))
    assert sent(acts, REPLIES) == reply(1, seen) + reply(2, real)


@given(st.integers(0, 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_a_shift_and_its_way_back_cancel(number: int, by: int) -> None:
    shift = Shift("/e", by)
    there = event(2, f"/e/u__lock__{number:010d}")
    (message,) = answered(there)
    seen = shift.apply(message)
    path = paths_in(seen)[0]
    (asked,) = requested(get(path))
    assert paths_in(shift.apply(asked)) == (f"/e/u__lock__{number:010d}",)


def answered(data: bytes) -> list[Message]:
    conversation = Conversation()
    conversation.read(REPLIES, WELCOME)
    return conversation.read(REPLIES, data)


def requested(asked: Any) -> list[Message]:
    conversation = Conversation()
    conversation.read(REQUESTS, wire.encode_connect_request(timeout=4.0))
    return conversation.read(REQUESTS, request(1, asked))


# --- every byte once -----------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), max_size=30))
def test_without_rules_the_stream_is_the_same_however_it_is_chopped(cuts: list[int]) -> None:
    stream = wire.encode_connect_request(timeout=4.0)
    stream += b"".join(request(xid, get("/e" * xid)) for xid in range(1, 9))
    tap = FaultTap(set(), Journal(), Script())
    out, rest = b"", stream
    for cut in [*cuts, len(stream)]:
        out += sent(tap.take(REQUESTS, rest[:cut]), REQUESTS)
        rest = rest[cut:]
    assert out == stream


@pytest.mark.parametrize(
    "start", [b"ruok", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"GET / HTTP/1.1\r\n"]
)
def test_what_is_no_zookeeper_passes_as_it_is(start: bytes) -> None:
    tap = FaultTap(set(), Journal(), Script([rule(REQUESTS, "any", Drop("cut"))]))
    out = b"".join(
        sent(tap.take(REQUESTS, start[i : i + 3]), REQUESTS) for i in range(0, len(start), 3)
    )
    assert out == start
    assert sent(tap.take(REPLIES, b"imok"), REPLIES) == b"imok"


def test_what_stops_to_make_sense_passes_as_it_is_from_there() -> None:
    room = Room()
    start, rest = framed(b"too short for a header"[:3]) + b"\0\0", b"\0\0and so on"
    assert sent(room.ask(start), REQUESTS) == start
    assert sent(room.ask(rest), REQUESTS) == rest


# --- documentation -------------------------------------------------------------------------


def methods() -> set[str]:
    """The public methods that do something."""
    return {
        name
        for name in dir(FaultProxy)
        if not name.startswith("_")
        and isinstance(inspect.getattr_static(FaultProxy, name), FunctionType)
    } - {"close", "resume", "wait_for"}


def test_the_page_and_the_command_have_every_fault() -> None:
    page = (Path(__file__).parents[1] / "docs" / "testing_proxy.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+)`", page.split("## Which frame")[0]))
    assert not methods() - named
    commands = set(re.findall(r"\w+", COMMANDS))
    assert not methods() - commands - {"rewrite_reply"}  # it takes a function


# --- as people see it ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        (
            Frame(direction=REQUESTS, name="create2", xid=3, at=0, passed=True, paths=("/e/x",)),
            "  1.500000 > create2 xid=3 /e/x",
        ),
        (
            Frame(direction=REPLIES, name="multi", xid=4, at=0, passed=True, error=-110, fault="f"),
            "  1.500000 < multi xid=4 error=-110 [passed: f]",
        ),
        (
            Frame(direction=REPLIES, name="connect", xid=None, at=0, passed=False),
            "  1.500000 < connect [lost: cut]",
        ),
    ],
)
def test_a_frame_is_shown_as_one_line(frame: Frame, line: str) -> None:
    assert shown(frame, 1.5) == line
