"""Measure what the library promises to be cheap: ``python integration/bench``.

Prints one table. Nothing here passes or fails by a time; what is promised as a count is
tested in ``integration/test_counts.py``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# Found from the folder above, as a package: its modules import each other.
sys.path[0] = str(Path(__file__).resolve().parents[1])
import_module("bench.report").main()
