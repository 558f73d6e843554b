"""Vectors: stored, given, compared and computed again."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from outcomes import committed_record

from keepward import Actor, Memory, ModelUnavailable
from keepward.ports.store import Features

# --- Meaning as vectors: stored, searched, and done without


#: Degrees at which a text stands in a plane of a larger space; the words with a mark ask for neighbours.
PLACES = {"apple": 0, "pear": 20, "hammer": 90, "saw": 120, "fruit?": 2, "tool?": 100}


EAST = np.ones(64, dtype=np.float32) / 8
NORTH = EAST * np.where(np.arange(64) % 2, -1, 1).astype(np.float32)


class Compass:
    """An embedder whose answers are known."""

    id = "compass:64"
    dim = 64
    cosine_scale = 0.0, 0.07

    def __init__(self) -> None:
        self.broken = False
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.broken:
            raise ModelUnavailable("the compass is lost")
        angles = [next((math.radians(at) for word, at in PLACES.items() if word in text), math.pi) for text in texts]
        return np.array([math.cos(a) * EAST + math.sin(a) * NORTH for a in angles], dtype=np.float32)


@pytest.fixture
def compass() -> Compass:
    return Compass()


def stock(memory: Memory) -> list[str]:
    return [committed_record(memory.remember(text, tier="archival")).id for text in ("hammer", "pear", "saw", "apple")]


@pytest.mark.promise("B4", "B49", "B50", "B51", "D3", "D7", "D19")
def test_nearest_vectors_come_first_without_a_common_word(opened: Callable[..., Memory], compass: Compass) -> None:
    with opened("shop", embedder=compass) as memory:
        stock(memory)
        found = memory.recall("fruit?", limit=2)
        assert [hit.memory.text for hit in found] == ["apple", "pear"]
        assert "vector" in found.used
        assert [hit.memory.text for hit in memory.recall("tool?")][:2] == ["hammer", "saw"]


@pytest.mark.promise("B50", "E23")
def test_the_order_of_neighbours_survives_reopening(opened: Callable[..., Memory], compass: Compass) -> None:
    with opened("shop", embedder=compass) as memory:
        stock(memory)
        before = [hit.memory.id for hit in memory.recall("fruit?")]
    asked = compass.calls
    with opened("shop", embedder=compass) as memory:
        assert [hit.memory.id for hit in memory.recall("fruit?")] == before
    assert compass.calls == asked + 1


@pytest.mark.promise("B49")
def test_edited_memory_ranks_by_its_new_text(opened: Callable[..., Memory], compass: Compass) -> None:
    with opened("shop", embedder=compass) as memory:
        hammer, pear, *_ = stock(memory)
        committed_record(memory.revise(pear, "saw blade", reason="mixed up"))
        committed_record(memory.forget(hammer, reason="sold"))
        assert [hit.memory.text for hit in memory.recall("fruit?", limit=1)] == ["apple"]
        tools = memory.recall("tool?")
        assert {hit.memory.text for hit in tools.hits[:2]} == {"saw", "saw blade"}
        assert hammer not in {hit.memory.id for hit in tools}


@pytest.mark.promise("B47")
def test_embedder_of_any_dimension_can_be_plugged_in(opened: Callable[..., Memory], compass: Compass) -> None:
    class Reference(Compass):
        id = "reference:1536"
        dim = 1536

        def embed(self, texts: Sequence[str]) -> Any:
            return np.hstack([super().embed(texts), np.zeros((len(texts), 1472), dtype=np.float32)])

    with opened("wide", embedder=Reference()) as memory:
        stock(memory)
        assert memory.status()["embedder"] == "reference:1536"
        assert memory.recall("fruit?")[0].memory.text == "apple"


@pytest.mark.promise("B48")
def test_each_memory_adds_one_vector_row_under_its_own_id(
    opened: Callable[..., Memory], compass: Compass, tmp_path: Path
) -> None:
    with opened("shop", embedder=compass) as memory:
        ids = stock(memory)
        with sqlite3.connect(tmp_path / "shop.db") as db:
            rows = db.execute(
                "SELECT id, units, length(vectors) > 0 FROM features WHERE model = 'compass:64'"
            ).fetchall()
        db.close()
    assert sorted(rows) == sorted((name, 1, 1) for name in ids)


@pytest.mark.parametrize(
    "answer",
    [np.full((1, 64), np.nan), np.zeros((1, 64)), np.ones((1, 63)), np.ones((0, 64)), np.ones(64), None, "vector"],
    ids=["not finite", "zero", "other dimension", "none for a text", "flat", "None", "text"],
)
def test_embedder_with_a_wrong_output_counts_as_unavailable(
    opened: Callable[..., Memory], compass: Compass, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(Compass, "embed", lambda *_: answer)
    with opened("shop", embedder=compass) as memory:
        committed_record(memory.remember("hammer", tier="archival"))
        found = memory.recall("hammer")
        assert ([hit.memory.text for hit in found], found.used) == (["hammer"], ("text",))
        assert "did not return 64 finite numbers" in found.notes[0]
        assert memory.status()["vectors_pending"] == 1


def test_embedder_that_raises_counts_as_unavailable(
    opened: Callable[..., Memory], compass: Compass, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("cannot embed hammer")

    monkeypatch.setattr(Compass, "embed", fail)
    with opened("shop", embedder=compass) as memory:
        committed_record(memory.remember("hammer", tier="archival"))
        found = memory.recall("hammer")
        assert ([hit.memory.text for hit in found], memory.status()["vectors_pending"]) == (["hammer"], 1)
        assert f"the embedder {compass.id} raised RuntimeError" in found.notes[0]
        assert "cannot embed" not in found.notes[0]


@pytest.mark.promise("B52", "B53")
def test_failing_embedder_leaves_saving_and_word_search_with_notice(
    opened: Callable[..., Memory], compass: Compass
) -> None:
    compass.broken = True
    with opened("shop", embedder=compass) as memory:
        stock(memory)
        found = memory.recall("hammer")
        assert [hit.memory.text for hit in found] == ["hammer"]
        assert found.used == ("text",)
        assert any("words alone" in note for note in found.notes)
        assert memory.status()["vectors_pending"] == 4
        compiled = memory.context("hammer")
        assert "hammer" in compiled.text
        assert any("words alone" in each["detail"] for each in compiled.receipt.as_dict()["reasons"])


@pytest.mark.promise("B54")
def test_a_context_finds_by_meaning_too(opened: Callable[..., Memory], compass: Compass) -> None:
    from keepward import Policy

    with opened("shop", embedder=compass, policy=Policy(max_items=1)) as memory:
        stock(memory)
        assert memory.context("fruit?").text.rpartition(" (")[0].endswith("[fact] apple")


# --- Reindexing: what an older release or another embedder left is found, and becomes what a new write would be


def features_of(mem: Memory) -> dict[str, Features]:
    return {record.text: features for record, features in mem._engine.store.indexed("default")}


def left_by_an_older_release(mem: Memory) -> None:
    """Give every memory terms of a layout that nobody reads any more."""
    stored = list(mem._engine.store.indexed("default"))
    with mem._engine.store.write() as writer:
        writer.put_features(
            "default",
            {record.id: replace(found, terms=b"\x01" + found.terms[1:]) for record, found in stored},
            {record.id: record.version for record, _ in stored},
        )


def test_what_an_older_release_indexed_is_found_by_its_words(opened: Callable[..., Memory]) -> None:
    with opened("old") as mem:
        committed_record(mem.remember("The ferry leaves at six", tier="archival"))
        left_by_an_older_release(mem)
    with opened("old") as mem:
        assert [hit.memory.text for hit in mem.recall("ferry")] == ["The ferry leaves at six"]


def test_reindex_updates_rows_of_an_older_release_once(opened: Callable[..., Memory]) -> None:
    with opened("old", actor=Actor.operator()) as mem:
        committed_record(mem.remember("The ferry leaves at six", tier="archival"))
        left_by_an_older_release(mem)
        assert [mem.reindex(), mem.reindex()] == [1, 0]


def test_reindexed_message_has_its_original_vectors(opened: Callable[..., Memory]) -> None:
    told = [("Ana", "Where do you live now?"), ("Ben", "In Porto, near the river")]
    fields = {"tier": "episodic", "kind": "event", "session": "talk"}
    with opened("talk", actor=Actor.operator()) as mem:
        for speaker, text in told:
            committed_record(mem.remember(text, speaker=speaker, **fields))
        before = features_of(mem)
        left_by_an_older_release(mem)
        mem.reindex()
        assert features_of(mem) == before
