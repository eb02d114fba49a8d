"""For tests against a real ZooKeeper: servers, proxies that misbehave, a real expiry.

Each name is imported when it is first used, so ``python -m zkelect.testing.proxy`` starts
with nothing of it loaded, and a test pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zkelect.testing.distribution import Distribution, ServerNotFound, find_server
    from zkelect.testing.docker import DockerEnsemble
    from zkelect.testing.docker_errors import EngineFailed, EngineNotFound, ImageNotFound
    from zkelect.testing.ensembles import Ensemble, FaultyEnsemble
    from zkelect.testing.expiry import expire
    from zkelect.testing.fake import FakeEnsemble
    from zkelect.testing.forwarder import Forwarder
    from zkelect.testing.installation import InstallFailed, install
    from zkelect.testing.journal import Frame
    from zkelect.testing.local import LocalEnsemble
    from zkelect.testing.mending import mend
    from zkelect.testing.namespaces import LoopbackEnsemble, NamespaceEnsemble
    from zkelect.testing.netns import NetworkUnavailable, find_missing
    from zkelect.testing.proxy import FaultProxy
    from zkelect.testing.proxy_rules import Rule
    from zkelect.testing.server import LocalServer, ServerFailed

__all__ = [
    "Distribution",
    "DockerEnsemble",
    "EngineFailed",
    "EngineNotFound",
    "Ensemble",
    "FakeEnsemble",
    "FaultProxy",
    "FaultyEnsemble",
    "Forwarder",
    "Frame",
    "ImageNotFound",
    "InstallFailed",
    "LocalEnsemble",
    "LocalServer",
    "LoopbackEnsemble",
    "NamespaceEnsemble",
    "NetworkUnavailable",
    "Rule",
    "ServerFailed",
    "ServerNotFound",
    "expire",
    "find_missing",
    "find_server",
    "install",
    "mend",
]

_HOMES: Final = {
    "Distribution": "distribution",
    "DockerEnsemble": "docker",
    "EngineFailed": "docker_errors",
    "EngineNotFound": "docker_errors",
    "Ensemble": "ensembles",
    "FakeEnsemble": "fake",
    "FaultProxy": "proxy",
    "FaultyEnsemble": "ensembles",
    "Forwarder": "forwarder",
    "Frame": "journal",
    "ImageNotFound": "docker_errors",
    "InstallFailed": "installation",
    "LocalEnsemble": "local",
    "LocalServer": "server",
    "LoopbackEnsemble": "namespaces",
    "NamespaceEnsemble": "namespaces",
    "NetworkUnavailable": "netns",
    "Rule": "proxy_rules",
    "ServerFailed": "server",
    "ServerNotFound": "distribution",
    "expire": "expiry",
    "find_missing": "netns",
    "find_server": "distribution",
    "install": "installation",
    "mend": "mending",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'zkelect.testing' has no attribute {name!r}")
    value = getattr(import_module(f"zkelect.testing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
