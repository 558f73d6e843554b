"""An index that begins with a file and applies changes returns exactly what a fresh index of the same entries returns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keepward.core.query import Filter
from keepward.ports.index_parts import DamagedIndex, IndexedState
from keepward.ports.store import IndexedMemory
from keepward.retrieval import tokenizer
from keepward.retrieval.index import Index, IndexHit, Query
from keepward.storage.index_files import IndexFile, IndexFiles
from keepward.storage.seals import Sealer
from support.indexed import indexed_memory

DIM = 96
STATE = IndexedState(seq=7, hash=b"\7" * 32, erasures=0)
WORDS = [
    "tea",
    "harbour",
    "lamp",
    "shelf",
    "Ana",
    "Ben",
    "quay",
    "ferry",
    "crane",
    "berth",
    "invoice",
    "garden",
    "oven",
    "bicycle",
    "cellar",
]
NOW = 1_000_000


@dataclass(frozen=True)
class World:
    """Entries by number and version, the same on every run."""

    seed: int

    def row(self, number: int, version: int, **changed: Any) -> IndexedMemory:
        source = random.Random(f"{self.seed} {number} {version}")
        words = [source.choice(WORDS) for _ in range(source.randint(1, 8))] + [f"w{number % 40}"]
        units = np.random.default_rng(number * 1_000 + version).normal(size=(source.randint(1, 2), DIM))
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        given: dict[str, Any] = {
            "id": f"01920000-0000-7000-8000-{number:012x}" if number % 9 else f"name {number}",
            "version": version,
            "arrival": number,
            "position": number * 10 + version,
            "scope": source.choice(["/", "/users/ana", "/users/ben"]),
            "kind": source.choice(["fact", "event"]),
            "subject": source.choice([None, "Ana", f"person {number}"]),
            "session": source.choice([None, "s1", f"s{number % 5}"]),
            "speaker": source.choice([None, "user", "Ben"]),
            "tags": tuple(source.sample(["a", "b", "c"], source.randint(0, 2))),
            "trust": source.randint(1, 7),
            "sensitive": source.random() < 0.1,
            "importance": int(source.random() * 10_000),
            "reinforced_at": source.choice([None, 5, NOW]),
            "created_at": number,
            "expires_at": source.choice([None, None, NOW - 1, NOW + 50]),
            "terms": tokenizer.pack(words, [word.lower() for word in words if word[0].isupper()]),
        }
        # What was never confirmed does not decay here.
        lasts = given["reinforced_at"] is None
        given |= {"stability": "permanent", "reinforced_at": 0} if lasts else {"stability": "stable"}
        if source.random() < 0.9:
            given |= {"model": source.choice(["m", "m", "other"]), "vectors": units}
            given["recipe"] = source.choice(["old", *vector_index_versions()])
        return indexed_memory(**given | changed)


def vector_index_versions() -> tuple[str, ...]:
    from keepward.retrieval.chunking import CURRENT_VERSIONS

    return CURRENT_VERSIONS


@pytest.fixture
def files(tmp_path: Path) -> IndexFiles:
    return IndexFiles(tmp_path / "m.db.index", "store", Sealer(b"k" * 32))


def stored(files: IndexFiles, index: Index, *, spare: int = 8) -> tuple[Index, IndexFile]:
    """Write an index, and begin again with the file."""
    facts = {"spaces": index.spaces}
    files.write("t", "r", STATE, facts, index.parts(), entries=len(index), spare=spare, is_present=lambda: True)
    file = files.open("t", "r", lambda file: file.state == STATE)
    assert file is not None
    return Index.from_parts(file.parts, [tuple(space) for space in file.facts["spaces"]]), file


def asked(index: Index) -> list[list[IndexHit]]:
    """Ask everything that a search can be asked for."""
    found = []
    texts = {"tea at the quay": ("tea", "quay"), "who has the lamp?": ("lamp", "ana"), "w3": ("w3", "garden")}
    filters = [
        Filter(scopes=(), now=NOW, include_sensitive=True),
        Filter(scopes=("/", "/users/ana"), now=NOW, include_sensitive=False),
        Filter(scopes=(), now=NOW + 60, tags=("a",), min_trust=3, include_sensitive=True),
        Filter(scopes=(), now=NOW, subject="Ana", include_sensitive=True),
        Filter(scopes=(), now=NOW, session="s1", min_importance=0.3, include_sensitive=True),
        Filter(scopes=(), now=NOW, include_sensitive=True, ids=frozenset({"name 9", "nobody"})),
    ]
    for number, (text, terms) in enumerate(texts.items()):
        vector = np.random.default_rng(number).normal(size=DIM).astype(np.float32)
        vector /= np.linalg.norm(vector)
        for allowed in filters:
            for query in (
                Query(text=text, terms=terms),
                Query(text=text, terms=terms, vector=vector, vector_model="m"),
            ):
                told = index.search(
                    query, allowed, 12, texts=lambda ids: {name: f"{name} tea lamp" for name in ids}, related=True
                )
                found.append(told)
                found.append([index.count_visible(allowed), index.count_without_vector(query, allowed)])
    found.append(sorted(index.ids_to_embed(query)))
    return found


def changes(
    world: World, source: random.Random, live: dict[int, int]
) -> Iterator[tuple[list[IndexedMemory], list[str]]]:
    """Yield changes: new versions, new entries and removals; ``live`` has the version of each entry."""
    for _ in range(3):
        removed = source.sample(sorted(live), min(5, len(live)))
        added = source.sample(range(120), 12)
        ended = [world.row(number, live.pop(number)).fields.id for number in removed]
        for number in added:
            live[number] = live.get(number, 0) + 1
        yield [world.row(number, live[number]) for number in added], ended


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_a_stored_index_with_changes_is_exactly_a_fresh_one(files: IndexFiles, seed: int) -> None:
    world, source = World(seed), random.Random(seed)
    live = dict.fromkeys(source.sample(range(120), 60), 1)
    index = Index()
    index.apply([world.row(number, version) for number, version in live.items()])
    for spare in (0, 60, 60):
        index, _ = stored(files, index, spare=spare)
        for added, removed in changes(world, source, live):
            index.apply(added, removed)
            fresh = Index()
            fresh.apply([world.row(number, version) for number, version in sorted(live.items())])
            assert len(index) == len(live)
            assert asked(index) == asked(fresh)


def test_an_empty_index_can_be_stored(files: IndexFiles) -> None:
    index, _ = stored(files, Index())
    index.apply([World(1).row(1, 1)])
    fresh = Index()
    fresh.apply([World(1).row(1, 1)])
    assert asked(index) == asked(fresh)


def test_a_file_has_nothing_of_removed_entries(files: IndexFiles) -> None:
    index = Index()
    index.apply([World(2).row(number, 1) for number in range(40)])
    index, _ = stored(files, index)
    row = World(2).row(50, 1, kind="event", subject="Zacharias Q", session="secret-session", tags=("hidden",))
    index.apply([row])
    _, file = stored(files, index)
    assert all(
        word in file.path.read_bytes()
        for word in (b"Zacharias Q", b"secret-session", b"hidden", row.fields.id.encode())
    )
    index.apply([], [row.fields.id])
    _, after = stored(files, index)
    assert not any(
        word in after.path.read_bytes()
        for word in (b"Zacharias Q", b"secret-session", b"hidden", row.fields.id.encode())
    )


@pytest.mark.slow
def test_each_changed_byte_is_noticed_or_unused(files: IndexFiles) -> None:
    """A search of a file with one changed byte returns the same, or the file is refused."""
    index = Index()
    index.apply([World(3).row(number, 1) for number in range(60)])
    index, file = stored(files, index)
    expected, content = asked(index), file.path.read_bytes()
    noticed = 0
    for at in range(7, len(content), 6_007):
        bent = bytearray(content)
        bent[at] ^= 0x41
        file.path.write_bytes(bytes(bent))
        again = files.open("t", "r", lambda file: file.state == STATE)
        if again is None:
            noticed += 1
            continue
        try:
            assert asked(Index.from_parts(again.parts, [tuple(space) for space in again.facts["spaces"]])) == expected
        except DamagedIndex:
            noticed += 1
    assert noticed > 5


@pytest.mark.parametrize(
    ("store", "key", "tenant", "made_by"),
    [("other", b"k", "t", "r"), ("store", b"x", "t", "r"), ("store", b"k", "t", "later"), ("store", None, "t", "r")],
)
def test_a_file_of_another_store_key_or_release_is_not_opened(
    files: IndexFiles, tmp_path: Path, store: str, key: bytes | None, tenant: str, made_by: str
) -> None:
    stored(files, Index())
    other = IndexFiles(tmp_path / "m.db.index", store, Sealer(None if key is None else key * 32))
    assert other.open(tenant, made_by, lambda _: True) is None
