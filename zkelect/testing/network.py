"""A network of servers on this machine: each in a namespace, a hub between them, faults."""

from __future__ import annotations

import contextlib
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.testing.delay import DelayLine
from zkelect.testing.netns import Namespace, NetworkUnavailable, run
from zkelect.testing.wiring import Block, Drop, Slowness, rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Network"]

_FORWARD: Final = Path("/proc/sys/net/ipv4/ip_forward")  # of the thread's own namespace


class Network:
    """One namespace for each server, one for the hub.

    :ivar addresses: of the servers, by index. :ivar clients: of this machine, where all
        clients are.
    """

    def __init__(self, servers: int, opened: contextlib.ExitStack) -> None:
        """Build it; ``opened`` undoes it.

        :raises NetworkUnavailable: this machine, or this user, cannot.
        """
        self._hub = opened.enter_context(Namespace("hub"))
        self.namespaces: Sequence[Namespace] = [
            opened.enter_context(Namespace(f"server-{index + 1}")) for index in range(servers)
        ]
        block = self._claim(opened)
        self.clients = block.clients
        self.addresses = [block.server(index) for index in range(servers)]
        self._drops: set[Drop] = set()
        self._slow: dict[str, Slowness] = {}
        self._lines: dict[str, DelayLine] = {}
        self._wire(block)
        opened.callback(self._hurry)

    # --- faults ---------------------------------------------------------------------------

    def drop(self, drops: Iterable[Drop]) -> None:
        """Drop packets between these addresses, too."""
        self._drops.update(drops)
        self._break()

    def slow(self, address: str, slowness: Slowness) -> None:
        """Slow down what an address sends.

        :raises NetworkUnavailable: the kernel does not queue packets for programs.
        """
        self._slow[address] = slowness
        if slowness.latency:
            self._delay(address, slowness.latency)
        self._break()

    def heal(self, *, reset: bool) -> None:
        """Take all faults back.

        :param reset: end the connections that lost packets, at both ends.
        """
        drops, self._drops, self._slow = self._drops, set(), {}
        self._break()
        self._hurry()
        if reset:
            for address, namespace in zip(self.addresses, self.namespaces, strict=True):
                _reset(namespace, {to for one in drops for to in one if address in one} - {address})

    def _break(self) -> None:
        text = rules(self._drops, self._slow, self.addresses)
        self._hub.run("iptables-restore", "--noflush", "--wait", text=text)

    def _delay(self, address: str, latency: float) -> None:
        if address in self._lines:
            self._lines[address].latency = latency
            return
        number = self.addresses.index(address)
        try:
            self._lines[address] = self._hub.call(partial(DelayLine, number, latency))
        except OSError as error:
            del self._slow[address]
            needed = f"the kernel queues no packets ({error}): modprobe nfnetlink_queue"
            raise NetworkUnavailable([needed]) from error

    def _hurry(self) -> None:
        """Let go on whatever is still delayed."""
        while self._lines:
            self._lines.popitem()[1].close()

    # --- building -------------------------------------------------------------------------

    def _claim(self, opened: contextlib.ExitStack) -> Block:
        """Lay the link from this machine to the hub, by the first free name."""
        for turn in range(Block.COUNT):
            block = Block((os.getpid() + turn) % Block.COUNT)
            try:
                run("ip", *block.claim(self._hub.path))
            except subprocess.CalledProcessError as failure:
                if "File exists" not in failure.stderr:
                    raise NetworkUnavailable([f"ip: {failure.stderr.strip()}"]) from failure
            else:
                opened.callback(_remove, block.link)
                return block
        raise NetworkUnavailable([f"all {Block.COUNT} blocks of addresses are in use"])

    def _wire(self, block: Block) -> None:
        self._hub.run("ip", "-batch", "-", text=block.at_hub([n.path for n in self.namespaces]))
        self._hub.call(lambda: _FORWARD.write_text("1\n", "ascii"))
        for index, namespace in enumerate(self.namespaces):
            namespace.run("ip", "-batch", "-", text=block.at_server(index))
        run("ip", "-batch", "-", text=block.at_clients())


def _reset(namespace: Namespace, peers: Iterable[str]) -> None:
    """End the TCP connections to these addresses, at both ends (``ss`` of iproute2, -K)."""
    wanted = " or ".join(f"dst {peer}" for peer in sorted(peers))
    if wanted:
        namespace.run("ss", "-K", "-t", "-H", *wanted.split())


def _remove(link: str) -> None:
    """Remove the link now; by itself it goes with the hub, a moment later."""
    with contextlib.suppress(subprocess.CalledProcessError):  # it has gone
        run("ip", "link", "delete", link)
