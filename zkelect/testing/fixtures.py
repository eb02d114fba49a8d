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
    from zkelect.testing.ensembles import FaultyEnsemble

__all__ = ["fake_ensemble", "fault_proxy", "zookeeper", "zookeeper_ensemble"]


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[LocalEnsemble]:
    """One real server on the loopback interface for the whole run; see ``LocalEnsemble``.

    Tests share it: use a path of your own in each, and stop nothing. A missing server is an
    error that says what to install, never a skip.
    """
    with testing.LocalEnsemble() as started:
        yield started


@pytest.fixture(scope="session")
def _three_servers() -> Iterator[FaultyEnsemble]:
    """Start three servers when the first test wants them, for the whole run."""
    missing = testing.find_missing()
    started: FaultyEnsemble = testing.LoopbackEnsemble() if missing else testing.NamespaceEnsemble()
    with started:
        yield started


@pytest.fixture
def zookeeper_ensemble(_three_servers: FaultyEnsemble) -> Iterator[FaultyEnsemble]:
    """Three real servers to kill, pause and restart, and whose network can be broken.

    Tests share them. After each the network is healed, paused servers go on, those that have
    ended are started, and the next test begins when all three serve; znodes stay, so use a
    path of your own in each. The servers grant session timeouts from 0.4 to 4 s.

    As root on Linux, with iproute2 and iptables, this is a :class:`NamespaceEnsemble`. For
    everybody else it is a :class:`LoopbackEnsemble`: servers can be killed, paused and
    restarted just the same, and a test that breaks the network fails, by NetworkUnavailable,
    which says what is missing. A missing server is an error, never a skip.
    """
    yield _three_servers
    testing.mend(_three_servers)


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
