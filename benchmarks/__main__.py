"""Run the benchmarks and print their tables: ``python -m benchmarks [name ...]``."""

from __future__ import annotations

import sys

from benchmarks import remember

ALL = {"remember": remember.run}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
