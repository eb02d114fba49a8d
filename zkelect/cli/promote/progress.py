"""How far a change of the primary is, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.recipes.page import Phase

if TYPE_CHECKING:
    from zkelect.recipes.page import Page

__all__ = ["describe_phase"]


def describe_phase(page: Page | None) -> str:
    """Say what is being done; empty when nothing is."""
    if page is None:
        return ""
    words = {
        Phase.DEMOTE: f"{page.primary} stops taking writes",
        Phase.FREEZE: "what the others have is compared",
        Phase.CATCH_UP: f"{page.winner} applies what it has",
        Phase.PROMOTE: f"{page.winner} becomes primary",
        Phase.OPEN: f"{page.winner} lets writers in",
        Phase.STEADY: "",
    }
    return words[page.phase]
