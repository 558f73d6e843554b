"""all-MiniLM-L6-v2 on this machine, with 8-bit matrices in onnxruntime: 384 dimensions, English first, no network.

`keepward model install` stores the weights and the tokenizer; see ``model_files``.

Invariants
(1) `id` and `dim` do not open the weights; the first `embed` opens them, once, under a lock.
(2) One text a run, never padded and never packed with neighbours: a text's vector depends on it alone. Several run side
    by side on the processors there are, each on one thread.
(3) The telemetry of onnxruntime is off before its first import. Since 1.29 it reports each process and each model to
    Microsoft, and stores an identifier in the user's cache.
(4) The vocabulary, half of the weights, is mapped: only the rows of a text's words are read.

Late imports: each embedder loads its own libraries, a program that does not need it starts faster.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keepward.embedding import model_files
from keepward.embedding.graph import DIM, INPUT
from keepward.errors import ModelUnavailable
from keepward.locks import ForkSafeLock

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Maximum tokens of one text, with the two special ones; the rest of a longer text is ignored.
MAX_TOKENS = 256
_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
#: Maximum characters of one text: no real text needs more for 256 tokens.
_MAX_CHARACTERS = 30_000


def disable_telemetry() -> None:
    """Switch off the telemetry of onnxruntime before its first use (3)."""
    is_set = _NO_TELEMETRY in os.environ
    try:
        # It reads the variable when it is imported, and no later; the environment is the host's.
        os.environ.setdefault(_NO_TELEMETRY, "1")
        import onnxruntime
    finally:
        if not is_set:
            os.environ.pop(_NO_TELEMETRY, None)
    # For a host that has imported it already, and for Windows, which ignores the variable.
    onnxruntime.disable_telemetry_events()


class MiniLmEmbedder:
    """Sentence vectors of all-MiniLM-L6-v2; thread safe.

    Raises:
        ModelUnavailable: the model is not installed.
    Source: Wang et al. (2020), "MiniLM"; Reimers and Gurevych (2019), "Sentence-BERT".
    """

    dim = DIM
    #: What ``services.search.features.model_scale`` measures: mean and deviation of the cosines of unrelated texts.
    cosine_scale = 0.0, 0.07

    #: Name, start of the weights' SHA-256, and dimension: equal exactly when vectors can be compared, as can those of
    #: earlier versions, which rounded nothing (0.99 of a cosine to ours).
    id = f"{model_files.NAME}:{model_files.WEIGHTS_ID}:{DIM}"

    def __init__(self) -> None:
        if missing := model_files.missing_package():
            raise ModelUnavailable(f"MiniLM needs the package {missing}, which is not installed: install it with pip")
        if not self.available():
            raise ModelUnavailable("MiniLM is not installed: `keepward model install` fetches it")
        self._folder = model_files.folder()
        self._lock = ForkSafeLock()
        self._opened: tuple[Tokenizer, Network] | None = None

    @staticmethod
    def available() -> bool:
        """Return whether the model is installed; imports nothing heavy."""
        return model_files.is_installed() and model_files.missing_package() is None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), 384), L2-normalised rows, in the order of `texts`."""
        if not texts:
            return np.zeros((0, DIM), dtype=np.float32)
        with self._lock:
            if self._opened is None:
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(str(self._folder / model_files.TOKENIZER))
                tokenizer.no_padding()
                tokenizer.enable_truncation(MAX_TOKENS)
                self._opened = tokenizer, Network(self._folder)
            tokenizer, network = self._opened

        def vector(text: str) -> NDArray[np.float32]:
            # The tokenizer takes UTF-8 only; a lone surrogate becomes a question mark rather than an exception.
            readable = text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode()
            return network.vector(tokenizer.encode(readable).ids)

        if len(texts) == 1:
            return vector(texts[0])[None, :]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(_cores(), len(texts))) as pool:
            return np.stack(list(pool.map(vector, texts)))


class Network:
    """The forward pass; thread safe, because it has no state between calls."""

    def __init__(self, folder: Path) -> None:
        disable_telemetry()
        import onnxruntime

        self._words = np.load(folder / model_files.WORDS, mmap_mode="r").view(np.ndarray)
        self._positions = np.load(folder / model_files.POSITIONS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        # Texts have many lengths, so memory that is reserved for one text does not fit the next one.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        # The graph is fused already, and separate sums and norms are faster.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session: Any = onnxruntime.InferenceSession(
            str(folder / model_files.BLOCKS), options, providers=["CPUExecutionProvider"]
        )

    def vector(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean of a text's states, of length 1."""
        sums = self._words[np.asarray(tokens)] + self._positions[: len(tokens)]
        (states,) = self._session.run(None, {INPUT: sums[None]})
        mean = states[0].mean(axis=0, dtype=np.float64)
        return np.asarray(mean / np.sqrt(mean @ mean), dtype=np.float32)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
