"""pytest fixtures: a real server, one in memory, a proxy that misbehaves.

pytest loads this by its entry point; nothing else imports it, so whoever has no pytest never
needs it. ``pip install 'zkelect[testing]'`` brings pytest; a test asks by name::

    def test_my_service(zookeeper: zkelect.testing.LocalEnsemble) -> None:
        with zkelect.connect(zookeeper.hosts) as session: ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from zkelect import testing

if TYPE_CHECKING:
    from zkelect.testing import FakeEnsemble, FaultProxy, LocalEnsemble

__all__ = ["fake_ensemble", "fault_proxy", "zookeeper"]


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[LocalEnsemble]:
    """One real server on the loopback interface for the whole run; see ``LocalEnsemble``.

    Tests share it: use a path of your own in each, and stop nothing. A missing server is an
    error that says what to install, never a skip.
    """
    with testing.LocalEnsemble() as started:
        yield started


@pytest.fixture
def fault_proxy(zookeeper: LocalEnsemble) -> Iterator[FaultProxy]:
    """Stand a proxy between your client and ``zookeeper``; connect to its ``hosts``."""
    with testing.FaultProxy(zookeeper.hosts) as proxy:
        yield proxy


@pytest.fixture
def fake_ensemble() -> Iterator[FakeEnsemble]:
    """Make an ensemble in memory, of one server, without network and with a clock to turn."""
    with testing.FakeEnsemble() as fake:
        yield fake
