"""Puts an ensemble right again that a test has broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zkelect.testing.ensembles import FaultyEnsemble

__all__ = ["mend"]


def mend(ensemble: FaultyEnsemble, *, timeout: float = 60.0) -> None:
    """Heal the network, let paused servers go on, start those that ended, wait for them all.

    :param timeout: seconds, above 0, in which all must serve again.
    :raises ServerFailed: one does not.
    """
    ensemble.heal()
    for server in ensemble.servers:
        if server.paused:
            server.resume()
        elif not server.running:
            server.launch()
    ensemble.wait_ready(timeout=timeout)
