"""The network between the servers of a Docker ensemble, and how it is broken."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.testing.delay import DelayLine
from zkelect.testing.docker_faults import Fault, firewall, netem, reset
from zkelect.testing.netns import Namespace, NetworkUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from docker.models.containers import Container

    from zkelect.testing.docker_tools import Toolbox

__all__ = ["DockerNetwork"]

_NO_NETEM: Final = (
    "latency takes netem in the engine's kernel: modprobe sch_netem on that machine; or root, "
    "and this program on that machine"
)


class DockerNetwork:
    """Knows what is wrong with each server's network, and makes it so.

    The networks belong to containers that do nothing else: so faults outlast the servers.
    """

    def __init__(
        self, networks: Sequence[Container], addresses: Sequence[str], toolbox: Toolbox
    ) -> None:
        """Take networks that are whole.

        :param networks: the containers that own them. :param addresses: of the servers in them.
        """
        self._networks, self._addresses = networks, addresses
        self._toolbox = toolbox
        self._faults: dict[int, Fault] = {}
        self._netem: set[int] = set()
        self._lines: dict[int, DelayLine] = {}

    def isolate(self, index: int) -> None:
        """Drop all that this server sends, or is sent."""
        self._set(index, attrs.evolve(self._fault(index), isolated=True))

    def deafen(self, listener: int, speakers: Iterable[int]) -> None:
        """Drop what others send to this server."""
        fault, addresses = self._fault(listener), {self._addresses[index] for index in speakers}
        self._set(listener, attrs.evolve(fault, deaf_to=fault.deaf_to | addresses))

    def slow(self, index: int, latency: float, loss: float) -> None:
        """Delay what this server sends, and lose some of it.

        :raises NetworkUnavailable: neither the engine's kernel nor this program can delay.
        """
        self._set_latency(index, latency)
        queued = index in self._lines and latency > 0
        self._set(index, attrs.evolve(self._fault(index), loss=loss, queued=queued))

    def heal(self, *, end_connections: bool) -> None:
        """Take all faults back."""
        broken: dict[int, Fault] = {}
        for index in sorted(self._faults):
            self._toolbox.run(index, ("iptables-restore",), text=firewall(Fault()))
            broken[index] = self._faults.pop(index)
        self.close()
        for index in sorted(self._netem):
            self._set_latency(index, 0)
        if end_connections:
            self._end_connections(broken)

    def close(self) -> None:
        """Let go on whatever this program still delays."""
        while self._lines:
            self._lines.popitem()[1].close()

    # --- within ---------------------------------------------------------------------------

    def _fault(self, index: int) -> Fault:
        return self._faults.get(index, Fault())

    def _set(self, index: int, fault: Fault) -> None:
        self._toolbox.run(index, ("iptables-restore",), text=firewall(fault))
        self._faults[index] = fault

    def _end_connections(self, broken: Mapping[int, Fault]) -> None:
        for index, fault in broken.items():
            if command := reset(fault):
                self._toolbox.run(index, command)

    # --- latency --------------------------------------------------------------------------

    def _set_latency(self, index: int, latency: float) -> None:
        """Have the engine's kernel delay, by netem; where it has none, this program."""
        if index in self._lines:
            self._lines[index].latency = latency
        elif latency or index in self._netem:
            self._delay(index, latency)

    def _delay(self, index: int, latency: float) -> None:
        try:
            self._toolbox.run(index, netem(latency))
        except NetworkUnavailable as refusal:
            self._lines[index] = self._queue(index, latency, refusal)
        else:
            (self._netem.add if latency else self._netem.discard)(index)

    def _queue(self, index: int, latency: float, refusal: NetworkUnavailable) -> DelayLine:
        """Delay packets here: on the engine's machine, as root."""
        pid = int(self._networks[index].attrs["State"]["Pid"])
        if not (os.geteuid() == 0 and self._is_here(index, pid)):
            raise NetworkUnavailable([*refusal.missing, _NO_NETEM]) from refusal
        try:
            with Namespace("delay", of=pid) as network:
                return network.call(partial(DelayLine, 0, latency))
        except OSError as error:
            needed = f"the kernel queues no packets ({error}): modprobe nfnetlink_queue"
            raise NetworkUnavailable([*refusal.missing, needed]) from error

    def _is_here(self, index: int, pid: int) -> bool:
        """The engine may be on another machine, where the pid is somebody else."""
        try:
            groups = Path(f"/proc/{pid}/cgroup").read_text("utf-8")
        except OSError:
            return False
        return str(self._networks[index].id) in groups
