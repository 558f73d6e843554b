"""How recall by words ranks (promises A73-A76)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from outcomes import kept

from keepward import Memory


@pytest.fixture
def words(opened: Callable[..., Memory]) -> Iterator[Memory]:
    """A store without an embedder."""
    with opened("words", embedder=None) as mem:
        yield mem


def ranked(mem: Memory, query: str) -> list[str]:
    return [hit.memory.text for hit in mem.recall(query)]


@pytest.mark.promise("A73")
def test_memory_with_more_words_of_the_query_ranks_higher(words: Memory) -> None:
    texts = [
        "yellow ferry harbour lantern",
        "yellow ferry harbour anchor",
        "yellow ferry barrel anchor",
        "yellow sail mast rope",
    ]
    for text in reversed(texts):
        kept(words.remember(text, tier="archival"))
    hits = list(words.recall("yellow ferry harbour lantern"))
    assert [hit.memory.text for hit in hits] == texts
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]
    scores = [hit.score for hit in hits]
    assert scores == sorted(set(scores), reverse=True)


@pytest.mark.promise("A74")
def test_the_exact_phrase_outranks_the_same_words_among_others(words: Memory) -> None:
    phrase = "the keeper of the north light"
    scattered = "a light came from the north and blinded nobody but the old keeper asleep in a boat by the pier"
    kept(words.remember(phrase, tier="archival"))
    kept(words.remember(scattered, tier="archival"))
    assert ranked(words, "keeper of the north light") == [phrase, scattered]


@pytest.mark.promise("A75")
def test_between_memories_with_the_same_words_the_closer_text_wins(words: Memory) -> None:
    close = "red crane on quay seven"
    far = "red crane on quay seven which was bought used from a yard in Bergen and repaired twice"
    kept(words.remember(close, tier="archival"))
    kept(words.remember(far, tier="archival"))
    assert ranked(words, "red crane on quay seven") == [close, far]


@pytest.mark.promise("A76", "B53", "E4")
def test_without_a_shared_word_nothing_is_found(words: Memory) -> None:
    kept(words.remember("The ferry leaves at six", tier="archival"))
    found = words.recall("quantum chromodynamics")
    assert list(found) == []
    assert found.used == ("text",)
    assert any("words alone" in note for note in found.notes)


@pytest.mark.promise("A73", "E32")
def test_equal_scores_have_a_fixed_order(words: Memory) -> None:
    for n in range(5):
        kept(words.remember(f"buoy {n}", tier="archival"))
    assert ranked(words, "buoy") == ranked(words, "buoy") == [f"buoy {n}" for n in (4, 3, 2, 1, 0)]
