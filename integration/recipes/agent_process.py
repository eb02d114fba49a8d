"""One agent of a recipe as a process; its task is a pickled dictionary on its input."""

from __future__ import annotations

import logging
import pickle
import signal
import sys
import threading

import zkelect
from zkelect.recipes.agent import Agent


def main() -> None:
    told = pickle.load(sys.stdin.buffer)  # noqa: S301  the tests have written it
    logging.basicConfig(
        level=logging.DEBUG,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    for chatty in ("kazoo", "redis", "zkelect.session"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    path = told["path"]
    server = told["resource"](told["member"], told["place"], domain=path, fence=told["fence"])
    try:
        with zkelect.connect(told["hosts"], **told["session"]) as session:
            Agent(session, path, server, policy=told["policy"], **told["agent"]).run(stop)
    finally:
        server.close()


if __name__ == "__main__":
    main()
