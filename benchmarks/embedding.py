"""What it costs to turn texts into vectors, alone and on their way into a store, and the memory that it takes.

Processor time, since a text alone is computed on one processor and many on all there are.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import table
from benchmarks.texts import notes, replies
from keepward import Committed, Memory, Policy, Tier

#: Milliseconds of processor time of a short ``remember`` with the model, and of one of many long replies: forty a
#: second on two processors.
SHORT, LONG = 12.0, 50.0


def _work(action: Callable[[int], object], count: int) -> float:
    """Return the median of the milliseconds of processor time that each of ``count`` calls took."""
    taken = []
    for number in range(count):
        start = time.process_time()
        action(number)
        taken.append(time.process_time() - start)
    return statistics.median(taken) * 1_000


def run() -> None:
    """Print the tables."""
    from keepward.embedding.hashed import HashedEmbedder
    from keepward.embedding.minilm import MiniLmEmbedder
    from keepward.errors import ModelUnavailable

    texts, long = notes(480), replies(40)
    try:
        ways = {"hashed": HashedEmbedder(), "minilm": MiniLmEmbedder()}
    except ModelUnavailable as fault:
        print(f"\nembedding: left out, {fault}")
        return
    rows: list[list[object]] = []
    stored: list[list[object]] = []
    for name, embedder in ways.items():
        embedder.embed(texts[:64])
        one = _work(lambda n, e=embedder: e.embed([texts[n]]), 60)
        many = _work(lambda n, e=embedder: e.embed(texts[32 * n : 32 * n + 32]), 12)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append([name, one, many, peak])
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            policy = Policy(text_limit=dict.fromkeys(Tier, 8_000))
            with Memory.open(
                place / "store.db", embedder=embedder, policy=policy, config_dir=place / "config"
            ) as memory:
                short = _work(lambda n, m=memory: m.remember(texts[n], tier="archival"), 60)
                turns = [
                    {"text": text, "kind": "event", "speaker": "assistant", "session": f"talk {n // 10}"}
                    for n, text in enumerate(long)
                ]
                start, clock = time.process_time(), time.perf_counter()
                done = memory.remember_many(turns, batch=20)
                spent, passed = time.process_time() - start, time.perf_counter() - clock
                assert all(isinstance(each, Committed) for each in done), done
        stored.append([name, short, 1_000 * spent / len(turns), len(turns) / passed])
    table(
        "Texts into vectors",
        ["embedder", "one p50 ms of processor time", "32 p50 ms of processor time", "peak memory so far, MB"],
        rows,
    )
    table(
        f"Into a store (goals: {SHORT:.0f} ms a note, {LONG:.0f} ms a reply of 3,400 characters)",
        [
            "embedder",
            "a note p50 ms of processor time",
            "a reply ms of processor time",
            "replies a second by the clock",
        ],
        stored,
    )
