"""Protocols of models: embedders, summarisers, extractors, rerankers, redactors and tokenizers."""

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
        """Names model, weights and dimension. Vectors are comparable if and only if ids are equal."""

    @property
    def dim(self) -> int:
        """Number of components of a vector."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim), rows L2-normalised.

        The same text gives the same bytes in every batch.

        Raises:
            ModelUnavailable: the model cannot be used now.
        """


class QueryEmbedder(Embedder, Protocol):
    """An embedder that gives a query another vector than a document, for example by a prefix.

    ``embed_query`` is optional: an embedder without it embeds queries with ``embed``.
    """

    def embed_query(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries, as ``embed`` returns those of documents.

        Raises:
            ModelUnavailable: the model cannot be used now.
        """


class Summarizer(Protocol):
    """Summarises several texts."""

    @property
    def id(self) -> str:
        """Names the model; the receipts of runs record it."""

    def summarize(self, texts: Sequence[str], *, limit: int) -> str:
        """Return a summary of the texts, in their order, in at most ``limit`` characters, without new statements.

        Raises:
            ModelUnavailable: the model cannot be used now.
        """


class Extractor(Protocol):
    """Extracts long-lived facts from a conversation."""

    @property
    def id(self) -> str:
        """Names the model."""

    def extract(self, turns: Sequence[Turn]) -> Sequence[Fact]:
        """Return the facts of a conversation, in the order of its messages; each quotes its message.

        Called outside of any transaction, with at most 100 messages.

        Raises:
            ModelUnavailable: the model cannot be used now. Facts that users asked to remember are stored all the same.
        """


class Reranker(Protocol):
    """Reorders the results of a search."""

    @property
    def id(self) -> str:
        """Names the model; receipts record it."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return how well each text answers a query, from 0 to 1; the highest comes first.

        Raises:
            ModelUnavailable: the model cannot be used now. The order stays, and the result reports it.
        """


class Redactor(Protocol):
    """Finds personal data in a text, in addition to the built-in detectors, which match patterns only."""

    def find(self, text: str) -> Sequence[tuple[int, int, str]]:
        """Return (start, end, kind) of spans in code points, such as ``(0, 9, "person")``.

        The kind is lower-case letters and underscores, and becomes the marker: ``[PERSON]``. Markers in a
        text are not searched again. Called before anything is stored, for every text of a write, one after the other.

        Raises:
            ModelUnavailable: the model cannot be used now; then nothing is stored.
        """


class TokenCounter(Protocol):
    """Counts the tokens of some model."""

    @property
    def name(self) -> str:
        """Names the tokenizer; every compile receipt records it."""

    def count(self, text: str) -> int:
        """Return the number of tokens, 0 for empty text."""
