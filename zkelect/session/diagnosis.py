"""Why no server let us in: what each of them answered, in words."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Final

from zkelect.errors import ConnectFailed, TlsFailed, ZkelectError
from zkelect.session.handler import NOT_SERVING
from zkelect.session.hosts import Hosts

__all__ = ["all_closed", "explain", "speaks_tls", "tls_hopeless"]

_TLS_TIMEOUT: Final = 1.0
_RESOLVE_TIMEOUT: Final = 0.5
_UNRESOLVED: Final = "the name does not resolve"


def explain(hosts: Hosts, timeout: float, causes: Mapping[str, Exception]) -> ZkelectError:
    """Return the error for a connect that found no server."""
    if tls_hopeless(hosts, causes):
        return next(cause for cause in causes.values() if isinstance(cause, TlsFailed))
    told = {name: _in_words(causes[name]) for name in hosts.names if name in causes}
    error = ConnectFailed(str(hosts), timeout, _unresolved(hosts) | told)
    error.__cause__ = next(iter(causes.values()), None)
    return error


def tls_hopeless(hosts: Hosts, causes: Mapping[str, Exception]) -> bool:
    """Whether every server has refused the handshake: it will do so again."""
    return all(isinstance(causes.get(name), TlsFailed) for name in hosts.names)


def all_closed(hosts: Hosts, causes: Mapping[str, Exception]) -> bool:
    """Whether every server took the connection and closed it without a word."""
    return all(getattr(causes.get(name), "strerror", None) == NOT_SERVING for name in hosts.names)


def speaks_tls(host: str, port: int) -> bool:
    """Whether a TLS handshake succeeds there, whatever the certificate; takes a second at most."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is trusted to it: it is only asked
    try:
        with (
            socket.create_connection((host, port), timeout=_TLS_TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except OSError:
        return False


def _unresolved(hosts: Hosts) -> dict[str, str]:
    """kazoo leaves out names that do not resolve: name them.

    A name server that keeps silent must not make the caller wait, so a thread asks it.
    """
    causes = dict.fromkeys(hosts.names, f"{_UNRESOLVED} (the name server does not answer)")
    asking = threading.Thread(target=_resolve, args=(hosts, causes), daemon=True)
    asking.start()
    asking.join(_RESOLVE_TIMEOUT)
    return dict(causes)


def _resolve(hosts: Hosts, causes: dict[str, str]) -> None:
    for (host, port), name in zip(hosts.servers, hosts.names, strict=True):
        try:
            socket.getaddrinfo(host, port)
            causes.pop(name, None)
        except socket.gaierror as error:
            causes[name] = f"{_UNRESOLVED} ({error.strerror})"


def _in_words(cause: Exception) -> str:
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
