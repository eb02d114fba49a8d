"""Keeping the sync set: the primary's agent takes the steps of :mod:`sync_set` in turn."""

from __future__ import annotations

import logging
from typing import Final

import zkelect
from zkelect.recipes.board import Board
from zkelect.recipes.choice import Policy, SyncSet
from zkelect.recipes.clock import now
from zkelect.recipes.page import Page
from zkelect.recipes.resource import Resource, SynchronousResource, Unfit
from zkelect.recipes.sync_set import Record, Require, next_step

__all__ = ["Synchrony"]

_log: Final = logging.getLogger("zkelect.recipes")


class Synchrony:
    """What a primary waits for, and what is recorded of it.

    :raises Unfit: the policy is synchronous, and the resource cannot wait for anybody.
    """

    def __init__(self, board: Board, resource: Resource, policy: Policy) -> None:
        self._board = board
        self._policy = policy
        self._resource: SynchronousResource | None = None
        self._required: frozenset[str] | None = None
        if policy.synchronous:
            if not isinstance(resource, SynchronousResource):
                raise Unfit("this resource has no synchronous mode: use synchronous=False")
            self._resource = resource

    def begin(self, page: Page, deadline: float) -> None:
        """Before writers are let in: wait for those who are recorded, in a new reign nobody."""
        if self._resource is not None:
            self._require(self._recorded(page), deadline)

    def keep(self, page: Page, leadership: zkelect.Leadership, version: int) -> None:
        """Take the steps that can be taken now, as the primary that the page names."""
        while self._resource is not None:
            recorded = self._recorded(page)
            in_step = _electable(page).intersection(self._resource.in_step())
            step = next_step(
                recorded=recorded,
                required=self._required,
                in_step=in_step,
                size=self._policy.sync_size,
            )
            match step:
                case Require(names=names):
                    self._require(names, now() + self._policy.phase_timeout)
                case Record(names=names):
                    recorded_now = SyncSet(reign=page.reign, names=tuple(sorted(names)))
                    self._board.record(leadership, recorded_now, version=version)
                    _log.info("%s: in step are %s", self._board.path, ", ".join(sorted(names)))
                case None:
                    return

    def _require(self, names: frozenset[str], deadline: float) -> None:
        """Have the server wait for these; when that fails, it is not known for whom it does."""
        assert self._resource is not None
        self._required = None
        self._resource.require(names, deadline)
        self._required = names

    def _recorded(self, page: Page) -> frozenset[str]:
        sync, _ = self._board.sync()
        return (
            frozenset(sync.names) if sync is not None and sync.reign == page.reign else frozenset()
        )


def _electable(page: Page) -> frozenset[str]:
    """Return who may win some day; a backup that receives WAL, too, is no use to wait for."""
    return frozenset(
        member.name for member in page.members if member.candidate and member.name != page.primary
    )
