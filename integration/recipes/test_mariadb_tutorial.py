"""The tutorial of docs/promotion_mariadb.md, run as it stands there, but for free ports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from recipes.tutorial import commands_of, free_ports, run_tutorial
from servers.packages import program

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[2] / "docs" / "promotion_mariadb.md"


@pytest.mark.timeout(300)
def test_the_tutorial_for_mariadb(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    program("mariadbd")
    with free_ports("\n".join(commands_of(PAGE)), r"\b3306\d\b") as script:
        run_tutorial(script, zookeeper, tmp_path, account="mysql")
