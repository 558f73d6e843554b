"""Open the store of a workload, print every surviving id, and verify the whole store.

``python -m evals.survivors STORE [--home HOME]`` prints one id a line, in order, and exits 0 only if every check of
``verify`` holds; faults go to standard error.
"""

from __future__ import annotations

import argparse
import sys

from evals.workload import ALIAS, add_store, open_store
from keepward import KeepwardError


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(prog="evals.survivors", description=__doc__)
    add_store(parser)
    asked = parser.parse_args(arguments)
    try:
        with open_store(asked.store, asked.home) as mem:
            records = mem.list_memories(tiers=["archival"], limit=None)
            checked = mem.verify()
    except KeepwardError as fault:
        print(f"{fault.code}: {fault}", file=sys.stderr)
        return 1
    numbers = {
        int(alias.removeprefix(ALIAS)) for record in records for alias in record.aliases if alias.startswith(ALIAS)
    }
    for number in sorted(numbers):
        print(number)
    for fault in checked.faults:
        print(f"{fault.check}: {fault.row}: {fault.detail}", file=sys.stderr)
    return 0 if checked.ok else 1


if __name__ == "__main__":
    sys.exit(main())
