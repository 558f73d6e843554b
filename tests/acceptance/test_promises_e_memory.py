"""A memory is text, an embedding and metadata in one file, and comes back as it went in."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from outcomes import kept

from keepward import Memory


@pytest.mark.promise("E1")
def test_a_store_is_one_sqlite_file_and_its_number(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("single") as mem:
        kept(mem.remember("The kiln is fired on Mondays", tier="archival"))
        path = Path(mem.path)
    assert {each.name for each in path.parent.glob(f"{path.name}*")} == {path.name, f"{path.name}.id"}
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.promise("E3")
def test_memory_has_text_embedding_metadata_or_reports_a_missing_embedding(
    opened: Callable[..., Memory],
) -> None:
    for name, choice, waiting in (("all", "hashed", 0), ("two", None, 1)):
        with opened(name, embedder=choice) as mem:
            memory = kept(mem.remember("The kiln is fired on Mondays", tier="archival", metadata={"n": 1}))
            assert (memory.text, memory.metadata) == ("The kiln is fired on Mondays", {"n": 1})
            assert mem.status()["vectors_pending"] == waiting


@pytest.mark.promise("E6")
def test_id_is_a_uuid_and_foreign_ids_find_memories(mem: Memory) -> None:
    made = [kept(mem.remember(f"The kiln number {n} is red", tier="archival", aliases=[f"old-{n}"])) for n in (1, 2)]
    assert {UUID(each.id).version for each in made} == {7}
    assert made[0].id != made[1].id
    assert [mem.get(f"old-{n}").id for n in (1, 2)] == [each.id for each in made]


@pytest.mark.promise("E7")
def test_the_text_of_a_memory_is_stored_to_the_letter(mem: Memory) -> None:
    text = "Grüße an 茶 🍵:\n\ta kiln,  two spaces, and a “quote”"
    assert mem.get(kept(mem.remember(text, tier="archival")).id).text == text


@pytest.mark.promise("E8", "E22")
def test_vector_length_is_part_of_the_model_name(opened: Callable[..., Memory]) -> None:
    with opened("length", embedder="hashed") as mem:
        kept(mem.remember("The kiln is fired on Mondays", tier="archival"))
        stated = mem.status()["embedder"]
        with closing(sqlite3.connect(mem.path)) as store:
            units, size = store.execute("SELECT units, length(vectors) FROM features").fetchone()
    # A head of eight bytes; one byte a number and four for their common step.
    assert int(stated.rpartition(":")[2]) == (size - 8) // units - 4 == 384


@pytest.mark.promise("E25")
def test_store_opens_by_text_path_or_url(opened: Callable[..., Memory], tmp_path: Path) -> None:
    config = tmp_path / "config-of-paths"
    path = tmp_path / "by-path.db"
    with Memory.open(path, config_dir=config, embedder=None) as mem:
        made = kept(mem.remember("The kiln is red", tier="archival"))
    for place in (path, str(path), f"sqlite:///{path}"):
        with Memory.open(place, config_dir=config, embedder=None, create=False) as mem:
            assert mem.get(made.id) == made
