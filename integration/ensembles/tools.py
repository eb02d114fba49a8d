"""The programs that namespaces need, installed when they are missing."""

from __future__ import annotations

from image.programs import ensure

from zkelect.testing.netns import PACKAGES, NetworkUnavailable, find_missing

__all__ = ["install"]


def install() -> None:
    """Install iproute2 and iptables, on Debian and Ubuntu as root, when they are missing.

    :raises NetworkUnavailable: even so this machine, or this user, cannot have namespaces.
    """
    for program, package in PACKAGES.items():
        ensure(program, package)
    if missing := find_missing():
        raise NetworkUnavailable(missing)
