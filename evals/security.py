"""The figures of security, each beside its goal.

``python -m evals.security [--long] [--store STORE] [--only NAME ...]``

Every figure is measured anew, through the public API or behind the store's back, on a file in a temporary folder, or
with ``--store postgresql`` on a server of the run's own, or in schemas of its own of the database that is named. The
exit status is 1 when one misses its goal; figures of speed are printed and never decide. Without ``--long`` counts
are small and the whole takes about a minute.

Other commands print the rest: ``evals.detect --kind secrets|privacy|injection --selftest`` what the detectors find,
``benchmarks crowd`` the commits of many processes each second.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evals import security_disk, security_gates, security_store
from evals.security_figure import Figure
from evals.stores import STORE, targets
from evals.target import Target

#: What measures: the target that it may change, and whether it takes its time.
Check = Callable[[Any, bool], list[Figure]]
#: By name, on every store.
CHECKS: dict[str, Check] = {
    "drill": security_store.drilled,
    "kill": security_disk.kill,
    "disk": security_disk.failing,
    "power": security_disk.power,
    "recovery": security_store.recovery,
    "verify": security_store.verify,
    "flips": security_store.flips,
    "tampering": security_store.tampering,
    "secrets": security_gates.planted,
    "origin": security_gates.origin,
    "scopes": security_gates.crossing,
    "erase": security_gates.erasing,
}


def unmeasured(what: str, target: Target, long: bool) -> list[Figure]:
    """Say that something takes a server of the run's own."""
    return [Figure(what=what, value="it takes --store postgresql", goal="0", ok=None)]


def checks_of(store: str) -> dict[str, Check]:
    """Return what measures on a store."""
    if store == "file":
        return CHECKS
    if store == "postgresql":
        from evals.security_server import broken, stopped

        return {**CHECKS, "disk": broken, "power": stopped}
    without = {"disk": "commits lost on broken connections", "power": "commits lost as the server stops"}
    return {**CHECKS, **{name: partial(unmeasured, what) for name, what in without.items()}}


def shown(figures: Sequence[Figure]) -> str:
    """Return the figures as a table."""
    rows = [("what", "figure", "goal", ""), *((each.what, each.value, each.goal, each.mark) for each in figures)]
    widths = [max(len(row[n]) for row in rows) for n in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * sum(widths), *lines[1:]])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="evals.security", description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="the numbers of the goals; takes some minutes")
    parser.add_argument("--only", nargs="+", choices=sorted(CHECKS), default=list(CHECKS), metavar="NAME")
    parser.add_argument("--store", default="file", help=STORE)
    asked = parser.parse_args(arguments)
    figures: list[Figure] = []
    checks = checks_of(asked.store)
    with targets(asked.store) as make:
        for name in asked.only:
            with tempfile.TemporaryDirectory() as folder, make(Path(folder)) as target:
                found = checks[name](target, asked.long)
            figures += found
            print(f"{name}: {'; '.join(f'{each.value} ({each.goal})' for each in found)}", file=sys.stderr, flush=True)
    print(shown(figures))
    return 1 if any(each.missed for each in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
