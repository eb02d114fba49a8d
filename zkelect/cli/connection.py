"""The options by which a command reaches ZooKeeper, and the session they make."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import click

import zkelect
from zkelect.cli.config import read_config
from zkelect.cli.durations import Seconds, timed
from zkelect.cli.exits import STATUSES
from zkelect.cli.logs import log_to_stderr

__all__ = ["Target", "reaching"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NOWHERE: Final = (
    "Where is ZooKeeper? Say -H/--hosts 'zk1:2181,zk2:2181/chroot', set ZKELECT_HOSTS, or write "
    "hosts = '...' into ~/.config/zkelect/config.toml."
)


@attrs.frozen(kw_only=True)
class Target:
    """Where ZooKeeper is, and how to speak to it.

    :ivar timeout: seconds to wait for the connection, and for each answer.
    :ivar stores: URLs by name, as the configuration file has them; secrets.
    """

    hosts: str
    session_timeout: float = 10.0
    tick_time: float | None = None
    auth: zkelect.Digest | zkelect.Sasl | None = None
    tls: zkelect.Tls | None = None
    acl: tuple[str, ...] | None = None
    timeout: float = 10.0
    stores: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    def session(self) -> zkelect.Session:
        """Open a session; close it, or use it as a context manager.

        :raises zkelect.ZkelectError: as :func:`zkelect.connect` does.
        """
        return zkelect.connect(
            self.hosts,
            session_timeout=self.session_timeout,
            tick_time=self.tick_time,
            auth=self.auth,
            tls=self.tls,
            acl=self.acl,
            timeout=self.timeout,
        )


def reaching(function: _Function) -> _Function:
    """Give a command the options to reach ZooKeeper; its first argument is a :class:`Target`.

    What the command line says rules, then the environment, then the configuration file. Its help
    tells the exit statuses that all such commands have, unless it tells its own.
    """

    @functools.wraps(function)
    def reach(
        *args: Any,
        hosts: str | None,
        config: Path | None,
        session_timeout: float | None,
        timeout: float,
        verbose: int,
        **kwargs: Any,
    ) -> Any:
        log_to_stderr(verbose)
        given = {"hosts": hosts, "session_timeout": session_timeout}
        return function(_target(read_config(config), given, timeout), *args, **kwargs)

    for option in reversed(_OPTIONS):
        reach = option(reach)
    if "Exit status" not in (function.__doc__ or ""):
        reach.__doc__ = f"{inspect.getdoc(function)}\n\n{STATUSES}"
    return reach  # type: ignore[return-value]  # the options fill in what the function lacks


_OPTIONS: Final = (
    click.option(
        "-H",
        "--hosts",
        envvar="ZKELECT_HOSTS",
        metavar="HOSTS",
        help="ZooKeeper's servers and the chroot: zk1:2181,zk2:2181/app.  [env: ZKELECT_HOSTS]",
    ),
    click.option(
        "--config",
        envvar="ZKELECT_CONFIG",
        type=click.Path(path_type=Path),
        help="Configuration file, for credentials too.  [env: ZKELECT_CONFIG; default: "
        "~/.config/zkelect/config.toml, /etc/zkelect/config.toml]",
    ),
    click.option(
        "--session-timeout",
        type=Seconds(min=0, min_open=True),
        metavar="SEC",
        help="Session timeout to ask for.  [default: 10]",
    ),
    timed("--timeout", 10, "Seconds to wait for a connection, and for each answer."),
    click.option("-v", "--verbose", count=True, help="Log more; twice: everything."),
)


def _target(found: Mapping[str, Any], given: Mapping[str, Any], timeout: float) -> Target:
    said = {key: value for key, value in given.items() if value is not None}
    plain = {"hosts", "session_timeout", "tick_time", "stores"}
    told = {key: value for key, value in found.items() if key in plain} | said
    if "hosts" not in told:
        raise click.UsageError(_NOWHERE)
    if "acl" in found:
        told["acl"] = tuple(found["acl"])
    if "tls" in found:
        told["tls"] = zkelect.Tls(**found["tls"])
    return Target(**told, auth=_auth(found), timeout=timeout)


def _auth(found: Mapping[str, Any]) -> zkelect.Digest | zkelect.Sasl | None:
    if "digest" in found and "sasl" in found:
        raise click.UsageError("The configuration file has [digest] and [sasl]: one of them rules.")
    if "digest" in found:
        return zkelect.Digest(**found["digest"])
    return zkelect.Sasl(**found["sasl"]) if "sasl" in found else None
