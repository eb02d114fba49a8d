"""One agent of the PostgreSQL recipe as a process; its task is a line of JSON on its input."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from pathlib import Path

import zkelect
from zkelect.recipes.agent import Agent
from zkelect.recipes.choice import Policy
from zkelect.recipes.member import Member
from zkelect.recipes.postgres import Place, Postgres


def main() -> None:
    told = json.loads(sys.stdin.readline())
    logging.basicConfig(
        level=logging.DEBUG,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    for chatty in ("kazoo", "zkelect.session"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    place = Place(**{**told["place"], "data_directory": Path(told["place"]["data_directory"])})
    server = Postgres(Member(**told["member"]), place, domain=told["path"])
    try:
        with zkelect.connect(told["hosts"], **told["session"]) as session:
            policy = Policy(**told["policy"])
            Agent(session, told["path"], server, policy=policy, **told["agent"]).run(stop)
    finally:
        server.close()


if __name__ == "__main__":
    main()
