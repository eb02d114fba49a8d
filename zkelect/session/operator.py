"""Who runs this process: what is written down beside what an operator does."""

from __future__ import annotations

import getpass
import os
import socket

__all__ = ["operator"]


def operator() -> str:
    """Return the user's name and this host's, for people; it proves nothing."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no entry in /etc/passwd
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
