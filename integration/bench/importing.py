"""What it costs to import the library, beside what it stands on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final

from bench.samples import Row, Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]

_BELOW: Final = "import kazoo.client, attrs"
_OURS: Final = {
    "import zkelect": "ratio 1.3",
    "import zkelect; zkelect.connect, zkelect.Election": "",
}
_PROGRAM: Final = """
import time
begun = time.process_time()
{code}
print(time.process_time() - begun)
"""


def rows(rounds: int) -> Iterator[Row]:
    """Import in new processes, in turns; every module is compiled before, on both sides."""
    with tempfile.TemporaryDirectory(prefix="zkelect-bench-") as folder:
        for code in (_BELOW, *_OURS):
            _import(code, folder)
        taken = [[_import(code, folder) for code in (_BELOW, *_OURS)] for _ in range(rounds)]
    below, *ours = (Samples(tuple(times)) for times in zip(*taken, strict=True))
    for (code, target), times in zip(_OURS.items(), ours, strict=True):
        yield Row(
            figure=code, ours=times, unit="ms", beside=below, beside_what=_BELOW, target=target
        )


def _import(code: str, folder: str) -> float:
    """Return the milliseconds of processor time that the statement takes."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    told = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(code=code)],
        env={**environment, "PYTHONPYCACHEPREFIX": folder},
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(told.stdout) * 1e3
