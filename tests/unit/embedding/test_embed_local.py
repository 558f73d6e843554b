"""Runners that are not installed here: what they say when asked."""

from __future__ import annotations

import sys

import pytest

from keepward.embedding.remote import RunnerEmbedder
from keepward.errors import ModelUnavailable


@pytest.mark.parametrize("package", ["sentence-transformers", "fastembed"])
def test_a_missing_runner_says_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(ModelUnavailable, match=f"pip install {package}"):
        RunnerEmbedder(package, "some-model").embed(["x"])
