"""H04 and H30: servers that restart, one by one and all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ensembles.stories import SHORT, bounce_servers, restart_in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkelect.testing.namespaces import NamespaceEnsemble


def test_h04_a_rolling_restart_changes_neither_leader_nor_token(
    ensemble: NamespaceEnsemble, path: str
) -> None:
    """marathon #4266: with sessions of 10 s."""
    restart_in_turn(ensemble, path)


@pytest.mark.timeout(600)
def test_h30_servers_that_bounce_leave_one_leader_each_time(
    ensemble: NamespaceEnsemble,
    path: str,
    times: Callable[..., int],
    measured: Callable[[str, float, float], None],
) -> None:
    """kazoo #116, #170."""
    for bounced in bounce_servers(ensemble, path, times(5, 20)):
        measured("from all servers there to one leader", bounced.leaderless, SHORT + 1)
        print(f"a second and candidate: {bounced.requests:.1f} requests, {bounced.lines:.1f} lines")
        assert bounced.requests < 40
        assert bounced.lines < 40
