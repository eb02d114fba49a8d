"""What is written into postgresql.auto.conf, and read from pg_controldata."""

from __future__ import annotations

import pytest

import zkelect
from zkelect.recipes.postgres.controldata import ControlData
from zkelect.recipes.postgres.lsn import Lsn
from zkelect.recipes.postgres.settings import edited
from zkelect.recipes.postgres.synchrony import standby_names

PRINTED = """\
pg_control version number:            1300
Database system identifier:           7713976267095447155
Database cluster state:               in archive recovery
Latest checkpoint location:           0/3000090
Latest checkpoint's REDO WAL file:    000000020000000000000003
Latest checkpoint's TimeLineID:       2
wal_log_hints setting:                {hints}
Data page checksum version:           {checksums}
"""


def test_other_lines_stay_and_ours_are_there_once() -> None:
    text = "# Do not edit\nwork_mem = '8MB'\nprimary_conninfo = 'host=a'\n primary_conninfo='b'\n"
    assert edited(text, {"primary_conninfo": "", "primary_slot_name": "x"}) == (
        "# Do not edit\nwork_mem = '8MB'\nprimary_conninfo = ''\nprimary_slot_name = 'x'\n"
    )


def test_a_name_that_begins_alike_is_another_one() -> None:
    assert edited("work_mem_x = '1'\n", {"work_mem": "2"}) == "work_mem_x = '1'\nwork_mem = '2'\n"


def test_to_write_the_same_again_changes_nothing() -> None:
    once = edited("", {"a": "1", "b": "it's"})
    assert once == "a = '1'\nb = 'it''s'\n"
    assert edited(once, {"a": "1", "b": "it's"}) == once


def test_a_backslash_is_no_escape() -> None:
    """In the file it would be one, and what follows it another character."""
    assert edited("", {"a": "o\\'brien"}) == "a = 'o\\\\''brien'\n"


def test_a_line_is_what_postgresql_takes_for_one() -> None:
    text = "a = 'next\u0085line \u2028 \x0c'\n"
    assert edited(text, {"b": ""}) == f"{text}b = ''\n"


@pytest.mark.parametrize(
    ("names", "setting"),
    [
        ([], ""),
        (["beta"], 'FIRST 1 ("beta")'),
        (["gamma", "beta"], 'FIRST 2 ("beta", "gamma")'),
        (['the "b"'], 'FIRST 1 ("the ""b""")'),
    ],
)
def test_every_one_of_the_names_has_to_confirm(names: list[str], setting: str) -> None:
    assert standby_names(names) == setting


@pytest.mark.parametrize(
    ("hints", "checksums", "rewindable"),
    [("on", "0", True), ("off", "1", True), ("on", "1", True), ("off", "0", False)],
)
def test_the_control_file_is_read(hints: str, checksums: str, rewindable: bool) -> None:
    assert ControlData.parse(PRINTED.format(hints=hints, checksums=checksums)) == ControlData(
        system="7713976267095447155",
        state="in archive recovery",
        checkpoint=Lsn.parse("0/3000090"),
        timeline=2,
        rewindable=rewindable,
    )


def test_what_is_no_control_data_is_refused() -> None:
    with pytest.raises(zkelect.InvalidArgument, match="pg_controldata"):
        ControlData.parse("pg_controldata: could not open file")
