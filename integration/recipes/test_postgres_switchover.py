"""A planned switch of PostgreSQL that cannot be: the old primary goes on."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import zkelect

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.postgres_node import PostgresNode
    from recipes.stage import Stage


@pytest.mark.timeout(300)
def test_a_switch_to_one_that_does_not_receive_is_called_off(
    postgres_stage: Callable[..., Stage[PostgresNode]],
) -> None:
    """The old primary is opened again, and nothing is lost."""
    here = postgres_stage()
    here.crew.wait_following()
    node = here.cluster["beta"]
    receiver = node.ask("select pid from pg_stat_activity where backend_type = 'walreceiver'")
    os.kill(receiver, signal.SIGSTOP)
    try:
        with pytest.raises(zkelect.SwitchoverFailed):
            here.crew.promotion.switchover("beta")
        here.writer.wait_for(20, port=here.cluster["alpha"].port)
    finally:
        with suppress(ProcessLookupError):
            os.kill(receiver, signal.SIGCONT)
    assert here.lost_rows() == []
    here.crew.wait_following()
    here.check_one_writable()
    here.check_all_equal()
