"""Search for counter-examples to the lease rule: ``python tests/search 10000 0``.

Keys narrow the question, see :class:`search.scenario.Question`; docs/lease_search.md tells
what is searched, and what was found.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":  # not in the processes that it starts
    # Found from the folder above, as a package: its modules import each other.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import_module("search.report").main()
