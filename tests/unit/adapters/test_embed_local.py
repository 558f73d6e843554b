"""Runners that are not installed here: what they say when asked."""

from __future__ import annotations

import sys

import pytest

from keepward.adapters.embed_local import FastembedEmbedder, SentenceTransformerEmbedder
from keepward.errors import ModelUnavailable


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [
        (SentenceTransformerEmbedder, "sentence_transformers", "sentence-transformers"),
        (FastembedEmbedder, "fastembed", "fastembed"),
    ],
)
def test_a_missing_runner_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, kind: type, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelUnavailable, match=f"pip install {package}"):
        kind("some-model").embed(["x"])
