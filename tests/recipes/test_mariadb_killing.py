"""A MariaDB server that is killed and does not end, as with a disk that is dead."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.mariadb import process
from zkelect.recipes.resource import NotNow

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(20)


@pytest.mark.parametrize("seconds", [-1.0, 0.1])
def test_one_that_does_not_end_is_not_waited_for_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """The server is this very process, and nobody kills it."""
    sent: list[int] = []
    monkeypatch.setattr(process, "find_server", lambda _: os.getpid())
    monkeypatch.setattr(process, "_serves", lambda *_: True)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda _, number: sent.append(number))
    with pytest.raises(NotNow, match=f"process {os.getpid()} of the server .* may take writes"):
        process.kill(tmp_path, now() + seconds)
    assert sent == [signal.SIGKILL]
