"""Break the library on purpose, and see the tests fail: ``python tests/mutants [NAME…]``.

Prints a table, and how many of the mutants were caught; exits with 1 if any survives.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# Found from the folder above, as a package: its modules import each other.
sys.path[0] = str(Path(__file__).resolve().parents[1])
sys.exit(import_module("mutants.command").main())
