"""Promotion of Redis 7: one :class:`RedisServer` for each server, for the engine's agents."""

from __future__ import annotations

from zkelect.recipes.redis.place import Place
from zkelect.recipes.redis.resource import RedisServer

__all__ = ["Place", "RedisServer"]
