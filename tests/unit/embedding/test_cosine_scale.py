"""A stated scale of cosines is the one that is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from keepward.embedding.hashed import HashedEmbedder
from keepward.services.search.features import model_scale


class Unstated:
    """An embedder without its stated scale, so that the scale is measured."""

    def __init__(self, inner: HashedEmbedder) -> None:
        self.id, self.dim, self._inner = inner.id, inner.dim, inner

    def embed(self, texts: Sequence[str]) -> Any:
        return self._inner.embed(texts)


@pytest.mark.parametrize("dim", [256, 384, 1024])
def test_the_stated_scale_of_hashed_vectors_is_the_measured_one(dim: int) -> None:
    measured = model_scale(Unstated(HashedEmbedder(dim)), {})  # type: ignore[arg-type]
    assert HashedEmbedder(dim).cosine_scale == pytest.approx((measured.baseline, measured.noise), abs=0.003)
