"""What a process of the run can be: ``python integration/chaos ROLE SETTINGS``."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from chaos.broken import break_library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CONTROL", "ROLES", "play"]

CONTROL: Final = "ZKELECT_CHAOS_CONTROL"
"""Environment variable that names the control, by which every process breaks its library."""

ROLES: Final[Mapping[str, str]] = {
    "candidate": "candidate:stand",
    "memory": "memory_server:serve",
    "observer": "observer:observe",
}


def play(role: str, settings: dict[str, Any]) -> None:
    """Be this process until it is told to leave, or killed."""
    break_library(os.environ.get(CONTROL, ""))
    module, _, name = ROLES[role].partition(":")
    act: Callable[..., None] = getattr(import_module(f"chaos.{module}"), name)
    act(**settings)
