"""Evaluate whether recall and contexts say what is current: pairs of which the newer outdoes the older, or not.

    python -m evals.current [--embedder minilm] [--half first | second | both]

Each pair is told to one tenant among all other pairs of its group, the newer one a month later, as facts or as turns of
a conversation, and asked for through the front door. In ``sets_recall/current.txt`` lines at even places are the first
half, on which the rules were written; those at odd places, the second, were counted while the rules were tuned. The
unread groups were written before anything was counted on them; properties were added since. The fresh
groups were written by somebody who had not read the rules; their second half stays unread. The states groups were
written before the rules for states by who wrote these, and both halves were developed on. The blind and sealed
groups, in ``sets_recall/current_blind.txt``, are by two other hands: nobody who works on the rules reads them, and
only totals are printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evals.recall_run import POLICY, Clock, opened
from evals.recall_vectors import chosen
from evals.stores import files
from keepward import Memory
from keepward.models.tokens import choose_counter

TOLD = datetime(2025, 1, 6, 9, tzinfo=UTC)
_FRESH = ("fresh facts", "fresh turns", "fresh others")
#: Nobody who works on the rules reads them.
_UNREAD = tuple(f"{hand} {form}" for hand in ("blind", "sealed") for form in ("facts", "turns", "others"))
_DAILY = ("daily facts", "daily others")
GROUPS = ("facts", "turns", "others", "unread", "unread others", *_FRESH, "states", "states others", *_DAILY, *_UNREAD)
HALVES = {"first": (0,), "second": (1,), "both": (0, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two statements and what is asked."""

    older: str
    newer: str
    question: str


def pairs(group: str, halves: Sequence[int] = (0, 1)) -> list[Pair]:
    """Return the pairs of a group, those at even places (0) or odd ones (1)."""
    file = "current_blind.txt" if group in _UNREAD else "current.txt"
    text = (Path(__file__).parent / "sets_recall" / file).read_text("utf-8")
    part = next(each for each in text.split("\n\n") if each.startswith(f"{group}\n"))
    rows = [line.split(" | ") for line in part.strip().splitlines()[1:]]
    return [
        Pair(older=older, newer=newer, question=question)
        for place, (older, newer, question) in enumerate(rows)
        if place % 2 in halves
    ]


def fields(text: str, number: int, at: datetime) -> dict[str, Any]:
    """Return what is remembered of a statement: a turn where it begins with a speaker, else a fact."""
    speaker, colon, said = text.partition(": ")
    if not colon or " " in speaker:
        return {"text": text, "tier": "archival", "occurred_at": at}
    turn = {"tier": "episodic", "kind": "event", "stability": "stable", "session": f"s{number}-{at:%m%d}"}
    return {"text": said, "speaker": speaker, "occurred_at": at, **turn}


def score(mem: Memory, clock: Clock, group: str, given: Sequence[Pair]) -> dict[str, int]:
    """Tell all pairs to one tenant and ask for each; return how many are right by each measure."""
    for months, name in enumerate(("older", "newer")):
        clock.instant = TOLD + timedelta(days=30 * months)
        told = [fields(getattr(each, name), at, clock.instant) for at, each in enumerate(given)]
        mem.remember_many(told, reason="evaluation of what is current")
    clock.instant += timedelta(days=1)
    ids = {(record.speaker or "", record.text): record.id for record in mem.find(limit=None)}
    found = dict.fromkeys(("recalled first", "both", "newer first", "dated"), 0)
    for each in given:
        made = mem.context(each.question, budget_tokens=2_000)
        items = {item.id: at for at, item in enumerate(made.sections[-1].items)} if made.text else {}
        older, newer = (ids.get(_named(text)) for text in (each.older, each.newer))
        hits = [hit.memory.id for hit in mem.recall(each.question, limit=50)]
        found["recalled first"] += newer in hits and older not in hits[: hits.index(newer)]
        if older not in items or newer not in items:
            continue
        found["both"] += 1
        found["newer first"] += items[newer] < items[older]
        found["dated"] += all(f"{TOLD + timedelta(days=days):%Y-%m-%d}" in made.text for days in (0, 30))
    return found


def _named(text: str) -> tuple[str, str]:
    speaker, colon, said = text.partition(": ")
    return (speaker, said) if colon and " " not in speaker else ("", text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(prog="python -m evals.current", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--embedder", default="minilm", help="a name that keepward knows, such as minilm, hashed, none")
    parser.add_argument("--half", choices=tuple(HALVES), default="both", help="which half of the pairs")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    options = parser.parse_args(arguments)
    embedder = chosen(options.embedder, options.cache)
    print("| pairs | half | of | newer first in recall | both shown | newer first | dated |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for group in GROUPS:
        whole = group.startswith("unread") or group in _UNREAD
        for half in ("both",) if whole else ("first", "second") if options.half == "both" else (options.half,):
            given = pairs(group, HALVES[half])
            clock = Clock(TOLD)
            with (
                TemporaryDirectory() as name,
                files(Path(name)) as target,
                opened(target, embedder, choose_counter("estimate"), POLICY, clock) as mem,
            ):
                found = score(mem.at(tenant=f"{group}-{half}".replace(" ", "-")), clock, group, given)
            print(f"| {group} | {half} | {len(given)} | {' | '.join(map(str, found.values()))} |", flush=True)
    print("\nOf the others both hold: neither outdoes the other.", file=sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
