"""The tutorial of docs/promotion.md, run as it stands there; only the ports are free ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from recipes.tutorial import commands_of, free_ports, run_tutorial
from servers.packages import install

if TYPE_CHECKING:
    from zkelect.testing import LocalEnsemble

PAGE: Final = Path(__file__).parents[2] / "docs" / "promotion.md"


@pytest.mark.timeout(300)
def test_the_tutorial_for_postgresql(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    install("postgresql-15")
    commands = commands_of(PAGE, "Tutorial: three servers on one machine")
    with free_ports("\n".join(commands), r"\b543\d\d\b") as script:
        run_tutorial(script, zookeeper, tmp_path, account="postgres")
