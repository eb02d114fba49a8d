"""Asking each server by itself, all of them at the same time."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence
from typing import Final

import attrs

from zkelect.cli.doctor.facts import WORDS, Server
from zkelect.cli.doctor.handshake import NotServing, greet
from zkelect.cli.doctor.words import ask_word, read_words
from zkelect.session.hosts import server_name

__all__ = ["ask_servers", "hear_again"]

_LEAST: Final = 0.001
_MOST: Final = 2_000_000.0  # it is an int of milliseconds
_MORE: Final = 1.0


def ask_servers(
    addresses: Sequence[tuple[str, int]],
    asked: float,
    tls: ssl.SSLContext | None,
    timeout: float,
) -> tuple[Server, ...]:
    """Return what each of them is, in that order.

    A name server that keeps silent holds up nobody: it is waited for on a thread that is left
    behind then.

    :param asked: session timeout to ask for, seconds.
    :param timeout: seconds for a connection, and for each answer.
    """
    found: dict[tuple[str, int], Server] = {}

    def visit(address: tuple[str, int]) -> None:
        found[address] = _visit(address, asked, tls, timeout)

    threads = [threading.Thread(target=visit, args=(each,), daemon=True) for each in addresses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout * (len(WORDS) + 3) + _MORE)
    return tuple(found.get(each) or _unheard(each) for each in addresses)


def hear_again(
    servers: Sequence[Server],
    addresses: Sequence[tuple[str, int]],
    tls: ssl.SSLContext | None,
    timeout: float,
) -> tuple[Server, ...]:
    """Return the servers with those sessions, too, that are connected to them now.

    So a session that was changing servers in one of the two moments is not missed.
    """

    def hear(server: Server, address: tuple[str, int]) -> Server:
        if server.sessions is None:
            return server
        again = read_words({"cons": ask_word(address, "cons", tls, timeout)})["sessions"]
        return attrs.evolve(server, sessions=None if again is None else server.sessions | again)

    return tuple(map(hear, servers, addresses))


def _unheard(address: tuple[str, int]) -> Server:
    return Server(name=server_name(*address), problem="the name server does not answer")


def _visit(
    address: tuple[str, int], asked: float, tls: ssl.SSLContext | None, timeout: float
) -> Server:
    server = _greet(Server(name=server_name(*address)), address, asked, tls, timeout)
    if server.connect is None:
        return server
    words = WORDS if server.serves else WORDS[:1]  # one that is frozen takes its time for each
    answers = {word: ask_word(address, word, tls, timeout) for word in words}
    return attrs.evolve(server, **read_words(answers))


def _greet(
    server: Server,
    address: tuple[str, int],
    asked: float,
    tls: ssl.SSLContext | None,
    timeout: float,
) -> Server:
    try:
        greeting = greet(address, asked, tls, timeout)
        least = greet(address, _LEAST, tls, timeout).granted
        most = greet(address, _MOST, tls, timeout).granted
    except NotServing as error:
        return attrs.evolve(server, problem=_in_words(error), connect=0.0)
    except ssl.SSLError as error:
        told = f"the TLS handshake failed: {_in_words(error)}"
        return attrs.evolve(server, problem=told, connect=0.0)
    except OSError as error:
        return attrs.evolve(server, problem=_in_words(error))
    return attrs.evolve(
        server,
        connect=greeting.connect,
        handshake=greeting.handshake,
        granted=greeting.granted,
        least=least,
        most=most,
    )


def _in_words(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
