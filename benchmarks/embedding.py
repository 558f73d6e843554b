"""What it costs to turn texts into vectors, and the memory that it takes."""

from __future__ import annotations

import resource

from benchmarks.measure import p50, table, times
from benchmarks.texts import notes


def run() -> None:
    """Print the table."""
    from keepward.errors import ModelUnavailable
    from keepward.models.hashed import HashedEmbedder
    from keepward.models.minilm import MiniLmEmbedder

    texts = notes(480)
    try:
        ways = {"hashed": HashedEmbedder(), "minilm": MiniLmEmbedder()}
    except ModelUnavailable as fault:
        print(f"\nembedding: left out, {fault}")
        return
    rows: list[list[object]] = []
    for name, embedder in ways.items():
        embedder.embed(texts[:64])
        one = p50(times(lambda n, e=embedder: e.embed([texts[n]]), 60))
        many = p50(times(lambda n, e=embedder: e.embed(texts[32 * n : 32 * n + 32]), 12))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append([name, one, many, 32_000 / many, peak])
    table(
        "Texts into vectors",
        ["embedder", "one p50 ms", "32 p50 ms", "texts a second", "peak memory so far, MB"],
        rows,
    )
