"""Promotion of PostgreSQL 15: one :class:`Postgres` for each server, for the engine's agents."""

from __future__ import annotations

from zkelect.recipes.postgres.place import Place
from zkelect.recipes.postgres.resource import Postgres

__all__ = ["Place", "Postgres"]
