"""The token in the fence of the server that leads: what else is written there obeys it (grade A).

Of the contract: each test is run with each kind of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.stage import Stage

    from zkelect.stores import Mark

pytestmark = pytest.mark.timeout(300)


def test_the_new_primary_has_the_token_of_the_page_and_takes_no_older_one(
    stage: Callable[..., Stage[Any]], path: str
) -> None:
    here = stage()
    old = claimed(here, path)
    here.fail_over()
    page = here.crew.page
    assert page is not None
    new = claimed(here, path)
    assert str(new) == page.primary_token
    assert new > old
    with here.cluster[here.primary].open_fence(path) as fence, pytest.raises(zkelect.Fenced):
        fence.claim(old)
    assert claimed(here, path) == new


def claimed(here: Stage[Any], path: str) -> zkelect.Token:
    with here.cluster[here.primary].open_fence(path) as fence:
        mark: Mark | None = fence.status()
    assert mark is not None
    return mark.token
