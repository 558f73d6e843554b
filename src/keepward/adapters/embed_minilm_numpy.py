"""The forward pass of all-MiniLM-L6-v2 in plain numpy: slower than a runtime, but there at once.

Invariants
(1) One text at a time, never padded and never packed with neighbours: BLAS picks its kernels by shape, so the
    last bits of a text's vector would otherwise depend on what it was embedded beside.
(2) The weights file is mapped, not read: a single query touches the layers and a few rows of the vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Weights = Mapping[str, Floats]
_Pair = tuple[Floats, Floats]

LAYERS = 6
HEADS = 12
EPSILON = 1e-12

#: Phi(x) - 1/2 = x P(x^2) / Q(x^2) for |x| <= 5.6, at most 1e-8 off: our fit; lowest power first.
_P = (0.398942222, 0.0343760187, 0.00470725382, 0.000173849809, 6.35652266e-06, 2.21453667e-08)
_Q = (1.0, 0.252833614, 0.0289400366, 0.001912973, 7.51016117e-05, 1.18021287e-06)
_FLAT = 5.6


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


class NumpyForward:
    """Runs the network in the precision of `kind`; thread safe, as nothing is kept between calls.

    float64 costs a copy of the layers (85 MB) and four times the time.
    """

    def __init__(self, weights: Weights, kind: type[np.floating] = np.float32) -> None:
        self._words = weights["embeddings.word_embeddings.weight"]
        # Single precision uses the mapped file as it is (2); only the layers are copied for another.
        weights = {name: w.astype(kind, copy=False) for name, w in weights.items() if w is not self._words}
        positions = weights["embeddings.position_embeddings.weight"]
        self._places = positions + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = _pair(weights, "embeddings.LayerNorm")
        self._layers = [_Layer(weights, f"encoder.layer.{number}.") for number in range(LAYERS)]

    def lookup(self, tokens: Sequence[int]) -> Floats:
        """Return one text's tokens embedded with their places, shape (len(tokens), 384)."""
        return _layer_norm(self._words[np.asarray(tokens)] + self._places[: len(tokens)], self._norm)

    def __call__(self, x: Floats) -> Floats:
        """Return the last hidden states of one embedded text, both of shape (tokens, 384)."""
        for layer in self._layers:
            x = layer(x)
        return x


class _Layer:
    """One transformer block: attention, then the feed-forward net, each added to its input and normalised."""

    def __init__(self, weights: Weights, prefix: str) -> None:
        self._qkv = [_pair(weights, f"{prefix}attention.self.{name}") for name in ("query", "key", "value")]
        self._mix = _pair(weights, prefix + "attention.output.dense")
        self._mix_norm = _pair(weights, prefix + "attention.output.LayerNorm")
        self._up = _pair(weights, prefix + "intermediate.dense")
        self._down = _pair(weights, prefix + "output.dense")
        self._norm = _pair(weights, prefix + "output.LayerNorm")

    def __call__(self, x: Floats) -> Floats:
        q, k, v = (_linear(x, pair).reshape(len(x), HEADS, -1).transpose(1, 0, 2) for pair in self._qkv)
        scores: Floats = q @ k.transpose(0, 2, 1)
        scores *= q.shape[2] ** -0.5
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        heads: Floats = (scores @ v).transpose(1, 0, 2).reshape(x.shape)
        x = _layer_norm(_linear(heads, self._mix) + x, self._mix_norm)
        return _layer_norm(_linear(_gelu(_linear(x, self._up)), self._down) + x, self._norm)


def _pair(weights: Weights, name: str) -> _Pair:
    return weights[name + ".weight"], weights[name + ".bias"]


def _linear(x: Floats, pair: _Pair) -> Floats:
    y: Floats = x @ pair[0].T
    y += pair[1]
    return y


def _layer_norm(x: Floats, pair: _Pair) -> Floats:
    x -= x.mean(axis=1, keepdims=True)
    x /= np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + EPSILON)
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
