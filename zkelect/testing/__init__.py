"""For tests against a real ZooKeeper: servers, a forwarder that misbehaves, a real expiry."""

from __future__ import annotations

from zkelect.testing.distribution import Distribution, ServerNotFound, find_server
from zkelect.testing.expiry import expire
from zkelect.testing.forwarder import Forwarder
from zkelect.testing.installation import InstallFailed, install
from zkelect.testing.journal import Frame
from zkelect.testing.local import LocalEnsemble
from zkelect.testing.server import LocalServer, ServerFailed

__all__ = [
    "Distribution",
    "Forwarder",
    "Frame",
    "InstallFailed",
    "LocalEnsemble",
    "LocalServer",
    "ServerFailed",
    "ServerNotFound",
    "expire",
    "find_server",
    "install",
]
