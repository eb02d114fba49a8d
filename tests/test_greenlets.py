"""gevent and eventlet, the real ones, each time in a process of its own: a patch stays."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

import zkelect
from zkelect.session.greenlets import refuse_patched_threads

PATCHES: Final = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}
ONLY_SOCKETS: Final = {
    "gevent": "from gevent import monkey; monkey.patch_socket()",
    "eventlet": "import eventlet; eventlet.monkey_patch(all=False, socket=True)",
}
HANDLERS: Final = {
    "gevent": "from kazoo.handlers.gevent import SequentialGeventHandler as Handler",
    "eventlet": "from kazoo.handlers.eventlet import SequentialEventletHandler as Handler",
}
CALLS: Final = {
    "connect": "import zkelect; zkelect.connect('127.0.0.1:1')",
    "aconnect": (
        "import asyncio, zkelect\n"
        "async def main(): await zkelect.aconnect('127.0.0.1:1')\n"
        "asyncio.run(main())"
    ),
    "adopt": "import zkelect; zkelect.Session.adopt(None, session_timeout=10.0)",
}
every_library = pytest.mark.parametrize("library", PATCHES)


def run(*statements: str) -> str:
    """Return the last line that a program has told, on standard error if it failed."""
    program = [sys.executable, "-W", "ignore", "-c", "\n".join(statements)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    return (done.stderr if done.returncode else done.stdout).strip().splitlines()[-1]


@every_library
@pytest.mark.parametrize("call", CALLS)
def test_a_patched_process_is_refused(library: str, call: str) -> None:
    told = run(PATCHES[library], CALLS[call])
    assert told.startswith(f"zkelect.errors.misuse.MonkeyPatched: {library} has replaced thread")
    assert "connect() in a process that is not patched" in told


@every_library
def test_sockets_alone_are_enough(library: str) -> None:
    told = run(ONLY_SOCKETS[library], CALLS["connect"])
    assert told.startswith(f"zkelect.errors.misuse.MonkeyPatched: {library} has replaced socket in")


@every_library
def test_who_patches_after_connecting_is_refused_at_the_next_use(library: str) -> None:
    told = run(
        "import zkelect, zkelect.testing",
        "session = zkelect.testing.FakeEnsemble().connect()",
        "election = zkelect.Election(session, '/elections/late')",
        PATCHES[library],
        "election.start()",
    )
    assert told.startswith(f"zkelect.errors.misuse.MonkeyPatched: {library}")


@every_library
def test_a_library_that_is_only_imported_does_no_harm(library: str) -> None:
    told = run(
        PATCHES[library].partition(";")[0],
        "from zkelect.session.greenlets import refuse_patched_threads",
        "import sys; print(refuse_patched_threads())",
    )
    assert told == "None"


@every_library
def test_a_client_with_greenlets_is_not_adopted(library: str) -> None:
    told = run(
        HANDLERS[library],
        "import kazoo.client, zkelect",
        "client = kazoo.client.KazooClient(handler=Handler())",
        "zkelect.Session.adopt(client, session_timeout=10.0)",
    )
    assert told.startswith("zkelect.errors.misuse.InvalidArgument: client=")
    assert told.endswith("a client with kazoo's threading handler")


def test_neither_is_imported_to_find_out() -> None:
    refuse_patched_threads()
    assert "gevent" not in sys.modules
    assert "eventlet" not in sys.modules


def test_whose_fault_it_is() -> None:
    error = zkelect.MonkeyPatched("gevent", ["threading", "socket"])
    assert isinstance(error, zkelect.Misuse)
    assert (error.library, error.modules) == ("gevent", ("threading", "socket"))
