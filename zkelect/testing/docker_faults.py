"""What is wrong with the network of one server, and the commands that bring it about. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Fault", "firewall", "netem", "reset"]


@attrs.frozen(kw_only=True)
class Fault:
    """What befalls the packets of one server.

    :ivar isolated: it neither sends nor receives anything.
    :ivar deaf_to: addresses whose packets do not arrive.
    :ivar loss: share of the packets it sends that are lost, 0 … 1.
    :ivar queued: what it sends is handed to a program that delays it.
    """

    isolated: bool = False
    deaf_to: frozenset[str] = frozenset()
    loss: float = 0.0
    queued: bool = False


def firewall(fault: Fault) -> str:
    """Return what ``iptables-restore`` makes of the server's network, in one step.

    Docker's own rules there are in another table (nat), and packets to the server itself pass:
    names are resolved over loopback. Where the program that delays has gone, nothing waits.
    """
    lines = [f"-A INPUT -s {address} -j DROP" for address in sorted(fault.deaf_to)]
    if fault.isolated:
        lines += ["-A INPUT ! -i lo -j DROP", "-A OUTPUT ! -o lo -j DROP"]
    if fault.loss:
        chance = f"-m statistic --mode random --probability {fault.loss:f}"
        lines.append(f"-A OUTPUT ! -o lo {chance} -j DROP")
    if fault.queued:  # its verdict ends the walk through the chain: so it comes last
        lines.append("-A OUTPUT ! -o lo -j NFQUEUE --queue-num 0 --queue-bypass")
    return "\n".join(("*filter", ":INPUT ACCEPT", ":OUTPUT ACCEPT", *lines, "COMMIT", ""))


def netem(latency: float) -> Sequence[str]:
    """Return the command that delays what a server sends (tc-netem(8)); 0: that takes it away."""
    if not latency:
        return ("tc", "qdisc", "delete", "dev", "eth0", "root")
    delay = f"{round(latency * 1e6)}us"
    # The queue must hold what is under way; netem's own limit, 1000 packets, is soon full.
    return ("tc", "qdisc", "replace", "dev", "eth0", "root", "netem", "delay", delay,
            "limit", "100000")  # fmt: skip


def reset(fault: Fault) -> Sequence[str]:
    """Return the command that ends the connections which lost packets (ss(8)); () for none."""
    if fault.isolated:
        return ("ss", "-K", "-t", "-H")
    addresses = " or ".join(f"dst {address}" for address in sorted(fault.deaf_to))
    return ("ss", "-K", "-t", "-H", *addresses.split()) if addresses else ()
