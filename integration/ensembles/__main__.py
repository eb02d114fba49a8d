"""Make sure that servers in namespaces can be had here: ``python integration/ensembles``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# Found from the folder above, as a package: its modules import each other.
sys.path[0] = str(Path(__file__).resolve().parents[1])
import_module("ensembles.tools").install()
