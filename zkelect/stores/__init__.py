"""Guarded stores: each refuses a stale leader's token, atomically with the write.

A name is imported when it is first used, so that a program pays only for the database
library of the store it has (a store's library may be an extra that is not installed).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zkelect.stores.adoption import adopt
    from zkelect.stores.mark import Mark
    from zkelect.stores.memory import MemoryFence
    from zkelect.stores.sqlite import SqliteFence

__all__ = ["Mark", "MemoryFence", "SqliteFence", "adopt"]

_MODULES: Final = {
    "Mark": "mark",
    "MemoryFence": "memory",
    "SqliteFence": "sqlite",
    "adopt": "adoption",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
