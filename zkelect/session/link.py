"""The kazoo client behind a session: one of our own, or one that was adopted."""

from __future__ import annotations

import contextlib
import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KeeperState

from zkelect.errors import InvalidArgument
from zkelect.session.clock import Clock
from zkelect.session.gateway import Gateway
from zkelect.session.handler import ObservedHandler, Observer
from zkelect.session.kazoolog import KazooLog

__all__ = ["AdoptedLink", "Link", "OwnedLink", "reply_error"]

_log: Final = logging.getLogger("zkelect.session")
_LONGEST_RECONNECT_DELAY: Final = 1.0
_CUT_TIMEOUT: Final = 0.5


class Link:
    """One client, and what can be done to its connection."""

    def __init__(self, client: KazooClient) -> None:
        self.client = client

    @property
    def ended(self) -> bool:
        """Whether kazoo has stopped for good: closed, refused, or broken inside."""
        return self.client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)

    @property
    def refused(self) -> bool:
        """Whether the servers refused our credentials."""
        return bool(self.client.client_state == KeeperState.AUTH_FAILED)

    @property
    def credentials(self) -> tuple[int, bytes] | None:
        """Session id and password, None while there is no connection."""
        found: tuple[int, bytes] | None = self.client.client_id
        return found

    @property
    def zxid(self) -> int:
        """The last zxid that the servers told."""
        return int(self.client.last_zxid or 0)

    def gateway(self, clock: Clock, acl: Sequence[Any], deliver: Callable[..., None]) -> Gateway:
        """Return how to ask the servers over this link."""
        return Gateway(self.client, clock, acl, deliver)

    def start(self, listen: Callable[[str], None]) -> None:
        """Begin to connect; ``listen`` hears of every change of state."""
        self.client.add_listener(listen)

    def shut(self) -> None:
        """Drop the present connection, where that can be done."""

    def overdue(self, now: float) -> bool:
        """Whether a server has been dialled and keeps silent."""
        return False

    def blame_silent(self) -> None:
        """Tell of a server that was dialled and has not answered, where that can be known."""

    def restart(self) -> None:
        """Start anew after kazoo stopped by itself; must not be called on its threads."""

    def stop(self, *, release: bool, timeout: float) -> None:
        """End it. ``release``: close the session now, instead of letting it expire."""

    def leave(self) -> None:
        """Hear no more of a client that goes on without us."""

    def abandon(self) -> None:
        """In a forked child: leave the parent's client alone."""


class OwnedLink(Link):
    """A client of our own: its requests are the election's alone, its sockets observed."""

    def __init__(
        self,
        *,
        hosts: str,
        session_timeout: float,
        clock: Clock,
        observer: Observer,
        tls: ssl.SSLContext | None,
        options: dict[str, Any],
    ) -> None:
        self.handler: Final = ObservedHandler(
            clock=clock, observer=observer, patience=session_timeout / 5, tls=tls
        )
        super().__init__(
            KazooClient(
                hosts=hosts,
                timeout=session_timeout,
                handler=self.handler,
                logger=KazooLog(lambda: self.handler.shutting),
                connection_retry={
                    "max_tries": -1,
                    "delay": 0.05,
                    "max_delay": _LONGEST_RECONNECT_DELAY,
                },
                **options,
            )
        )

    def start(self, listen: Callable[[str], None]) -> None:
        """Begin to connect."""
        super().start(listen)
        self.client.start_async()

    def shut(self) -> None:
        """Drop the present connection; kazoo resumes the session on another at once."""
        self.handler.shut()

    def overdue(self, now: float) -> bool:
        """Whether a server has been dialled and keeps silent."""
        return self.handler.overdue(now)

    def blame_silent(self) -> None:
        """Tell of a server that was dialled and has not answered."""
        self.handler.blame_silent()

    def restart(self) -> None:
        """Start anew: an answer that kazoo does not know ends its loop for good.

        Without stop() before: that would queue a close for the session to come.
        """
        self.client.start_async()

    def stop(self, *, release: bool, timeout: float) -> None:
        """End it, cutting the connection when the server does not answer in time.

        kazoo may wait for a name server, or longer than we like: it does so on a thread
        that is left behind then, and ends with the answer.
        """
        if not release:
            self.handler.forbid()
        ending = threading.Thread(target=self._end, name="zkelect closing", daemon=True)
        ending.start()
        ending.join(timeout)
        if ending.is_alive():
            self.handler.forbid()
            ending.join(_CUT_TIMEOUT)

    def _end(self) -> None:
        try:
            self.client.stop()
            self.client.close()
        except Exception as error:  # noqa: BLE001  # kazoo's own: it gave up waiting for its thread
            _log.warning("kazoo's client did not end cleanly: %s", error)

    def abandon(self) -> None:
        """Leave the parent's client alone: its threads do not exist here."""
        self.handler.abandon()


class AdoptedLink(Link):
    """A started client that belongs to somebody else."""

    def __init__(self, client: KazooClient) -> None:
        if not isinstance(client, KazooClient):
            raise InvalidArgument("client", client, "a started kazoo.client.KazooClient")
        if not isinstance(client.handler, SequentialThreadingHandler):
            raise InvalidArgument(
                "client", client.handler, "a client with kazoo's threading handler"
            )
        if client.read_only:
            raise InvalidArgument("client", client, "a client without read_only=True")
        if not client.connected:
            raise InvalidArgument("client", client, "a started, connected client")
        super().__init__(client)
        self._listen: Callable[[str], None] | None = None

    @property
    def hosts(self) -> str:
        """The servers and the chroot, as text."""
        servers = ",".join(f"{host}:{port}" for host, port in self.client.hosts or ())
        return f"{servers}{self.client.chroot or ''}"

    def start(self, listen: Callable[[str], None]) -> None:
        """Listen to the client's changes of state."""
        self._listen = listen
        super().start(listen)

    def leave(self) -> None:
        """Stop listening; the client goes on."""
        with contextlib.suppress(KeyError):
            self.client.remove_listener(self._listen)


def reply_error(code: int) -> Exception:
    """Return what kazoo makes of an error code in a reply, for a server that is none."""
    error: Exception = EXCEPTIONS[code]()
    return error
