"""Show what the learned reranker learns from feedback, and that it stays off where there is nothing to learn.

    python -m evals.rerank [--only NAME ...] [--embedder auto] [--lessons N] [--agents-share S]

Each world is a fresh store: its notes are remembered, every lesson is a recall with a receipt and feedback on what it
showed, then one training. "held-out" is the share of pairs (used, ignored) in the right order on the feedback that
was kept apart; "exam" is MRR over questions on things that no feedback speaks of, by cosine, by the fused order and
as served. In the last line stands the verdict. Exits with 1 where a world that can be learned is not, or is learned
and answered worse; and where one that cannot be learned is served, or answered otherwise than in the plain order.
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
from keepward import Actor, Committed, Memory, Policy

#: Memories shown in a lesson and in the exam.
SHOWN = 8
COLUMNS = (
    *("world", "feedback", "agents", "held out", "cosine", "fused", "learned", "gain", "serves"),
    *("exam cosine", "fused", "served", "extra us"),
)


class _Clock:
    def __init__(self) -> None:
        self.instant = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.instant


def run(world: World, folder: Path, *, embedder: str, lessons: int, share: float | None = None) -> dict[str, Any]:
    """Live through one world; return the numbers of its row. ``share`` is what agents may have of a training."""
    policy = Policy() if share is None else Policy(agent_feedback_share=share)
    clock = _Clock()
    with Memory.open(
        folder / f"{world.name}.db",
        actor=Actor.operator("eval"),
        embedder=embedder,
        policy=policy,
        clock=clock,
        config_dir=folder / "config",
    ) as memory:
        ids = _written(memory, world, clock)
        clock.instant += timedelta(days=30)
        taught = world.lessons[:lessons]
        agent, each = memory.as_actor(Actor.agent("scout")), len(world.lies) // len(world.lessons)
        for n, question in enumerate(taught):
            _lesson(memory, question, ids)
            for lie in world.lies[n * each : (n + 1) * each]:
                _lesson(agent, lie, ids)
        found = memory.train_reranker()
        exam = {order: _mrr(memory, world.exam, ids, order) for order in ("cosine", "fused", "learned")}
        added = _extra(memory, world.exam) if found.serving else None
        better, same = exam["learned"] > exam["fused"], exam["learned"] == exam["fused"]
        ok = (found.serving and better) if world.learnable else (not found.serving and same)
        return {"world": world, "training": found, "exam": exam, "added": added, "ok": ok}


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
    """Return the median extra CPU time of a learned recall over a fused one right after it, in microseconds."""
    apart = []
    for question in (*exam, *exam, *exam):
        spans = []
        for order in ("learned", "fused"):
            start = time.process_time()
            memory.recall(question.text, limit=SHOWN, order=order)
            spans.append(time.process_time() - start)
        apart.append(spans[0] - spans[1])
    return 1e6 * sorted(apart)[len(apart) // 2]


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
                f"{told.from_agents:.0%}",
                str(told.held_out),
                *shares,
                f"{told.gain:+.3f}",
                serves,
                *served,
                "-" if row["added"] is None else f"{row['added']:.0f}",
            )
        )
    widths = [max(len(line[n]) for line in cells) for n in range(len(COLUMNS))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def verdict(rows: list[dict[str, Any]]) -> str:
    """Return in one line whether the reranker helps where it can and keeps out where it cannot."""
    said = []
    for learnable, what in ((True, "helps in {} of {} worlds that can be learned"), (False, "off in {} of {} others")):
        mine = [row for row in rows if row["world"].learnable is learnable]
        if mine:
            said.append(what.format(sum(row["ok"] for row in mine), len(mine)))
    served = [row["exam"] for row in rows if row["training"].serving]
    if served:
        means = [sum(exam[order] for exam in served) / len(served) for order in ("cosine", "fused", "learned")]
        said.append("exam where it serves: cosine {:.3f}, fused {:.3f}, served {:.3f}".format(*means))
    return f"verdict: {'good' if all(row['ok'] for row in rows) else 'BAD'}; {'; '.join(said)}"


def main() -> int:
    """Print the table; return 0 if every world went as it ought to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sorted(WORLDS), default=list(WORLDS))
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--lessons", type=int, default=160)
    parser.add_argument("--agents-share", type=float, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            run(WORLDS[name](), Path(folder), embedder=given.embedder, lessons=given.lessons, share=given.agents_share)
            for name in given.only
        ]
    print(table(rows))
    for row in rows:
        print(f"{row['world'].name}: {row['training'].why}")
    print(verdict(rows))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
