"""Ask what nobody told: how often is the answer that nothing is remembered?

    python -m evals.recall_nothing [--embedder minilm] [--data LOCOMO_FILE] [--cache DIR]

Invariants
(1) The two hundred questions of our own are reported in two halves: constants were chosen on the first alone.
(2) Stores of plain facts are our own sets, whole and 5, 10, 20 and 30 memories of each, drawn by the set's name.
(3) Of other conversations every eighth question is asked that has an answer there and names no speaker of this one.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from evals import recall_sets
from evals.recall_report import table
from evals.recall_run import POLICY, Run, opened, tell
from evals.recall_sets import APART, CATEGORIES, Conversation
from evals.recall_vectors import chosen
from evals.sets_recall.nothing import questions
from evals.stores import files
from keepward import Memory
from keepward.models.tokens import choose_counter

PLAIN = ("preferences", "corrected", "keyed", "linked", "siblings")
SIZES = (5, 10, 20, 30)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of questions without an answer that got none; return 0."""
    parser = argparse.ArgumentParser(prog="python -m evals.recall_nothing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--embedder", default="minilm", help="a name that keepward knows, such as minilm, hashed, none")
    parser.add_argument("--data", type=Path, help="a file of the LoCoMo format")
    parser.add_argument("--limit", type=int, help="take the first conversations of the file alone")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    options = parser.parse_args(arguments)
    stores = list(_own())
    if options.data is not None:
        stores += _talks(options.data, options.limit)
    embedder = chosen(options.embedder, options.cache)
    first, second = questions()
    rows: dict[str, list[tuple[int, int]]] = {}
    with (
        TemporaryDirectory() as name,
        files(Path(name)) as target,
        opened(target, embedder, choose_counter("estimate"), POLICY, None) as mem,
    ):
        for kind, conversation, others in stores:
            here = mem.at(tenant=conversation.name)
            tell(here, conversation, None, None, Run())
            counts = [_silent(here, asked) for asked in (first, second, others)]
            rows.setdefault(kind, []).extend(counts)
    lines = []
    for kind, counts in rows.items():
        cells = [_share(counts[part::3]) for part in range(3)]
        lines.append([kind, len(counts) // 3, *cells])
    print(
        table([f"{options.embedder}: answered by nothing, %", "stores", "first half", "second half", "others'"], lines)
    )
    return 0


def _silent(mem: Memory, asked: Sequence[str]) -> tuple[int, int]:
    """Return how many questions got no answer, and how many were asked."""
    return sum(not len(mem.recall(each)) for each in asked), len(asked)


def _share(counts: Sequence[tuple[int, int]]) -> object:
    asked = sum(each for _, each in counts)
    return 100 * sum(each for each, _ in counts) / asked if asked else ""


def _own() -> Iterator[tuple[str, Conversation, tuple[str, ...]]]:
    for data in recall_sets.own():
        whole = data.conversations[0]
        if whole.name in PLAIN:
            for size in SIZES:
                drawn = random.Random(f"{whole.name} {size}").sample(range(len(whole.told)), size)
                told = tuple(whole.told[place] for place in sorted(drawn))
                yield f"{size} plain facts", replace(whole, name=f"{whole.name}-{size}", told=told), ()
            yield "plain facts, 40 to 70", whole, ()
        elif whole.name in {"chats", "together"}:
            yield whole.name, whole, ()


def _talks(file: Path, limit: int | None) -> Iterator[tuple[str, Conversation, tuple[str, ...]]]:
    every = recall_sets.locomo(file, categories=sorted(set(CATEGORIES) - APART)).conversations
    for talk in every[:limit]:
        names = {each.speaker for each in talk.told if each.speaker}
        named = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)
        others = tuple(
            each.text
            for other in every
            if other.name != talk.name
            for each in other.asked[::8]
            if not named.search(each.text)
        )
        yield "talk between two people", talk, others


if __name__ == "__main__":
    raise SystemExit(main())
