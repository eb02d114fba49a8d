"""Make sure that other libraries' candidates can be had here: ``python integration/peers``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# Found from the folder above, as a package.
sys.path[0] = str(Path(__file__).resolve().parents[1])
import_module("peers.java").install()
