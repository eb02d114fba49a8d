"""What servers tell of themselves, read from their answers as 3.8.0 gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli.patients import serving

from zkelect.cli.doctor import servers
from zkelect.cli.doctor.facts import WORDS
from zkelect.cli.doctor.measuring import read_voters
from zkelect.cli.doctor.words import read_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.cli.doctor.facts import Server

SRVR = """\
Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC
Latency min/avg/max: 0/0.3191/7
Zxid: 0x9a
Mode: leader
Proposal sizes last/min/max: 48/48/48
Node count: 5
"""
CONF = """\
clientPort=33571
tickTime=200
maxClientCnxns=0
minSessionTimeout=400
maxSessionTimeout=4000
"""
MNTR = (
    "zk_version\t3.8.0\nzk_server_state\tleader\nzk_synced_followers\t2\nzk_synced_observers\t1\n"
)
CONS = """\
 /127.0.0.1:37852[0](queued=0,recved=1,sent=0)
 /127.0.0.1:40962[1](queued=0,recved=9,sent=9,sid=0x1000b2c5e4f0000,lop=PING,to=4000,lcxid=0x7)
 /127.0.0.1:40964[1](queued=0,recved=9,sent=9,sid=0xff00b2c5e4f00001,lop=PING,to=4000,lcxid=0x7)
"""


def test_all_of_it_is_read() -> None:
    told = read_words({"srvr": SRVR, "conf": CONF, "mntr": MNTR, "cons": CONS})
    assert told == {
        "version": "3.8.0",
        "mode": "leader",
        "tick": 0.2,
        "synced": 2,
        "sessions": frozenset({0x1000B2C5E4F0000, 0xFF00B2C5E4F00001 - 2**64}),
        "silent": (),
    }


def test_what_is_not_answered_is_not_known() -> None:
    assert read_words(dict.fromkeys(WORDS)) == {
        "version": None,
        "mode": None,
        "tick": None,
        "synced": None,
        "sessions": None,
        "silent": WORDS,
    }


def test_nobody_connected_is_something_else_than_not_told() -> None:
    assert (
        read_words({"cons": " /127.0.0.1:37852[0](queued=0,recved=1,sent=0)\n"})["sessions"]
        == frozenset()
    )


def test_a_follower_does_not_tell_who_is_synced() -> None:
    assert read_words({"mntr": "zk_server_state\tfollower\n"})["synced"] is None


def test_the_fields_are_those_of_a_server() -> None:
    assert serving("zk1:2181", **read_words({"srvr": SRVR})).mode == "leader"


def test_voters_are_counted_observers_are_not() -> None:
    configuration = b"""\
server.1=zk1:2888:3888:participant;0.0.0.0:2181
server.2=zk2:2888:3888:participant
server.3=zk3:2888:3888
server.4=zk4:2888:3888:observer;0.0.0.0:2181
version=100000000"""
    assert read_voters(configuration) == 3


def test_a_server_alone_names_no_voters() -> None:
    assert read_voters(b"") is None
    assert read_voters(b"version=0") is None


# --- asked again ---------------------------------------------------------------------------------


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Let every server answer so to every word."""

    def let(text: str | None) -> None:
        monkeypatch.setattr(servers, "ask_word", lambda *_: text)

    return let


def again(*known: Server) -> list[frozenset[int] | None]:
    addresses = [("127.0.0.1", 1)] * len(known)
    return [each.sessions for each in servers.hear_again(known, addresses, None, 1.0)]


def test_a_session_that_was_there_one_of_the_two_times_was_there(
    answer: Callable[[str | None], None],
) -> None:
    answer(" /127.0.0.1:1[1](sid=0x7,to=4000)\n")
    assert again(serving("a", sessions=frozenset({5}))) == [frozenset({5, 7})]


def test_who_does_not_answer_any_more_tells_nothing(answer: Callable[[str | None], None]) -> None:
    answer(None)
    assert again(serving("a", sessions=frozenset({5}))) == [None]


def test_who_did_not_answer_is_not_asked_again(answer: Callable[[str | None], None]) -> None:
    answer(CONS)
    assert again(serving("a", sessions=None)) == [None]
