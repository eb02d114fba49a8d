"""For tests against a real ZooKeeper: servers, proxies that misbehave, a real expiry.

Each name is imported when it is first used, so ``python -m zkelect.testing.proxy`` starts
with nothing of it loaded, and a test pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zkelect.testing.distribution import Distribution, ServerNotFound, find_server
    from zkelect.testing.expiry import expire
    from zkelect.testing.fake import FakeEnsemble
    from zkelect.testing.forwarder import Forwarder
    from zkelect.testing.installation import InstallFailed, install
    from zkelect.testing.journal import Frame
    from zkelect.testing.local import LocalEnsemble
    from zkelect.testing.proxy import FaultProxy
    from zkelect.testing.proxy_rules import Rule
    from zkelect.testing.server import LocalServer, ServerFailed

__all__ = [
    "Distribution",
    "FakeEnsemble",
    "FaultProxy",
    "Forwarder",
    "Frame",
    "InstallFailed",
    "LocalEnsemble",
    "LocalServer",
    "Rule",
    "ServerFailed",
    "ServerNotFound",
    "expire",
    "find_server",
    "install",
]

_HOMES: Final = {
    "Distribution": "distribution",
    "FakeEnsemble": "fake",
    "FaultProxy": "proxy",
    "Forwarder": "forwarder",
    "Frame": "journal",
    "InstallFailed": "installation",
    "LocalEnsemble": "local",
    "LocalServer": "server",
    "Rule": "proxy_rules",
    "ServerFailed": "server",
    "ServerNotFound": "distribution",
    "expire": "expiry",
    "find_server": "distribution",
    "install": "installation",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'zkelect.testing' has no attribute {name!r}")
    value = getattr(import_module(f"zkelect.testing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
