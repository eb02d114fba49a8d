"""H74: what candidates call themselves is text that others have chosen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.command import Ended, Running
    from conftest import Actor, Operator

PEER = "1111111111114111811111111111{:04d}__lock__"
NAMES = {
    b"fox \xf0\x9f\xa6\x8a": ("fox 🦊", "fox 🦊"),
    b"latin \xe9\xff": (r"latin \xe9\xff", r"latin \xe9\xff"),
    b"two\nlines\tand\x1b[2Ja bell\x07": (
        "two\nlines\tand\x1b[2Ja bell\x07",
        r"two\nlines\tand\x1b[2Ja bell\x07",
    ),
    "\u202egro.live".encode(): ("\u202egro.live", r"\u202egro.live"),
    b"": ("", "(no name)"),
}
"""What stands in the znode: what JSON has of it, and what people see."""


def test_h74_names_of_others_are_shown_escaped_and_shortened(
    operator: Operator, zkelect_command: Callable[..., Ended], path: str
) -> None:
    operator.kazoo.ensure_path(path)
    for number, data in enumerate([*NAMES, b"x" * 1_000_000]):
        prefix = f"{path}/{PEER.format(number)}"
        operator.kazoo.create(prefix, data, ephemeral=True, sequence=True)
    told = json.loads(zkelect_command("status", path, "-o", "json").out)
    names = [row["name"] for row in told["queue"]]
    assert names == [*(name for name, _ in NAMES.values()), "x" * 8192]
    for arguments in (("status", path), ("status", path, "-o", "tsv")):
        ended = zkelect_command(*arguments)
        assert ended.status == 0
        assert "\x1b" not in ended.out.replace("two\\nlines\\tand\x1b", "") or "tsv" in arguments
    page = zkelect_command("status", path).out
    assert all(shown in page for _, shown in NAMES.values())
    assert "x" * 59 + "…" in page
    assert "x" * 61 not in page
    assert "a name of 1000000 bytes" in page
    assert all(line.isprintable() for line in page.splitlines())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_h74_where_letters_are_missing_they_are_escaped_and_boxes_are_ascii(
    operator: Operator, zkelect_command: Callable[..., Ended], path: str, encoding: str
) -> None:
    operator.kazoo.ensure_path(path)
    name = f"{path}/{PEER.format(1)}"
    operator.kazoo.create(name, "🦊".encode(), ephemeral=True, sequence=True)
    for command in ("status", "list"):
        ended = zkelect_command(command, path, PYTHONIOENCODING=encoding, LANG="C")
        assert ended.status == 0, ended.err
        assert r"\U0001f98a" in ended.out
        assert "---" in ended.out
        assert ended.out.isascii()


def test_h74_an_emoji_of_ours_reaches_whoever_looks(
    cast: Callable[..., Actor],
    begin: Callable[..., Running],
    zkelect_command: Callable[..., Ended],
    path: str,
) -> None:
    cast("fox 🦊", address="\u202e:80").lead()
    assert "fox 🦊 leads" in (line := begin("watch", path).line())
    assert r"\u202e:80" in line
    for command in ("status", "list", "history"):
        assert "fox 🦊" in zkelect_command(command, path).out
    assert (
        json.loads(zkelect_command("list", path, "-o", "json").out)[0]["leader"]["name"] == "fox 🦊"
    )


@pytest.mark.parametrize("argument", ["name", "address"])
def test_h74_we_refuse_more_than_8_kib_of_our_own_and_name_the_limit(
    cast: Callable[..., Actor], path: str, argument: str
) -> None:
    texts = {"name": "host-a", argument: "é" * 4096}
    cast(texts.pop("name"), **texts).lead()
    with pytest.raises(zkelect.InvalidArgument, match="at most 8192 bytes, not 8193") as refused:
        cast(**{"name": "host-a", argument: "é" * 4096 + "x"})
    assert refused.value.argument == argument
    assert len(str(refused.value)) < 1000
