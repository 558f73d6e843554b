"""`python -m keepward`: the command line."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line; return its exit code."""
    # One question keeps no more than one thread busy; others wait for it by spinning, which on a machine at work takes
    # five times as long. numpy reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from keepward.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
