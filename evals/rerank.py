"""Show what the learned reranker learns from feedback, and that it stays off where there is nothing to learn.

    python -m evals.rerank [--only NAME ...] [--embedder auto] [--lessons N]

Each world is a fresh store: its notes are remembered, every lesson is a recall with a receipt and feedback on what it
showed, then one training. "held-out" is the share of pairs (used, ignored) in the right order on the feedback that
was kept apart; "exam" is MRR over questions on things that no feedback speaks of, by cosine, by the fused order and
as served. Exits with 1 where a world that can be learned is not, or one that cannot is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evals.rerank_sets import WORLDS, Question, World
from keepward import Actor, Committed, Memory

#: Memories shown in a lesson and in the exam.
SHOWN = 8
COLUMNS = (
    *("world", "feedback", "held out", "cosine", "fused", "learned", "gain", "serves"),
    *("exam cosine", "fused", "served", "extra us"),
)


class _Clock:
    def __init__(self) -> None:
        self.instant = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.instant


def run(world: World, folder: Path, *, embedder: str, lessons: int) -> dict[str, Any]:
    """Live through one world; return the numbers of its row."""
    clock = _Clock()
    with Memory.open(
        folder / f"{world.name}.db",
        actor=Actor.operator("eval"),
        embedder=embedder,
        clock=clock,
        config_dir=folder / "config",
    ) as memory:
        ids = _written(memory, world, clock)
        clock.instant += timedelta(days=30)
        for question in world.lessons[:lessons]:
            _lesson(memory, question, ids)
        found = memory.train_reranker()
        exam = {order: _mrr(memory, world.exam, ids, order) for order in ("cosine", "fused", "learned")}
        added = _extra(memory, world.exam)
        return {"world": world, "training": found, "exam": exam, "added": added, "ok": found.serving == world.learnable}


def _written(memory: Memory, world: World, clock: _Clock) -> dict[str, str]:
    start, ids = clock.instant, {}
    for note in sorted(world.notes, key=lambda note: (note.day, note.name)):
        clock.instant = start + timedelta(days=note.day, minutes=len(ids))
        out = memory.remember(
            note.text, tier="archival", kind="fact", source="user_message", metadata={"name": note.name}
        )
        if not isinstance(out, Committed):
            raise SystemExit(f"a note was not kept: {note.text}")
        ids[out.records[0].id] = note.name
    return ids


def _lesson(memory: Memory, question: Question, ids: dict[str, str]) -> None:
    shown = memory.recall(question.text, limit=SHOWN, receipt=True, order="fused")
    used = [hit.memory.id for hit in shown if ids[hit.memory.id] in question.useful]
    if used and shown.receipt:
        memory.feedback(shown.receipt, used=used, ignored=[hit.memory.id for hit in shown if hit.memory.id not in used])


def _mrr(memory: Memory, exam: tuple[Question, ...], ids: dict[str, str], order: str) -> float:
    total = 0.0
    for question in exam:
        ranked = [ids[hit.memory.id] for hit in memory.recall(question.text, limit=SHOWN, order=order)]
        places = [rank for rank, name in enumerate(ranked, start=1) if name in question.useful]
        total += 1.0 / places[0] if places else 0.0
    return total / len(exam)


def _extra(memory: Memory, exam: tuple[Question, ...]) -> float:
    """Return the median extra time of a learned recall over a fused one, in microseconds."""
    spans: dict[str, list[float]] = {"fused": [], "learned": []}
    for question in exam[:30]:
        for order, found in spans.items():
            start = time.perf_counter()
            memory.recall(question.text, limit=SHOWN, order=order)
            found.append(time.perf_counter() - start)
    middle = {order: sorted(found)[len(found) // 2] for order, found in spans.items()}
    return 1e6 * (middle["learned"] - middle["fused"])


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as text in columns."""
    cells = [COLUMNS]
    for row in rows:
        told, exam = row["training"], row["exam"]
        shares = (f"{share:.3f}" for share in (told.cosine, told.fused, told.learned))
        served = (f"{exam[order]:.3f}" for order in ("cosine", "fused", "learned"))
        serves = ("yes" if told.serving else "no") + ("" if row["ok"] else " (!)")
        cells.append(
            (
                row["world"].name,
                str(told.feedback),
                str(told.held_out),
                *shares,
                f"{told.gain:+.3f}",
                serves,
                *served,
                f"{row['added']:.0f}",
            )
        )
    widths = [max(len(line[n]) for line in cells) for n in range(len(COLUMNS))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def main() -> int:
    """Print the table; return 0 if every world went as it ought to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sorted(WORLDS), default=list(WORLDS))
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--lessons", type=int, default=160)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            run(WORLDS[name](), Path(folder), embedder=given.embedder, lessons=given.lessons) for name in given.only
        ]
    print(table(rows))
    for row in rows:
        print(f"{row['world'].name}: {row['training'].why}")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
