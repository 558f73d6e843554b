"""What it costs to turn texts into vectors, beside the runner alone on the same weights.

The floor is onnxruntime with tokens at hand, 32 texts padded to one length, nothing rounded and nothing checked.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import p50, table, times
from benchmarks.texts import notes

#: How much longer than the runner alone ours may take.
GOAL = 1.2


def run() -> None:
    """Print the table."""
    from keepward.adapters.embed_hashed import HashedEmbedder
    from keepward.adapters.embed_minilm import MiniLmEmbedder
    from keepward.errors import ModelUnavailable

    texts = notes(480)
    try:
        ways = {f"minilm, {name}": MiniLmEmbedder(backend=name) for name in ("numpy", "onnx")}
        floor = _Floor(ways["minilm, onnx"])
    except ModelUnavailable as fault:
        print(f"\nembedding: left out, {fault}")
        return
    rows: list[list[object]] = []
    bare_one = p50(times(lambda n: floor.run(texts[n : n + 1]), 60))
    bare_many = p50(times(lambda n: floor.run(texts[32 * n : 32 * n + 32]), 12))
    rows.append(["the runner alone", bare_one, bare_many, 32_000 / bare_many, 1.0, 1.0])
    for name, embedder in {**ways, "hashed": HashedEmbedder()}.items():
        embedder.embed(texts[:64])
        one = p50(times(lambda n, e=embedder: e.embed([texts[n]]), 60))
        many = p50(times(lambda n, e=embedder: e.embed(texts[32 * n : 32 * n + 32]), 12))
        rows.append([name, one, many, 32_000 / many, one / bare_one, many / bare_many])
    table(
        f"Texts into vectors (goal: at most {GOAL} times the runner alone)",
        ["embedder", "one p50 ms", "32 p50 ms", "texts a second", "one / alone", "32 / alone"],
        rows,
    )


class _Floor:
    def __init__(self, embedder: object) -> None:
        self.tokenizer, self.numpy = embedder._open()  # type: ignore[attr-defined]  # noqa: SLF001
        self.forward = embedder._open_onnx()  # type: ignore[attr-defined]  # noqa: SLF001
        self.run(["warm"])

    def run(self, texts: list[str]) -> None:
        tokens = [each.ids for each in self.tokenizer.encode_batch(texts)]
        longest = max(map(len, tokens))
        rows = np.zeros((len(tokens), longest, 384), dtype=np.float32)
        for at, ids in enumerate(tokens):
            rows[at, : len(ids)] = self.numpy.lookup(ids)
        self.forward(rows)
