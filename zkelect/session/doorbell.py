"""How kazoo's thread is woken: any number of times, without ever waiting."""

from __future__ import annotations

import errno
import socket
import threading

__all__ = ["Doorbell"]


class Doorbell:
    """Both ends of the pair of sockets by which kazoo wakes its thread.

    kazoo writes a byte for each request and reads one for each that it sends. A real pair
    takes 278 of them (measured on Linux), and a lost connection leaves some unread. Whoever
    asks then waits for kazoo's thread; if that is the one who asks, as it does when it is
    connected again and the watches of many candidates are to be set anew, for ever.

    Here the bytes are counted, and one is in the pair as long as there are any.
    """

    def __init__(self) -> None:
        self._out, self._in = socket.socketpair()
        self._lock = threading.Lock()
        self._rings = 0
        self._closed = False

    def fileno(self) -> int:
        """Return what to wait for: readable while there is something to read."""
        return self._out.fileno()

    def send(self, data: bytes) -> int:
        """Ring once for each byte; never waits."""
        with self._lock:
            if self._closed:
                raise OSError(errno.EBADF, "closed")
            if not self._rings:
                self._in.send(b"\0")
            self._rings += len(data)
        return len(data)

    def recv(self, size: int) -> bytes:
        """Take so many rings, or as many as there are.

        :raises BlockingIOError: there are none.
        """
        with self._lock:
            taken = min(size, self._rings)
            if not taken:
                raise BlockingIOError(errno.EAGAIN, "nobody has rung")
            self._rings -= taken
            if not self._rings:
                self._out.recv(1)
        return bytes(taken)

    def close(self) -> None:
        """Close both ends; harmless when they are."""
        with self._lock:
            self._closed = True
            self._out.close()
            self._in.close()
