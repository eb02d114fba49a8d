"""What a local server is told: its zoo.cfg, its log settings, its JVM options. Pure text."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.errors import InvalidArgument
from zkelect.testing.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["HEALING_OPTIONS", "JVM_OPTIONS", "LOG_CONFIGURATIONS", "Ports", "Settings"]

# A learner has this long to join, and may lag this long before it is dropped: far above
# what a busy machine with two cores takes, whatever the tick.
_JOIN_WITHIN: Final = 15.0
_LAG_WITHIN: Final = 3.0

# A small heap, the collector and the compiler that start fastest, no files outside the
# server's own directory; and the log on standard error where slf4j-simple writes it.
JVM_OPTIONS: Final = (
    "-Xms32m",
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
)

# For servers whose network is broken and healed. Servers that cannot hear each other ask again
# ever more rarely, up to a minute apart, and wait 5 s for each connection; so they would stay
# apart long after the network has healed.
HEALING_OPTIONS: Final = (
    "-Dzookeeper.fastleader.maxNotificationInterval=400",
    "-Dzookeeper.cnxTimeout=1000",
)

# ZooKeeper's releases log by log4j until 3.7 and by logback since; both look for their file
# on the class path, and print nothing useful, or everything, without one. NIOServerCnxn
# notes every four-letter word: while we wait for a server that buries all else.
LOG_CONFIGURATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "log4j.properties": """\
log4j.rootLogger=INFO, STDERR
log4j.appender.STDERR=org.apache.log4j.ConsoleAppender
log4j.appender.STDERR.target=System.err
log4j.appender.STDERR.layout=org.apache.log4j.PatternLayout
log4j.appender.STDERR.layout.ConversionPattern=%d{ISO8601} [%t] %p %c - %m%n
log4j.logger.org.apache.zookeeper.server.NIOServerCnxn=WARN
""",
        "logback.xml": """\
<configuration>
  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{ISO8601} [%thread] %level %logger - %msg%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.server.NIOServerCnxn" level="WARN"/>
  <root level="INFO"><appender-ref ref="STDERR"/></root>
</configuration>
""",
    }
)


@attrs.frozen
class Ports:
    """Where one server listens: three ports, for clients, for followers, for elections.

    :ivar host: the IPv4 address of all three.
    """

    client: int
    quorum: int
    election: int
    host: str = LOOPBACK


def _positive(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0.001 <= value < 3600:
        raise InvalidArgument(attribute.name, value, "seconds, 0.001 … 3600")


@attrs.frozen(kw_only=True)
class Settings:
    """What all servers of an ensemble have in common.

    :ivar tick_time: ZooKeeper's unit of time, in seconds, 0.001 … 3600.
    :ivar min_session_timeout: seconds; None: twice the tick, ZooKeeper's default.
    :ivar max_session_timeout: seconds; None: twenty ticks, ZooKeeper's default.
    :ivar durable: every transaction is forced to the disk before it is answered.
    :ivar config: further lines of zoo.cfg; they win over those made here.
    """

    tick_time: float = attrs.field(default=0.2, validator=_positive)
    min_session_timeout: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(_positive)
    )
    max_session_timeout: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(_positive)
    )
    durable: bool = False
    config: Mapping[str, str] = attrs.field(factory=dict)

    def zoo_cfg(self, data: Path, server: int, ensemble: Sequence[Ports]) -> str:
        """Write the file of one server.

        :param data: its data directory. :param server: its index in ``ensemble``.
        :param ensemble: the ports of every server; one alone runs without elections.
        """
        lines = {
            "dataDir": str(data),
            "clientPort": str(ensemble[server].client),
            "clientPortAddress": ensemble[server].host,
            "maxClientCnxns": "0",
            "4lw.commands.whitelist": "*",
            "admin.enableServer": "false",
            "preAllocSize": "1024",  # kilobytes; the default writes 64 MB for each new log
            **self.times(),
            **({} if self.durable else {"forceSync": "no"}),
            **(_members(ensemble) if len(ensemble) > 1 else {}),
            **self.config,
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def times(self) -> dict[str, str]:
        """Return the lines of zoo.cfg that hold times, each in its own unit."""
        limits = {
            "minSessionTimeout": self.min_session_timeout,
            "maxSessionTimeout": self.max_session_timeout,
        }
        return {
            "tickTime": _milliseconds(self.tick_time),
            "initLimit": str(math.ceil(_JOIN_WITHIN / self.tick_time)),
            "syncLimit": str(math.ceil(_LAG_WITHIN / self.tick_time)),
            **{key: _milliseconds(limit) for key, limit in limits.items() if limit is not None},
        }


def _members(ensemble: Sequence[Ports]) -> dict[str, str]:
    members = {
        f"server.{number}": f"{ports.host}:{ports.quorum}:{ports.election}"
        for number, ports in enumerate(ensemble, start=1)
    }
    return {"quorumListenOnAllIPs": "false", **members}


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
