"""What must pass on every mutant: otherwise it is caught by an import error, not by a test."""

from __future__ import annotations

import importlib
import pkgutil

import zkelect


def test_every_module_can_be_imported() -> None:
    found = [module.name for module in pkgutil.walk_packages(zkelect.__path__, "zkelect.")]
    for name in found:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    assert len(found) > 40
