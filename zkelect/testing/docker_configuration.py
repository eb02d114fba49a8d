"""What an ensemble in containers is to be, and what each server is told. Pure.

A server is told by environment variables: ``docker-entrypoint.sh`` of the official image
``zookeeper`` writes zoo.cfg from them, unless there is one. Later lines of zoo.cfg win, and
those of ``ZOO_CFG_EXTRA`` come last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from zkelect.errors import InvalidArgument
from zkelect.testing.configuration import HEALING_OPTIONS, JVM_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.testing.configuration import Settings

__all__ = ["CLIENT_PORT", "Plan"]

CLIENT_PORT: Final = 2181

_LARGEST: Final = 7
_NAMES: Final = {
    "tickTime": "ZOO_TICK_TIME",
    "initLimit": "ZOO_INIT_LIMIT",
    "syncLimit": "ZOO_SYNC_LIMIT",
}


@attrs.frozen(kw_only=True)
class Plan:
    """An ensemble as it is wanted.

    :ivar size: 1 … 7. :ivar image: the servers'. :ivar tools_image: where iptables, tc and ss
        come from; may lack them. :ivar settings: for zoo.cfg.
    :ivar java_options: of the JVM.
    """

    size: int
    image: str
    tools_image: str
    settings: Settings
    java_options: Sequence[str]

    def __attrs_post_init__(self) -> None:
        """Refuse what no container can be told: the image cuts both texts at each blank."""
        if not 1 <= self.size <= _LARGEST:
            raise InvalidArgument("servers", self.size, f"1 … {_LARGEST}")
        for key, value in self.settings.config.items():
            if not _is_word(f"{key}={value}"):
                raise InvalidArgument("config", {key: value}, "keys and values without blanks")
        for option in self.java_options:
            if not _is_word(option):
                raise InvalidArgument("java_options", option, "options without blanks in them")

    def environment(self, index: int, addresses: Sequence[str]) -> dict[str, str]:
        """Return the variables of one server.

        :param index: the server's in ``addresses``, those of all servers on their network.
        """
        times = self.settings.times()
        named = {_NAMES[key]: times.pop(key) for key in _NAMES}
        extra = {**times, **self._extra()}
        return {
            "ZOO_MY_ID": str(index + 1),
            "ZOO_SERVERS": " ".join(_members(addresses)),
            **named,
            "ZOO_MAX_CLIENT_CNXNS": "0",
            "ZOO_STANDALONE_ENABLED": "true",
            "ZOO_ADMINSERVER_ENABLED": "false",
            "ZOO_4LW_COMMANDS_WHITELIST": "*",
            "ZOO_CFG_EXTRA": " ".join(f"{key}={value}" for key, value in extra.items()),
            "SERVER_JVMFLAGS": " ".join((*JVM_OPTIONS, *HEALING_OPTIONS, *self.java_options)),
        }

    def _extra(self) -> dict[str, str]:
        return {
            "preAllocSize": "1024",  # kilobytes; the default writes 64 MB for each new log
            **({} if self.settings.durable else {"forceSync": "no"}),
            **self.settings.config,
        }


def _is_word(text: str) -> bool:
    return text.split() == [text]


def _members(addresses: Sequence[str]) -> list[str]:
    """ZooKeeper Administrator's Guide, "server.x": since 3.5 with the port for clients."""
    return [
        f"server.{number}={address}:2888:3888;{CLIENT_PORT}"
        for number, address in enumerate(addresses, start=1)
    ]
