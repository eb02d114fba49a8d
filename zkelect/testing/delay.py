"""Packets that take longer: the kernel queues them for us, we let them go on later.

Not ``tc netem``: kernels of small virtual machines often come without it.
"""

from __future__ import annotations

import collections
import select
import socket
import struct
import threading
import time
from typing import Final

__all__ = ["DelayLine"]

# linux/netfilter/nfnetlink.h, nfnetlink_queue.h
_NETLINK_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_NETLINK_NO_ENOBUFS: Final = 5
_PACKET: Final = 0x300
_VERDICT: Final = 0x301
_CONFIGURE: Final = 0x302
_COMMAND, _PARAMETERS, _LENGTH, _MASK, _FLAGS = range(1, 6)
_PACKET_HEADER: Final = 1
_VERDICT_HEADER: Final = 2
_BIND: Final = 1
_COPY_META: Final = 1
_SEGMENTS_TOGETHER: Final = 1 << 2  # NFQA_CFG_F_GSO: do not cut up large packets for us
_ACCEPT: Final = 1

_REQUEST, _ACKNOWLEDGE = 1, 4
_ERROR: Final = 2
_HEADER: Final = struct.Struct("=IHHII")
_ANSWER: Final = struct.Struct("=i")
_HELD: Final = 65_536


class DelayLine:
    """Delays what a firewall rule ``-j NFQUEUE --queue-num N`` hands over, in order.

    :ivar latency: seconds; a change holds for packets that come after it.
    """

    def __init__(self, number: int, latency: float) -> None:
        """Take a queue, in the network namespace of the calling thread.

        :param number: of the queue, 0 … 65535.
        :raises OSError: the kernel has no such queues, or somebody else has this one.
        """
        self.latency = latency
        self._number = number
        self._held = collections.deque[tuple[float, bytes]]()
        self._bell, self._ear = socket.socketpair()
        self._queue = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        try:
            self._take()
        except OSError:
            self._close()
            raise
        self._thread = threading.Thread(target=self._run, name=f"delay {number}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let everything go on at once, and give the queue back."""
        self._bell.close()
        self._thread.join()

    # --- the thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while self._ear not in self._wait():
            self._release(until=time.monotonic())
        self._release(until=float("inf"))
        self._close()

    def _wait(self) -> list[socket.socket]:
        due = self._held[0][0] - time.monotonic() if self._held else None
        ready, _, _ = select.select(
            [self._queue, self._ear], [], [], None if due is None else max(due, 0.0)
        )
        if self._queue in ready:
            self._hold(self._queue.recv(_HELD))
        return ready

    def _hold(self, message: bytes) -> None:
        kind = _HEADER.unpack_from(message)[1]
        if kind == _PACKET:
            self._held.append((time.monotonic() + self.latency, _packet_id(message)))

    def _release(self, until: float) -> None:
        while self._held and self._held[0][0] <= until:
            _, packet = self._held.popleft()
            verdict = struct.pack(">I", _ACCEPT) + packet
            self._send(_VERDICT, _REQUEST, _attribute(_VERDICT_HEADER, verdict))

    # --- netlink --------------------------------------------------------------------------

    def _take(self) -> None:
        self._queue.bind((0, 0))
        self._queue.setsockopt(_SOL_NETLINK, _NETLINK_NO_ENOBUFS, 1)
        self._ask(_attribute(_COMMAND, struct.pack(">BxH", _BIND, socket.AF_INET)))
        self._ask(_attribute(_PARAMETERS, struct.pack(">IB", 0, _COPY_META)))
        self._ask(_attribute(_LENGTH, struct.pack(">I", _HELD)))
        flags = struct.pack(">I", _SEGMENTS_TOGETHER)
        self._ask(_attribute(_FLAGS, flags) + _attribute(_MASK, flags))

    def _ask(self, attributes: bytes) -> None:
        """Configure the queue, and read whether that was done."""
        self._send(_CONFIGURE, _REQUEST | _ACKNOWLEDGE, attributes)
        answer = self._queue.recv(_HELD)
        while _HEADER.unpack_from(answer)[1] != _ERROR:  # a packet came before it
            self._hold(answer)
            answer = self._queue.recv(_HELD)
        (number,) = _ANSWER.unpack_from(answer, _HEADER.size)
        if number != 0:
            raise OSError(-number, f"queue {self._number} cannot be had")

    def _send(self, kind: int, flags: int, attributes: bytes) -> None:
        body = struct.pack(">BBH", socket.AF_UNSPEC, 0, self._number) + attributes
        self._queue.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body)

    def _close(self) -> None:
        for each in (self._queue, self._bell, self._ear):
            each.close()


def _attribute(kind: int, value: bytes) -> bytes:
    """Encode length, kind and value, filled up to a multiple of four (netlink(7))."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _packet_id(message: bytes) -> bytes:
    """Find the packet's number: the first field of the attribute that each packet has."""
    at = _HEADER.size + 4
    while at < len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == _PACKET_HEADER:
            return message[at + 4 : at + 8]
        at += length + -length % 4
    raise OSError("a packet without a number came from the kernel's queue")
