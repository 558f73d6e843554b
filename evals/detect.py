"""Measure a detector: JSON lines in, JSON lines out, or a table over our own labelled sets.

    python -m evals.detect --kind secrets|privacy|injection < lines.jsonl
    python -m evals.detect --kind secrets --selftest

Invariants
(1) Every line ``{"id", "text"}`` gives one flushed line ``{"id", "flag", "spans"}``; spans are code points.
(2) A line that cannot be read gives one line on standard error, and the exit status is 1 at the end.
(3) Nothing of the text is ever written.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from evals.sets.case import Case
from keepward.gates.detectors import injection, pii, secrets
from keepward.gates.detectors.matcher import Finding

Scan = Callable[[str], list[Finding]]
SCANNERS: dict[str, Scan] = {"secrets": secrets.scan, "privacy": pii.scan, "injection": injection.scan}
KINDS = tuple(SCANNERS)


def answer(kind: str, lines: Iterable[str], out: TextIO, err: TextIO) -> int:
    """Answer every line; return the exit status."""
    scan = SCANNERS[kind]
    status = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            name, text = item["id"], item["text"]
            if not isinstance(text, str):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            print(f"line {number}: not an object with id and text", file=err, flush=True)
            status = 1
            continue
        findings = scan(text)
        reply = {"id": name, "flag": bool(findings), "spans": [[f.start, f.end] for f in findings]}
        print(json.dumps(reply), file=out, flush=True)
    return status


def selftest(kind: str, out: TextIO, *, show: str | None = None) -> None:
    """Print found or flagged shares a group and half, and the slowest text."""
    scan = SCANNERS[kind]
    cases: list[Case] = list(importlib.import_module(f"evals.sets.{kind}").cases())
    seen: dict[tuple[str, str], list[int]] = {}
    certain: dict[tuple[str, str], int] = {}
    slowest = 0.0
    for case in cases:
        before = time.perf_counter()
        findings = scan(case.text)
        slowest = max(slowest, (time.perf_counter() - before) * 1000 / max(1.0, len(case.text) / 1200))
        row = seen.setdefault((case.group, case.half), [0, 0, int(case.wanted)])
        row[0] += 1
        row[1] += bool(findings)
        certain[case.group, case.half] = certain.get((case.group, case.half), 0) + any(
            f.certainty == "certain" for f in findings
        )
        if show == case.half and bool(findings) != case.wanted:
            print(f"{case.id}: {case.text!r} {[(f.detector, f.start, f.end) for f in findings]}", file=out)
    print(f"{'group':<18}{'half':<6}{'texts':>7}{'flagged':>9}{'share':>9}{'certain':>9}", file=out)
    for (group, half), (total, flagged, wanted) in sorted(seen.items()):
        share = 100 * flagged / total
        sure = 100 * certain[group, half] / total
        what = "found" if wanted else "false"
        print(f"{group:<18}{half:<6}{total:>7}{flagged:>9}{share:>8.2f}%{sure:>8.2f}% {what}", file=out)
    print(f"slowest text: {slowest:.1f} ms per 1,200 characters (first use compiles the rules)", file=out)


def main() -> int:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(description="Measure a detector.")
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--selftest", action="store_true", help="print figures over our own labelled sets")
    parser.add_argument("--show", choices=("dev", "test"), help="with --selftest: print the misses of one half")
    options = parser.parse_args()
    if options.selftest:
        selftest(options.kind, sys.stdout, show=options.show)
        return 0
    return answer(options.kind, sys.stdin, sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
