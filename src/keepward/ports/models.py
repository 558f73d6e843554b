"""Models: what turns text into vectors, into token counts, and into fewer words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

    from keepward.core.messages import Fact, Turn


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def id(self) -> str:
        """Model, weights and dimension; vectors are comparable if and only if ids are equal."""
        ...

    @property
    def dim(self) -> int:
        """Components of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim), rows L2-normalised.

        The same text gives the same bytes whatever stands beside it.

        Raises:
            ModelUnavailable: the model cannot be used now.
        """
        ...


class Summarizer(Protocol):
    """Says in short what several texts say."""

    @property
    def id(self) -> str:
        """Names the model; stands in the receipts of runs that used it."""
        ...

    def summarize(self, texts: Sequence[str], *, limit: int) -> str:
        """Return what the texts say, in their order, in at most ``limit`` characters; adds nothing of its own.

        Raises:
            ModelUnavailable: the model cannot be used now.
        """
        ...


class Extractor(Protocol):
    """Finds what a talk tells that is worth knowing for longer."""

    @property
    def id(self) -> str:
        """Names the model."""
        ...

    def extract(self, turns: Sequence[Turn]) -> Sequence[Fact]:
        """Return the facts of a talk, in the order in which they were told; each quotes the turn that it names.

        Asked outside of any transaction, with at most a hundred turns.

        Raises:
            ModelUnavailable: the model cannot be used now; what users asked to remember is kept all the same.
        """
        ...


class Reranker(Protocol):
    """Puts what a search found in another order."""

    @property
    def id(self) -> str:
        """Names the model; receipts show it."""
        ...

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return how well each text answers a query, from 0 to 1; the best comes first.

        Raises:
            ModelUnavailable: the model cannot be used now; the order stays, and the result says so.
        """
        ...


class Redactor(Protocol):
    """Finds what tells of a person in a text; asked beside the built-in detectors, which go by form alone."""

    def find(self, text: str) -> Sequence[tuple[int, int, str]]:
        """Return (start, end, kind) of spans in code points, such as ``(0, 9, "person")``.

        The kind is lower-case letters and underscores, and becomes the marker: ``[PERSON]``. A marker is not found
        again. Asked before anything is stored, for every text of a write, one after the other.

        Raises:
            ModelUnavailable: the model cannot be used now; then nothing is stored.
        """
        ...


class TokenCounter(Protocol):
    """Counts tokens as some model would."""

    @property
    def name(self) -> str:
        """Stands in every compile receipt."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens, 0 for empty text."""
        ...
