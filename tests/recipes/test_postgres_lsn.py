"""Positions in the WAL: text, order, arithmetic, file names."""

from __future__ import annotations

import pytest

import zkelect
from zkelect.recipes.postgres.lsn import Lsn, segment_name

MEGABYTE = 1 << 20


@pytest.mark.parametrize("text", ["0/0", "0/3000108", "16/B374D848", "FFFFFFFF/FFFFFFFF"])
def test_text_and_value_are_inverse(text: str) -> None:
    assert str(Lsn.parse(text)) == text


def test_the_slash_is_32_bits_from_the_right() -> None:
    assert Lsn.parse("1/0").byte == 1 << 32
    assert Lsn.parse("16/b374d848") == Lsn.parse("16/B374D848")


@pytest.mark.parametrize(
    "text", ["", "0", "0/", "/0", "0/0/0", "0/123456789", "g/0", " 0/0", "-1/0"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="16/B374D848"):
        Lsn.parse(text)


def test_order_is_by_number_not_by_text() -> None:
    assert Lsn.parse("A/0") > Lsn.parse("9/FFFFFFFF")
    assert Lsn.parse("10/0") > Lsn.parse("9/0")
    assert Lsn.parse("1/10") - Lsn.parse("0/FFFFFFFF") == 17


@pytest.mark.parametrize(
    ("timeline", "at", "size", "name"),
    [
        (1, "0/3000108", 16 * MEGABYTE, "000000010000000000000003"),
        (2, "0/2FFFFFF", 16 * MEGABYTE, "000000020000000000000002"),
        (26, "1/0", 16 * MEGABYTE, "0000001A0000000100000000"),
        (1, "0/FF000000", 16 * MEGABYTE, "0000000100000000000000FF"),
        (1, "2/C0000000", 1024 * MEGABYTE, "000000010000000200000003"),
        (1, "0/100000", MEGABYTE, "000000010000000000000001"),
    ],
)
def test_a_segment_has_the_name_that_pg_walfile_name_gives_it(
    timeline: int, at: str, size: int, name: str
) -> None:
    assert segment_name(timeline, Lsn.parse(at), size) == name
