"""``--serve``: what is missing is told before anything is begun."""

from __future__ import annotations

import logging
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click
import pytest

import zkelect
from zkelect.cli.serving import listen

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """What the command line may set for itself, the tests put back."""
    logger = logging.getLogger("uvicorn")
    before = logger.level
    yield
    logger.setLevel(before)


def test_it_listens() -> None:
    with closing(listen("127.0.0.1:0")) as listener:
        assert listener.port > 0


def test_what_strangers_send_is_not_told_beside_what_the_command_writes() -> None:
    assert logging.getLogger("uvicorn.error").isEnabledFor(logging.WARNING)
    listen("127.0.0.1:0").close()
    assert not logging.getLogger("uvicorn.error").isEnabledFor(logging.WARNING)
    assert logging.getLogger("uvicorn.error").isEnabledFor(logging.ERROR)


def test_an_address_of_another_form_is_refused() -> None:
    with pytest.raises(zkelect.InvalidArgument, match="address='8008'"):
        listen("8008")


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_what_to_type(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("zkelect.server.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(click.UsageError) as refused:
        listen("127.0.0.1:0")
    assert refused.value.exit_code == 2  # the group makes it 64, as it does of all of them
    assert f"--serve: zkelect.server.serve needs {library}" in refused.value.message
    assert "pip install 'zkelect[server]'" in refused.value.message
