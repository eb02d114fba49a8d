"""Which Redis made the mark, and which one can keep it: by what INFO says, without a server."""

from __future__ import annotations

import attrs
import pytest
from stores.bearers import make_token

from zkelect.errors import InvalidArgument
from zkelect.stores.mark import Mark
from zkelect.stores.redis_server import Seen, Server

P, R = "a" * 40, "b" * 40
FIRST, SECOND, NONE = "1" * 40, "2" * 40, "0" * 40

HERE = Server(
    version="7.0.15",
    mode="standalone",
    role="master",
    run_id=P,
    history=FIRST,
    former=NONE,
    maxmemory="0",
    eviction="noeviction",
)
INFO = (
    f"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:{P}\r\nos:a:b\r\n",
    f"# Replication\r\nrole:master\r\nmaster_replid:{FIRST}\r\nmaster_replid2:{NONE}\r\n",
    b"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n",
)


def test_info_is_read_as_text_or_as_bytes() -> None:
    assert Server.parse(*INFO) == HERE


def test_what_info_does_not_tell_is_empty() -> None:
    assert Server.parse("") == Server()


# --- is it the server that made the mark? ----------------------------------------------------


@pytest.mark.parametrize(
    ("what", "now", "continues"),
    [
        ("nothing happened", HERE, True),
        ("restarted, or another one", attrs.evolve(HERE, run_id=R), False),
        ("restarted, its history kept", attrs.evolve(HERE, run_id=R, former=FIRST), False),
        ("a first replica came", attrs.evolve(HERE, history=SECOND), True),
        ("demoted and promoted", attrs.evolve(HERE, history=SECOND, former=R), False),
        ("promoted before the mark", attrs.evolve(HERE, former=R), True),
        ("demoted", attrs.evolve(HERE, role="slave"), False),
        ("demoted, in another history", attrs.evolve(HERE, role="slave", history=SECOND), False),
    ],
)
def test_h56_a_server_continues_only_what_it_did_itself(
    what: str, now: Server, continues: bool
) -> None:
    assert now.continues(HERE.origin) is continues
    seen = Seen.of(str(Mark(token=make_token(5), origin=HERE.origin)), now)
    assert seen.origin == (HERE.origin if continues else now.origin)
    assert seen.proof == (seen.text, f"master_replid:{now.history}\r\n")


def test_a_mark_without_origin_is_of_no_server() -> None:
    assert not HERE.continues("")


def test_no_mark_is_seen_as_empty_text() -> None:
    seen = Seen.of(None, HERE)
    assert (seen.text, seen.mark, seen.token, seen.origin) == ("", None, None, HERE.origin)


@pytest.mark.parametrize("text", ["", "5", b"\xff", "{}"])
def test_what_is_no_mark_is_told(text: str | bytes) -> None:
    with pytest.raises(InvalidArgument, match="mark"):
        Seen.of(text, HERE)


# --- can it keep one? ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (HERE, ""),
        (attrs.evolve(HERE, version="6.0.0"), ""),
        (attrs.evolve(HERE, version="10.1"), ""),
        (attrs.evolve(HERE, version="5.0.14"), "older than 6.0"),
        (attrs.evolve(HERE, version="2.8.24"), "older than 6.0"),
        (attrs.evolve(HERE, version=""), "redis_version"),
        (attrs.evolve(HERE, version="unknown"), "redis_version"),
        (attrs.evolve(HERE, run_id=""), "run_id"),
        (attrs.evolve(HERE, history=""), "master_replid"),
        (attrs.evolve(HERE, role="slave"), "role is 'slave'"),
        (attrs.evolve(HERE, eviction="allkeys-lru"), ""),
        (attrs.evolve(HERE, eviction="allkeys-lru", maxmemory="1024"), "allkeys-lru"),
        (attrs.evolve(HERE, eviction="allkeys-random", maxmemory="1024"), "allkeys-random"),
        (attrs.evolve(HERE, eviction="volatile-ttl", maxmemory="1024"), ""),
        (attrs.evolve(HERE, eviction="noeviction", maxmemory="1024"), ""),
    ],
)
def test_h63_what_cannot_keep_a_mark_says_why(server: Server, why: str) -> None:
    assert why in server.unfit()
    assert bool(server.unfit()) is bool(why)
