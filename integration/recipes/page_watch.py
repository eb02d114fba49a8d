"""Follows a cluster's page, and keeps each that was written."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from zkelect.recipes.board import Board
    from zkelect.recipes.page import Page

__all__ = ["PageWatch"]


class PageWatch:
    """Follows the page while the block lasts.

    ZooKeeper's watches may skip a page that is replaced at once; no phase is that short.

    :param told: called with each page, on the thread that follows.
    """

    def __init__(self, board: Board, told: Callable[[Page], None]) -> None:
        self._board = board
        self._told = told
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="pages", daemon=True)
        self.pages: list[Page] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join(30)

    def _work(self) -> None:
        with self._board.pages() as following:
            while not self._done.is_set():
                page = self._board.page_of(following.znode)
                if page is not None and (not self.pages or page != self.pages[-1]):
                    self.pages.append(page)
                    self._told(page)
                following.wait(0.2)
