"""The sample of docs/promotion_hooks.md, run as it stands there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recipes.hooks_stage import PAGE
from recipes.tutorial import commands_of, run_tutorial

if TYPE_CHECKING:
    from pathlib import Path

    from zkelect.testing import LocalEnsemble


@pytest.mark.timeout(300)
def test_the_tutorial_for_hooks(zookeeper: LocalEnsemble, tmp_path: Path) -> None:
    run_tutorial("\n".join(commands_of(PAGE)), zookeeper, tmp_path)
