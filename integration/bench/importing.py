"""What it costs to import the library, beside what it stands on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final

import attrs

from bench.samples import Row, Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rows"]

_BELOW: Final = "import kazoo.client, attrs"
_BELOW_COMMAND: Final = "import kazoo.client, click"
_HELP: Final = """
import contextlib, io, sys
import zkelect.cli
sys.argv = ["zkelect", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    zkelect.cli.start()
"""


@attrs.frozen
class _Contest:
    figure: str
    ours: str
    below: str
    target: str = ""


_CONTESTS: Final = (
    _Contest("import zkelect", "import zkelect", _BELOW, "ratio 1.3"),
    _Contest(
        "import zkelect; zkelect.connect, zkelect.Election",
        "import zkelect; zkelect.connect, zkelect.Election",
        _BELOW,
    ),
    _Contest("zkelect --help", _HELP, _BELOW_COMMAND, "ratio 2"),
)
_PROGRAM: Final = """
import time
begun = time.process_time()
{code}
print(time.process_time() - begun)
"""


def rows(rounds: int) -> Iterator[Row]:
    """Import in new processes, in turns; every module is compiled before, on both sides."""
    codes = [code for contest in _CONTESTS for code in (contest.ours, contest.below)]
    with tempfile.TemporaryDirectory(prefix="zkelect-bench-") as folder:
        for code in codes:
            _import(code, folder)
        taken = [[_import(code, folder) for code in codes] for _ in range(rounds)]
    samples = [Samples(tuple(times)) for times in zip(*taken, strict=True)]
    for contest, ours, below in zip(_CONTESTS, samples[::2], samples[1::2], strict=True):
        yield Row(
            figure=contest.figure,
            ours=ours,
            unit="ms",
            beside=below,
            beside_what=contest.below,
            target=contest.target,
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
