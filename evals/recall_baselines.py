"""Honest baselines over the same items: nothing, the most recent, plain BM25, naive rank fusion.

Invariants
(1) A baseline sees what was told as one line each, ranks all it can, and packs lines by rank.
(2) Every order is total: ties go to what was told first, but for ``recent``, which goes by time alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from evals.recall_run import Answer, Pack
from evals.recall_sets import Conversation, Told
from keepward.ports.models import Embedder, TokenCounter
from keepward.services.search.features import query_vectors_of

#: Words; a character of a script without spaces is a word of its own.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")

Rank = Callable[[str], list[int]]


class Bm25:
    """Plain BM25 over lower-case words: no stemming, no stop words, no fields.

    Source: Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond".
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(_words(text)) for text in texts]
        lengths = [sum(each.values()) for each in counts]
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms = [k1 * (1 - b + b * length / mean) for length in lengths]
        self._k1 = k1
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, words in enumerate(counts):
            for word, times in words.items():
                self._postings.setdefault(word, []).append((place, times))

    def rank(self, query: str) -> list[int]:
        """Return the places of the texts that share a word with the query, best first."""
        found: dict[int, float] = {}
        for word in sorted(set(_words(query))):
            postings = self._postings.get(word, [])
            rarity = math.log(1 + (len(self._norms) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, times in postings:
                gain = rarity * times * (self._k1 + 1) / (times + self._norms[place])
                found[place] = found.get(place, 0.0) + gain
        return sorted(found, key=lambda place: (-found[place], place))


def fused(rankings: Sequence[Sequence[int]], *, k: int = 60) -> list[int]:
    """Return the places of all rankings by the sum of 1 / (k + rank), rank from 1.

    Source: Cormack, Clarke, Buettcher (2009), "Reciprocal Rank Fusion".
    """
    found: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            found[place] = found.get(place, 0.0) + 1 / (k + rank)
    return sorted(found, key=lambda place: (-found[place], place))


def pack(
    lines: Sequence[str], costs: Sequence[int], ranking: Sequence[int], budget: int, counter: TokenCounter
) -> tuple[list[int], str]:
    """Take lines by rank while their costs, in tokens, fit a budget together; one too long is passed over.

    Returns the places taken, best first, and the text, which counts no more than the budget.
    """
    taken: list[int] = []
    room = budget
    for place in ranking:
        if costs[place] <= room:
            taken.append(place)
            room -= costs[place]
    text = "\n".join(lines[place] for place in taken)
    # Costs need not add up for every counter.
    while taken and counter.count(text) > budget:
        taken.pop()
        text = "\n".join(lines[place] for place in taken)
    return taken, text


def rankers(told: Sequence[Told], embedder: Embedder | None) -> dict[str, Rank]:
    """Return the baselines by name; rank fusion only where there is an embedder."""
    lines = [each.line for each in told]
    words = Bm25(lines)
    newest = list(range(len(told)))[::-1]
    found: dict[str, Rank] = {"nothing": lambda _: [], "most recent": lambda _: newest, "BM25": words.rank}
    if embedder is not None:
        vectors = embedder.embed(lines)

        def near(query: str) -> list[int]:
            # Rounded: the last bits of a product depend on the machine.
            close = np.round(vectors @ query_vectors_of(embedder, [query])[0], 6)
            return [int(place) for place in np.argsort(-close, kind="stable")]

        found["rank fusion"] = lambda query: fused((words.rank(query), near(query)))
    return found


def answers(
    conversation: Conversation, *, embedder: Embedder | None, counter: TokenCounter, budgets: Sequence[int]
) -> Iterator[tuple[str, Answer]]:
    """Yield (baseline, answer) for every question that is scored."""
    told = conversation.told
    lines = [each.line for each in told]
    costs = [counter.count(f"{line}\n") for line in lines]
    ways = rankers(told, embedder)
    for asked in conversation.asked:
        if not asked.evidence:
            continue
        for name, rank in ways.items():
            ranking = rank(asked.text)
            packs = {}
            for budget in budgets:
                taken, text = pack(lines, costs, ranking, budget, counter)
                ids = tuple(told[place].id for place in taken)
                packs[budget] = Pack(ids=ids, text=text, tokens=counter.count(text))
            yield (
                name,
                Answer(
                    conversation=conversation.name,
                    question=asked.id,
                    ranked=tuple(told[place].id for place in ranking[:50]),
                    contexts=packs,
                ),
            )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
