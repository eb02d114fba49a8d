"""Follows a cluster's page, and keeps each that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.recipes.board import Board
    from zkelect.recipes.page import Page

__all__ = ["PageWatch"]


class PageWatch(Background):
    """Follows the page while the block lasts.

    ZooKeeper's watches may skip a page that is replaced at once; no phase is that short.

    :param told: called with each page, on the thread that follows.
    """

    def __init__(self, board: Board, told: Callable[[Page], None]) -> None:
        super().__init__(self._work)
        self._board = board
        self._told = told
        self.pages: list[Page] = []

    def _work(self) -> None:
        with self._board.pages() as following:
            while not self.done.is_set():
                page = self._board.page_of(following.znode)
                if page is not None and (not self.pages or page != self.pages[-1]):
                    self.pages.append(page)
                    self._told(page)
                following.wait(0.2)
