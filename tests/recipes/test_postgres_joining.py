"""What a PostgreSQL server must be before it follows, and that it starts as a standby (H82).

There is no server: what one says is given, and what is done with it is noted.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.position import Position
from zkelect.recipes.postgres import agreement, following, lifecycle, rewinding, settings
from zkelect.recipes.postgres.controldata import ControlData
from zkelect.recipes.postgres.following import Following
from zkelect.recipes.postgres.lsn import Lsn
from zkelect.recipes.postgres.place import Place
from zkelect.recipes.postgres.state import State
from zkelect.recipes.resource import NeedsRebuild, NotNow

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 16
OURS, THEIRS = Position.parse("s-1@0/2@8:20"), Position.parse("s-1@0/2@8:40")
"""Our last byte is the fourth of the second segment of timeline 2."""
SECOND = "000000020000000000000001"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    data = tmp_path / "data"
    (data / "pg_wal").mkdir(parents=True)
    return Place(data_directory=data, local="host=here", credentials="user=us")


def soon() -> float:
    return now() + 30.0


# --- the same bytes -----------------------------------------------------------------------------


def give(monkeypatch: pytest.MonkeyPatch, **segments: bytes) -> None:
    """Have the primary answer by these files of its WAL, named by their timeline."""
    files = {f"pg_wal/{name[1:]}": data for name, data in segments.items()}

    def ask(source: str, query: str, deadline: float, *asked: Any) -> tuple[Any]:
        if not asked:
            return (SIZE,)
        name, length = asked
        return (hashlib.sha256(files[name][:length]).digest() if name in files else None,)

    monkeypatch.setattr(agreement, "ask", ask)


def same(place: Place) -> bool | None:
    return agreement.same_bytes(place, "theirs", OURS, THEIRS, soon())


def test_h82_two_timelines_of_one_number_are_told_apart_by_their_last_bytes(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    (place.data_directory / "pg_wal" / SECOND).write_bytes(b"abcdefgh")
    give(monkeypatch, _000000020000000000000001=b"abcd-other")
    assert same(place) is True
    give(monkeypatch, _000000020000000000000001=b"abcxefgh")
    assert same(place) is False


def test_h82_a_segment_that_is_gone_is_no_proof(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    give(monkeypatch, _000000020000000000000001=b"abcd")
    assert same(place) is None
    (place.data_directory / "pg_wal" / SECOND).write_bytes(b"abcd")
    give(monkeypatch)
    assert same(place) is None


def test_a_segment_may_have_the_name_of_the_timeline_before(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    (place.data_directory / "pg_wal" / SECOND).write_bytes(b"abcd")
    give(monkeypatch, _000000010000000000000001=b"abcd")
    assert same(place) is True


# --- following ------------------------------------------------------------------------------------


STANDBY = State(
    system="s",
    standby=True,
    follows="",
    paused=False,
    replayed=None,
    received=None,
    promised=None,
    streaming=True,
    receiver=None,
    idle=True,
)


class Stage:
    """A standby that follows nobody, and what is done to have it follow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
        self.done: list[str] = []
        self.joining = Following(place, "a")
        for name in (
            *("find_postmaster", "bar", "start", "start_alone", "kill"),
            *("write_settings", "apply", "ask"),
        ):
            monkeypatch.setattr(following, name, self._noted(name))
        self.say(monkeypatch, "read_state", STANDBY)
        self.say(monkeypatch, "apply_received", OURS)
        self.say(monkeypatch, "locate", THEIRS)

    def _noted(self, name: str) -> Any:
        def note(*_: Any) -> None:
            self.done.append(name)

        return note

    @staticmethod
    def say(monkeypatch: pytest.MonkeyPatch, what: str, answer: object) -> None:
        monkeypatch.setattr(following, what, lambda *_: answer)

    def follow(self) -> None:
        self.joining.follow("host=there", soon())


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, place: Place) -> Stage:
    return Stage(monkeypatch, place)


def test_h82_one_whose_wal_is_a_part_of_the_primarys_follows(
    monkeypatch: pytest.MonkeyPatch, stage: Stage
) -> None:
    stage.say(monkeypatch, "same_bytes", True)
    stage.follow()
    assert stage.done[-1] == "apply"


@pytest.mark.parametrize("answer", [False, None])
def test_h82_where_the_bytes_differ_or_cannot_be_compared_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, stage: Stage, answer: bool | None
) -> None:
    stage.say(monkeypatch, "same_bytes", answer)
    with pytest.raises(NeedsRebuild, match="pg_basebackup"):
        stage.follow()
    assert "apply" not in stage.done


def test_h82_before_it_is_compared_it_follows_nobody(
    monkeypatch: pytest.MonkeyPatch, stage: Stage
) -> None:
    """Or it would have taken in what cannot be told apart any more."""
    stage.say(monkeypatch, "same_bytes", False)
    with pytest.raises(NeedsRebuild):
        stage.follow()
    assert [act for act in stage.done if act != "find_postmaster"] == ["bar", "start_alone"]


def test_h82_one_that_was_half_rewound_is_not_touched(stage: Stage, place: Place) -> None:
    place.rewinding.write_text("servers diverged at WAL location 0/3\n")
    with pytest.raises(NeedsRebuild, match="interrupted or failed: servers diverged at WAL"):
        stage.follow()
    assert stage.done == []


def test_h82_without_checksums_or_hints_nothing_is_rewound(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """What pg_rewind does not see it leaves as it is, and both are mixed."""
    data = ControlData(system="s", state="", checkpoint=Lsn(0), timeline=1, rewindable=False)
    monkeypatch.setattr(rewinding, "control", lambda *_: data)
    monkeypatch.setattr(rewinding, "stop", lambda *_: pytest.fail("it was stopped"))
    with pytest.raises(NeedsRebuild, match="data checksums"):
        rewinding.Rewinding(place).advance("theirs", soon())


# --- what is written ------------------------------------------------------------------------------


def test_a_server_whose_clock_is_set_back_has_read_its_settings_all_the_same(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """Else each such write would wait until its deadline."""
    loaded = iter([(1000.0, True), (1000.0,), (400.0,)])
    monkeypatch.setattr(settings, "ask", lambda *_: next(loaded))
    monkeypatch.setattr(settings, "read_settings", lambda *_: {"work_mem": "8MB"})
    settings.apply(place, {"work_mem": "8MB"}, soon())
    assert not list(loaded)


def test_what_others_wrote_into_the_settings_stays_byte_by_byte(place: Place) -> None:
    """ALTER SYSTEM writes in the encoding of its database."""
    place.settings.write_bytes(b"cluster_name = 'gr\xfc\xdfe'\n")
    settings.write_settings(place, {"work_mem": "8MB"})
    assert place.settings.read_bytes() == b"cluster_name = 'gr\xfc\xdfe'\nwork_mem = '8MB'\n"


# --- the start ------------------------------------------------------------------------------------


def test_h82_a_server_starts_as_a_standby_whoever_it_was(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    marked: list[bool] = []
    monkeypatch.setattr(lifecycle, "run", lambda *_, **__: marked.append(place.signal.exists()))
    lifecycle.start(place, soon())
    assert marked == [True]


def test_h82_one_that_is_barred_follows_nobody_and_is_closed(place: Place) -> None:
    place.settings.write_text("primary_conninfo = 'host=old'\nwork_mem = '8MB'\n")
    lifecycle.bar(place)
    told = place.settings.read_text().splitlines()
    assert {"work_mem = '8MB'", "primary_conninfo = ''"} <= set(told)
    assert "default_transaction_read_only = 'on'" in told
    assert place.signal.exists()


# --- how long one try may take --------------------------------------------------------------------


def test_a_try_that_did_not_fit_is_given_more_time(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """Each begins anew, so one that never fits never ends: seen at a load of 25."""
    clock, given = [100.0], []

    def look(_: Place, deadline: float) -> State:
        given.append(deadline - clock[0])
        if len(given) == 5:
            raise NotNow("the server is starting")
        clock[0] = deadline
        raise NotNow("the time given for it is over")

    monkeypatch.setattr(following, "now", lambda: clock[0])
    monkeypatch.setattr(following, "find_postmaster", lambda _: 1)
    monkeypatch.setattr(following, "read_state", look)
    joining = Following(place, "db1")
    for _ in range(6):
        with pytest.raises(NotNow):
            joining.follow("host=there", clock[0] + 600.0)
    assert given == [5.0, 10.0, 20.0, 20.0, 20.0, 20.0]
