"""Reindexing: what an older release or another embedder left is found, and becomes what a new write would be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from outcomes import kept

from keepward import Actor, Memory
from keepward.ports.store import Features


def features_of(mem: Memory) -> dict[str, Features]:
    return {indexed.record.text: indexed.features for indexed in mem._engine.store.indexed("default")}


def left_by_an_older_release(mem: Memory) -> None:
    """Give every memory terms of a layout that nobody reads any more."""
    stored = list(mem._engine.store.indexed("default"))
    with mem._engine.store.write() as writer:
        writer.put_features(
            "default",
            {each.record.id: replace(each.features, terms=b"\x01" + each.features.terms[1:]) for each in stored},
            {each.record.id: each.record.version for each in stored},
        )


def test_what_an_older_release_indexed_is_found_by_its_words(opened: Callable[..., Memory]) -> None:
    with opened("old") as mem:
        kept(mem.remember("The ferry leaves at six", tier="archival"))
        left_by_an_older_release(mem)
    with opened("old") as mem:
        assert [hit.memory.text for hit in mem.recall("ferry")] == ["The ferry leaves at six"]


def test_reindex_updates_rows_of_an_older_release_once(opened: Callable[..., Memory]) -> None:
    with opened("old", actor=Actor.operator()) as mem:
        kept(mem.remember("The ferry leaves at six", tier="archival"))
        left_by_an_older_release(mem)
        assert [mem.reindex(), mem.reindex()] == [1, 0]


def test_reindexed_message_has_its_original_vectors(opened: Callable[..., Memory]) -> None:
    told = [("Ana", "Where do you live now?"), ("Ben", "In Porto, near the river")]
    fields = {"tier": "episodic", "kind": "event", "session": "talk"}
    with opened("talk", actor=Actor.operator()) as mem:
        for speaker, text in told:
            kept(mem.remember(text, speaker=speaker, **fields))
        before = features_of(mem)
        left_by_an_older_release(mem)
        mem.reindex()
        assert features_of(mem) == before
