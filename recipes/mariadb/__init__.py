"""Promotion of MariaDB 10.11: one :class:`MariaDB` for each server, for the engine's agents."""

from __future__ import annotations

from zkelect.recipes.mariadb.place import Place
from zkelect.recipes.mariadb.resource import MariaDB

__all__ = ["MariaDB", "Place"]
