"""How a server would start: what is read of options as it takes them itself."""

from __future__ import annotations

import pytest

from zkelect.recipes.mariadb.settings import is_on, options_of


@pytest.mark.parametrize(
    ("arguments", "on"),
    [
        (["--read_only=1"], True),
        (["--read-only"], True),
        (["--read-only=ON"], True),
        (["--loose-read-only=true"], True),
        ([], False),
        (["--read_only=0"], False),
        (["--read_only=off"], False),
        (["--read-only", "--read-only=0"], False),
        (["--read-only=0", "--read-only"], True),
        (["--read-only", "--skip-read-only"], False),
        (["--disable_read_only", "--read_only=1"], True),
        (["--enable-read-only"], True),
        (["--skip-slave-start"], False),
    ],
)
def test_of_options_that_say_the_same_the_last_counts(arguments: list[str], *, on: bool) -> None:
    assert is_on(options_of(arguments), "read_only") is on


def test_an_option_whose_name_begins_with_skip_is_no_negation() -> None:
    assert is_on(options_of(["--skip-slave-start"]), "skip_slave_start")
    assert is_on(options_of(["--skip_slave_start=1"]), "skip_slave_start")
    assert not is_on(options_of(["--skip-slave-start=0"]), "skip_slave_start")
