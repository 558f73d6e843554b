"""`python -m keepward`: the command line."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; return its exit code."""
    from keepward.surfaces.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
