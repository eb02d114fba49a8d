"""A candidate as a process of its own, of zkelect or of kazoo; both do the same here.

Tells ``leads`` and ``leaves`` on standard output, each with its instant on the boot clock,
which is the same in every process; resigns when a line comes on standard input.
"""

from __future__ import annotations

import argparse
import sys
import time


def tell(event: str) -> None:
    print(event, time.clock_gettime(time.CLOCK_BOOTTIME), flush=True)


def lead(*_: object) -> None:
    tell("leads")
    sys.stdin.readline()
    tell("leaves")


def stand_with_zkelect(arguments: argparse.Namespace) -> None:
    import zkelect

    with zkelect.connect(
        arguments.hosts, session_timeout=arguments.timeout, tick_time=arguments.tick
    ) as session:
        zkelect.Election(session, arguments.path).run(lead)


def stand_with_kazoo(arguments: argparse.Namespace) -> None:
    from kazoo.client import KazooClient

    client = KazooClient(arguments.hosts, timeout=arguments.timeout)
    client.start()
    client.Election(arguments.path).run(lead)
    client.stop()
    client.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["zkelect", "kazoo"])
    parser.add_argument("hosts")
    parser.add_argument("path")
    parser.add_argument("timeout", type=float)
    parser.add_argument("tick", type=float)
    asked = parser.parse_args()
    (stand_with_zkelect if asked.library == "zkelect" else stand_with_kazoo)(asked)
