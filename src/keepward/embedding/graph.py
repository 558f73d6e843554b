"""The transformer blocks of all-MiniLM-L6-v2 as an ONNX graph with 8-bit matrices, written without the `onnx` package.

Invariants
(1) Matrices are rounded to 8 bits with one step for each output. Their inputs are rounded to 8 bits with one step for
    each run. So a run has one text, and its vector depends on this text only.
(2) The first token is multiplied separately. Its states are up to ten times as large as those of the others, so a
    common step would leave five of the 8 bits. The cosine to single precision is 0.998 instead of 0.993.
(3) Products of integers are summed exactly, also on processors that add two of them in 16 bits: two adjacent values of
    a matrix add up to at most 127, and 1 for rounding. Everything else is computed in single precision.
(4) The same weights give the same bytes. Field numbers are those of `onnx.proto`, which never change.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]
_Part = bytes | memoryview

DIM = 384
_LAYERS = 6
_HEADS = 12
_EPSILON = 1e-12

#: Names of the input and the output: float32, shape (1, tokens, 384).
INPUT, OUTPUT = "x", "states"

#: Domain of onnxruntime's own operators, the version of ONNX's operators, and the version of the file format.
_RUNTIME = "com.microsoft"
_OPERATORS = 17
_FORMAT = 9
_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
_FLOAT = 1
#: Minimum of a row's largest sum, so that no step is zero.
_LEAST = np.finfo(np.float32).tiny
#: Rows of a matrix that are rounded together.
_ROWS = 32


def blocks(weights: Weights) -> bytes:
    """Return a model from sums of embeddings to the last hidden states of a text."""
    graph = _Graph(weights)
    thirds = graph.constant("thirds", np.full(3, DIM, dtype=np.int64))
    streams = graph.split_first_token(graph.normalised([INPUT], "embeddings.LayerNorm"))
    for number in range(_LAYERS):
        at = f"encoder.layer.{number}."
        parts = [f"{at}attention.self.{name}" for name in ("query", "key", "value")]
        joined = graph.joined([graph.linear(x, parts) for x in streams])
        q, k, v = graph.node("Split", [joined, thirds], outputs=3, axis=2)
        heads = graph.node("MultiHeadAttention", [q, k, v], num_heads=_HEADS)[0]
        mixed = graph.split_first_token(graph.linear(heads, [at + "attention.output.dense"]))
        for n, (x, change) in enumerate(zip(streams, mixed, strict=True)):
            y = graph.normalised([change, x], at + "attention.output.LayerNorm")
            wide = graph.linear(y, [at + "intermediate.dense"], after=at + "attention.output.LayerNorm")
            inner = graph.node("Gelu", [wide])[0]
            outer = graph.linear(inner, [at + "output.dense"])
            streams[n] = graph.normalised([outer, y], at + "output.LayerNorm")
    graph.joined(streams, names=[OUTPUT])
    return graph.model()


class _Graph:
    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[bytes] = []
        self._constants: dict[str, list[_Part]] = {}

    def constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._constants:
            sizes = b"".join(_field(1, size) for size in value.shape)
            kind = _field(2, _TYPES[value.dtype])
            self._constants[name] = [sizes + kind + _field(8, name), *_message(9, np.ascontiguousarray(value).data)]
        return name

    def node(
        self, kind: str, inputs: Sequence[str], *, outputs: int = 1, names: Sequence[str] = (), **attributes: float
    ) -> list[str]:
        found = list(names) or [f"{kind}.{len(self._nodes)}.{n}" for n in range(outputs)]
        parts = [_field(1, name) for name in inputs] + [_field(2, name) for name in found] + [_field(4, kind)]
        for name, value in attributes.items():
            typed = _field(2, value) + _field(20, 1) if isinstance(value, float) else _field(3, value) + _field(20, 2)
            parts.append(_field(5, _field(1, name) + typed))
        if kind not in _ONNX:
            parts.append(_field(7, _RUNTIME))
        self._nodes.append(b"".join(parts))
        return found

    def linear(self, x: str, names: Sequence[str], *, after: str | None = None) -> str:
        """Multiply with matrices side by side, rounded as in (1), and add their biases.

        ``after`` names the layer that normalised ``x``. States that it spreads more than others are divided by that
        spread, and their weights are multiplied by it, so that one step fits all.
        """
        inputs = [f"{names[0]}.{part}" for part in ("rounded", "steps", "zeros", "bias")]
        spread: NDArray[np.float32] | None = None
        if after is not None:
            # How far each state of the layer reaches, as a multiple of the median reach, at least 1.
            reach = np.abs(self._weights[after + ".bias"]) + 3 * np.abs(self._weights[after + ".weight"])
            spread = np.asarray(np.maximum(reach / np.median(reach), 1), dtype=np.float32)
        if inputs[0] not in self._constants:
            rounded, steps = _rounded([self._weights[name + ".weight"] for name in names], spread)
            bias = np.concatenate([self._weights[name + ".bias"] for name in names])
            values: tuple[NDArray[Any], ...] = (rounded, steps, np.zeros(len(steps), dtype=np.int8), bias)
            for name, value in zip(inputs, values, strict=True):
                self.constant(name, value)
        if spread is not None:
            x = self.node("Div", [x, self.constant(f"{after}.spread", spread)])[0]
        return self.node("DynamicQuantizeMatMul", [x, *inputs])[0]

    def split_first_token(self, x: str) -> list[str]:
        """Return the state of the first token and those of all others."""
        bounds = [self.constant(f"bound.{at}", np.array([at], dtype=np.int64)) for at in (0, 1, 1 << 40)]
        return [self.node("Slice", [x, *pair, bounds[1]])[0] for pair in pairwise(bounds)]

    def joined(self, streams: Sequence[str], *, names: Sequence[str] = ()) -> str:
        """Concatenate the state of the first token and those of all others."""
        return self.node("Concat", streams, names=names, axis=1)[0]

    def normalised(self, inputs: Sequence[str], name: str) -> str:
        """Normalise the input, or the sum of two, to the mean and the spread of a layer."""
        # The runtime's one operator for both steps takes four times as long as two operators.
        total = inputs[0] if len(inputs) == 1 else self.node("Add", inputs)[0]
        scale, shift = (self.constant(f"{name}.{part}", self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", [total, scale, shift], epsilon=_EPSILON)[0]

    def model(self) -> bytes:
        sizes = b"".join(_field(1, size) for size in (_field(1, 1), _field(2, "tokens"), _field(1, DIM)))
        kind = _field(1, _field(1, _FLOAT) + _field(2, sizes))
        graph = (
            *(_field(1, node) for node in self._nodes),
            _field(2, "minilm"),
            *(part for constant in self._constants.values() for part in _message(5, *constant)),
            _field(11, _field(1, INPUT) + _field(2, kind)),
            _field(12, _field(1, OUTPUT) + _field(2, kind)),
        )
        operators = _field(8, _field(1, "") + _field(2, _OPERATORS)) + _field(8, _field(1, _RUNTIME) + _field(2, 1))
        return b"".join((_field(1, _FORMAT), *_message(7, *graph), operators))


def _rounded(
    matrices: Sequence[NDArray[np.float32]], spread: NDArray[np.float32] | None
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return stacked matrices in 8 bits, shape (inputs, outputs), and the step of each output; see (1), (3).

    A few rows at a time, because allocating memory for a complete matrix takes longer than the calculation.
    """
    total = sum(len(matrix) for matrix in matrices)
    rounded, steps = np.empty((matrices[0].shape[1], total), dtype=np.int8), np.empty(total, dtype=np.float32)
    at = 0
    for matrix in matrices:
        for start in range(0, len(matrix), _ROWS):
            part = matrix[start : start + _ROWS] * (np.float32(1) if spread is None else spread)
            step = np.maximum(_pairs(np.maximum(part, 0)), _pairs(np.maximum(-part, 0))) / np.float32(127)
            part /= step[:, None]
            rounded[:, at : at + len(part)] = np.rint(part, out=part).astype(np.int8).T
            steps[at : at + len(part)] = step
            at += len(part)
    return rounded, steps


def _pairs(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the maximum sum of two adjacent values for each row."""
    most: NDArray[np.float32] = (matrix[:, ::2] + matrix[:, 1::2]).max(axis=1)
    return np.maximum(most, _LEAST)


_ONNX = frozenset({"Add", "Concat", "Div", "LayerNormalization", "Slice", "Split"})


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """Encode a field of a protocol buffer: integers as varints, floats in 4 bytes, other values after their length."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    body = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _message(number: int, *parts: _Part) -> list[_Part]:
    """Encode a field of a protocol buffer with these parts, which are copied only once, into the model."""
    return [_varint(number << 3 | 2) + _varint(sum(memoryview(part).nbytes for part in parts)), *parts]


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)
