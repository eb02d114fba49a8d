"""``python -I -S …/keeper SOCKET FOLDER COMMAND…``: the keeper as a program."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

_KEEPER = Path(__file__).resolve().parent


def _import_bare() -> None:
    """Make this package importable without what is in the files ``__init__`` of its parents.

    They would import a ZooKeeper client and more: 20 MB, and a quarter of a second.
    """
    sys.path.pop(0)  # this folder, where a module might be taken for one of Python's own
    names = ("zkelect", "zkelect.cli", "zkelect.cli.run")
    for name, folder in zip(names, reversed(_KEEPER.parents[:3]), strict=True):
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


if __name__ == "__main__":
    _import_bare()
    from zkelect.cli.run.keeper.keeper import main

    main(sys.argv[1:])
