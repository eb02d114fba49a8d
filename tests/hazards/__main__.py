"""Which case is shown where, and what makes its test fail: ``python tests/hazards``.

Prints the table; exits with 1 when a case whose turn has come lacks a test, or a mutant or
control that proves that the test can fail.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# Found from the folder above, as a package: its modules import each other, and the mutants.
sys.path[0] = str(Path(__file__).resolve().parents[1])
sys.exit(import_module("hazards.table").main())
