"""A command for ``zkelect run`` that tells how long it lives: ``heart.py [SIGNAL…]``.

It prints a line at each beat: the instant, and the deadline that it reads. Signals named are
told, and survived. Instants are those of the boot clock.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

EVERY = 0.01


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def told(number: int, _: object) -> None:
    os.write(1, f"{signal.Signals(number).name} {now()}\n".encode())


def main(signals: list[str]) -> None:
    for name in signals:
        signal.signal(signal.Signals[name], told)
    deadline = Path(os.environ["ZKELECT_DEADLINE_FILE"])
    os.write(1, f"born {os.getpid()} {os.environ['ZKELECT_TOKEN']}\n".encode())
    while True:
        os.write(1, f"beat {now()} {deadline.read_text()}".encode())
        time.sleep(EVERY)


if __name__ == "__main__":
    main(sys.argv[1:])
