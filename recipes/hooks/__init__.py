"""Promotion of any store: what is done to a server is done by executables of the user's."""

from __future__ import annotations

from zkelect.recipes.hooks.executables import Hooks
from zkelect.recipes.hooks.failures import HookFailed, HookMissing
from zkelect.recipes.hooks.order import Order, Verb
from zkelect.recipes.hooks.resource import HookedServer

__all__ = ["HookFailed", "HookMissing", "HookedServer", "Hooks", "Order", "Verb"]
