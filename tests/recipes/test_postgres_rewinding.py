"""A PostgreSQL server is rewound: what it keeps, and who may touch it meanwhile (H82).

There is no server; pg_rewind is a script that does to the data what the real one would do.
"""

from __future__ import annotations

import os
import stat
import subprocess
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.postgres import checks, lifecycle, rewinding
from zkelect.recipes.postgres.controldata import ControlData
from zkelect.recipes.postgres.following import Following
from zkelect.recipes.postgres.lsn import Lsn
from zkelect.recipes.postgres.place import Place
from zkelect.recipes.postgres.programs import ProgramFailed
from zkelect.recipes.postgres.rewinding import Rewinding
from zkelect.recipes.resource import NeedsRebuild, NotNow, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OURS = b"port = 5433\n"
STOPPED = ControlData(system="s", state="", checkpoint=Lsn(0), timeline=1, rewindable=True)
TRIES = 'case "$*" in *--dry-run) {trial}; exit;; esac\n{real}\n'
SUCCEEDS = TRIES.format(trial="true", real="echo 'servers diverged'")


def soon() -> float:
    return now() + 30.0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    data = tmp_path / "data"
    (data / "pg_wal").mkdir(parents=True)
    (data / "PG_VERSION").write_text("15\n")
    (data / "postgresql.conf").write_bytes(OURS)
    (data / "standby.signal").touch()
    return Place(
        data_directory=data, local="host=here", credentials="user=us", programs=tmp_path / "bin"
    )


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have a stopped server that says where its files are; return these, to be added to."""
    named: list[str] = []

    def ask(_: str, query: str, *__: Any) -> tuple[Any, ...]:
        return (None, "postgresql.conf") if "restore_command" in query else (named,)

    monkeypatch.setattr(rewinding, "ask", ask)
    monkeypatch.setattr(rewinding, "control", lambda *_: STOPPED)
    monkeypatch.setattr(rewinding, "stop", lambda *_: None)
    monkeypatch.setattr(rewinding, "checkpoint", lambda *_: None)
    return named


@pytest.fixture(autouse=True)
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is begun outlives who began it; it is waited for when nothing holds it any more."""
    launch = subprocess.Popen
    begun: list[subprocess.Popen[bytes]] = []

    def note(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        begun.append(launch(*words, **options))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", note)
    yield
    for child in begun:
        child.wait(60)


@pytest.fixture
def install(place: Place) -> Callable[[str], None]:
    """Make the script that is pg_rewind here."""

    def write(script: str) -> None:
        assert place.programs is not None
        place.programs.mkdir(exist_ok=True)
        file = place.programs / "pg_rewind"
        file.write_text(f"#!/bin/sh -e\ncd {place.data_directory}\n{script}")
        file.chmod(0o755)

    return write


class Held:
    """A point that the script does not pass before it is let go."""

    def __init__(self, folder: Path) -> None:
        self._pipe = folder / "held"
        os.mkfifo(self._pipe)
        self.wait = f"read line < {self._pipe}"

    def let_go(self) -> None:
        self._pipe.write_text("go\n")

    def end(self) -> None:
        """Let go whoever waits there, if a test has failed."""
        with suppress(OSError):
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path)
    yield made
    made.end()


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


# --- what it keeps --------------------------------------------------------------------------------


def test_a_configuration_that_is_not_in_utf_8_is_kept(
    place: Place, install: Callable[[str], None]
) -> None:
    """Or the server would be stopped, and started, at each try for ever."""
    file = place.data_directory / "postgresql.conf"
    file.write_bytes(b"# gr\xfc\xdfe\nssl = on\n")
    install(TRIES.format(trial="true", real="echo theirs > postgresql.conf"))
    Rewinding(place).advance("theirs", soon())
    assert file.read_bytes() == b"# gr\xfc\xdfe\nssl = on\n"


def test_every_file_that_the_server_uses_is_kept(
    place: Place, install: Callable[[str], None], server: list[str]
) -> None:
    """pg_rewind replaces those that the source has, too, and deletes the others."""
    data = place.data_directory
    (data / "conf.d").mkdir()
    (data / "conf.d" / "used.conf").write_text("work_mem = '8MB'\n")
    (data / "conf.d" / "says_nothing.conf").write_text("# nothing yet\n")
    (data / "rules").write_text("local all all peer\n")
    (data / "server.key").write_bytes(b"\x00ours")
    (data / "server.key").chmod(0o600)
    (data / "root.crt").write_text("ours")
    (data / "root.crt").chmod(0o644)
    server += [str(data / "conf.d" / "used.conf"), str(data / "rules"), "server.key", "root.crt"]
    install(TRIES.format(trial="true", real="rm -r conf.d rules root.crt; echo > server.key"))
    Rewinding(place).advance("theirs", soon())
    assert (data / "conf.d" / "used.conf").read_text() == "work_mem = '8MB'\n"
    assert (data / "conf.d" / "says_nothing.conf").read_text() == "# nothing yet\n"
    assert (data / "rules").read_text() == "local all all peer\n"
    assert (data / "server.key").read_bytes() == b"\x00ours"
    assert (data / "root.crt").read_text() == "ours"
    assert (mode(data / "server.key"), mode(data / "root.crt")) == (0o600, 0o644)


def test_a_link_stays_one_and_what_is_elsewhere_is_not_touched(
    place: Place, install: Callable[[str], None], server: list[str], tmp_path: Path
) -> None:
    """A copy of the key would not be renewed with it, and might not be readable as it is."""
    key = tmp_path / "elsewhere.key"
    key.write_text("secret")
    (place.data_directory / "server.key").symlink_to(key)
    server += ["server.key", str(tmp_path / "other.conf")]
    (tmp_path / "other.conf").write_text("ours")
    install(TRIES.format(trial="true", real="rm server.key; echo theirs > ../other.conf"))
    Rewinding(place).advance("theirs", soon())
    assert (place.data_directory / "server.key").readlink() == key
    assert (tmp_path / "other.conf").read_text() == "theirs\n"


def test_what_is_kept_is_not_to_be_read_by_others_and_is_taken_away(
    place: Place, install: Callable[[str], None], server: list[str], tmp_path: Path
) -> None:
    (place.data_directory / "server.key").write_text("secret")
    (place.data_directory / "server.key").chmod(0o600)
    server.append("server.key")
    said = tmp_path / "said"
    install(TRIES.format(trial="true", real=f"stat -c %a ../data.kept* > {said}; rm server.key"))
    Rewinding(place).advance("theirs", soon())
    assert said.read_text().split() == ["700"]
    assert not list(tmp_path.glob("data.*"))
    assert (place.data_directory / "server.key").read_text() == "secret"


def test_what_the_agent_may_not_give_back_to_its_owner_is_closed_to_others(
    monkeypatch: pytest.MonkeyPatch, place: Place, install: Callable[[str], None]
) -> None:
    """PostgreSQL refuses a key of its own that a group may read."""

    def refuse(*_: object) -> None:
        raise PermissionError

    file = place.data_directory / "postgresql.conf"
    file.chmod(0o640)
    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    monkeypatch.setattr(rewinding, "identity", lambda _: {})
    install(SUCCEEDS)
    Rewinding(place).advance("theirs", soon())
    assert mode(file) == 0o600


# --- how it ends ----------------------------------------------------------------------------------


def test_one_that_would_not_work_has_changed_nothing(
    place: Place, install: Callable[[str], None]
) -> None:
    install(TRIES.format(trial="echo 'no WAL there'; exit 1", real="touch changed"))
    with pytest.raises(ProgramFailed, match="no WAL there"):
        Rewinding(place).advance("theirs", soon())
    assert not list(place.data_directory.parent.glob("data.*"))
    install(SUCCEEDS)
    Rewinding(place).advance("theirs", soon())
    assert not (place.data_directory / "changed").exists()


def test_h82_one_that_has_failed_leaves_data_that_nobody_may_use(
    place: Place, install: Callable[[str], None]
) -> None:
    install(TRIES.format(trial="echo fine", real="echo 'could not write'; exit 1"))
    with pytest.raises(NeedsRebuild, match=r"failed: could not write;.*pg_basebackup"):
        Rewinding(place).advance("theirs", soon())
    assert place.rewinding.exists()


@pytest.mark.parametrize("when", ["trial", "real"])
def test_neither_the_trial_nor_the_rewinding_is_cut_short(
    place: Place, install: Callable[[str], None], held: Held, when: str
) -> None:
    """The trial reads all the WAL, which of a large server takes longer than one try may."""
    install(TRIES.format(**{"trial": "true", "real": "true", when: held.wait}))
    rewound = Rewinding(place)
    with pytest.raises(NotNow):
        rewound.advance("theirs", now() + 0.1)
    assert rewound.begun
    held.let_go()
    rewound.advance("theirs", soon())
    assert not rewound.begun


# --- who may touch it meanwhile -------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Note what is started, instead."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(lifecycle, "run", lambda *call, **_: calls.append(call))
    return calls


def begin(place: Place) -> Rewinding:
    """Have an agent begin a rewinding that is held."""
    before = Rewinding(place)
    with pytest.raises(NotNow):
        before.advance("theirs", now() + 0.3)
    return before


def test_h82_an_agent_that_is_restarted_lets_the_rewinding_go_on(
    place: Place,
    install: Callable[[str], None],
    held: Held,
    started: list[tuple[Any, ...]],
) -> None:
    install(TRIES.format(trial="true", real=f"rm postgresql.conf\n{held.wait}"))
    before = begin(place)
    checks.check(place, soon())
    after = Following(place, "a")
    with pytest.raises(NotNow):
        after.follow("host=there", now() + 0.1)
    assert started == []
    held.let_go()
    Rewinding(place).advance("theirs", soon())
    assert (place.data_directory / "postgresql.conf").read_bytes() == OURS
    assert before.begun is False


def test_h82_a_server_is_not_started_while_it_is_rewound(
    place: Place,
    install: Callable[[str], None],
    held: Held,
    started: list[tuple[Any, ...]],
) -> None:
    """Another act than to follow may be asked for meanwhile, such as to freeze."""
    install(TRIES.format(trial="true", real=held.wait))
    before = begin(place)
    with pytest.raises(NotNow, match="pg_rewind"):
        lifecycle.start(place, soon())
    held.let_go()
    before.advance("theirs", soon())
    lifecycle.start(place, soon())
    assert len(started) == 1


def test_h82_one_that_somebody_starts_meanwhile_is_of_no_use(
    monkeypatch: pytest.MonkeyPatch, place: Place, install: Callable[[str], None], held: Held
) -> None:
    install(TRIES.format(trial="true", real=held.wait))
    before = begin(place)
    monkeypatch.setattr(rewinding, "find_postmaster", lambda _: 1)
    with pytest.raises(Unfit, match="started while"):
        checks.check(place, soon())
    held.let_go()
    with pytest.raises(NeedsRebuild, match="started while"):
        before.advance("theirs", soon())


def test_h82_half_rewound_data_are_refused_at_the_start(
    place: Place, install: Callable[[str], None], started: list[tuple[Any, ...]]
) -> None:
    install(SUCCEEDS)
    place.rewinding.write_text("servers diverged at WAL location 0/3\n")
    with pytest.raises(Unfit, match=r"interrupted or failed: servers diverged.*pg_basebackup"):
        checks.check(place, soon())
    assert started == []


def test_h82_at_the_start_a_trial_that_was_cut_is_forgotten(
    place: Place, install: Callable[[str], None], tmp_path: Path
) -> None:
    """It has changed nothing; the host was switched off meanwhile."""
    saved = tmp_path / "saved"
    install(TRIES.format(trial=f"cp {place.rewinding} {saved}", real="true"))
    Rewinding(place).advance("theirs", soon())
    saved.rename(place.rewinding)
    (place.data_directory / "PG_VERSION").write_text("14\n")
    with pytest.raises(Unfit, match="PostgreSQL 14"):  # it looks on
        checks.check(place, soon())
    assert not place.rewinding.exists()


def test_h82_an_old_primary_that_its_archive_does_not_let_start_is_started_without(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    given: list[str] = []

    def run(_: Place, name: str, *arguments: str, **__: Any) -> str:
        given.append(" ".join(arguments))
        if "restore_command=" not in given[-1]:
            raise ProgramFailed(name, 1, "requested timeline 2 is not a child of this server's")
        return ""

    monkeypatch.setattr(lifecycle, "run", run)
    monkeypatch.setattr(checks, "_refuse_unseen", lambda *_: None)
    monkeypatch.setattr(checks, "_check_server", lambda *_: None)
    monkeypatch.setattr(checks, "_check_replication", lambda *_: None)
    monkeypatch.setattr(checks, "_check_data", lambda *_: None)
    monkeypatch.setattr(checks, "control", lambda *_: STOPPED)
    checks.check(place, soon())
    assert len(given) == 2


@pytest.mark.parametrize(
    ("source", "fits"), [("command line", True), ("configuration file", False)]
)
def test_h82_one_that_was_started_without_its_archive_is_looked_after(
    monkeypatch: pytest.MonkeyPatch, place: Place, source: str, fits: bool
) -> None:
    """An agent finds it so when it has started it, or the one before it has."""
    rows = [
        *(("full_page_writes", "on", "default"), ("hot_standby", "on", "default")),
        *((name, "", "default") for name in ("default_transaction_read_only", "primary_conninfo")),
        *((name, "", "default") for name in ("primary_slot_name", "synchronous_standby_names")),
        *((name, value, source) for name, value in lifecycle.APART.items()),
    ]
    said = SimpleNamespace(execute=lambda _: SimpleNamespace(fetchall=lambda: rows))
    monkeypatch.setattr(checks, "connect", lambda *_: nullcontext(said))
    answers = iter([(150000, "on"), (str(place.data_directory),)])
    monkeypatch.setattr(checks, "ask", lambda *_: next(answers))
    monkeypatch.setattr(checks, "find_postmaster", lambda _: 1)
    monkeypatch.setattr(checks, "_check_data", lambda _: None)
    monkeypatch.setattr(checks, "locate", lambda *_: None)
    monkeypatch.setattr(checks, "control", lambda *_: STOPPED)
    with nullcontext() if fits else pytest.raises(Unfit, match="recovery_target_timeline"):
        checks.check(place, soon())
