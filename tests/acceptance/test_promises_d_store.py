"""The store, its models, its tenants and its edges (promises D3-D4, D7, D11-D14, D19, D22-D26, D35-D37, D42-D44)."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from outcomes import held, kept

import keepward
from keepward import Actor, Memory, ModelUnavailable, NewerSchema, NotFound
from support.ids import CountingIds

SOURCE = Path(keepward.__file__).parent


class Meanings:
    """An embedder that knows three meanings, whatever the words, and can be switched off."""

    id, dim = "meanings:64", 64
    _WORDS = (("ship", "boat", "vessel", "ferry"), ("price", "cost", "euros"), ("crane", "hoist"))

    def __init__(self) -> None:
        self.on = True

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if not self.on:
            raise ModelUnavailable("the model is being mended")
        rows = np.array([self._row(text.lower()) for text in texts], np.float32).reshape(len(texts), 64)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _row(self, text: str) -> np.ndarray:
        known = [n for n, words in enumerate(self._WORDS) if any(word in text for word in words)]
        # What has none of the meanings points somewhere of its own.
        seeds = known or [zlib.crc32(text.encode())]
        return np.sum([np.random.default_rng(seed).standard_normal(64) for seed in seeds], axis=0)


@pytest.mark.promise("D23", "B52", "Z33")
def test_memory_written_without_embedder_is_later_found_by_meaning(
    opened: Callable[..., Memory],
) -> None:
    model = Meanings()
    with opened("mended", embedder=model, actor=Actor.operator()) as owner:
        mem = owner.as_actor(Actor.agent())
        model.on = False
        kept(mem.remember("The ferry leaves at six", tier="archival"))
        assert mem.status()["vectors_pending"] == 1
        found = mem.recall("when does the ferry leave")
        assert [hit.why for hit in found] == [("words",)]
        assert any("unavailable" in note for note in found.notes)
        model.on = True
        assert owner.reindex() == 1
        assert [hit.why for hit in mem.recall("any vessel")] == [("meaning",)]


@pytest.mark.promise("D12", "D13", "D43", "D44")
def test_handle_is_built_from_a_path_and_given_dependencies(
    opened: Callable[..., Memory],
) -> None:
    ids = CountingIds()
    with opened("made", embedder=Meanings(), ids=ids, tenant="acme") as mem:
        assert mem.status()["embedder"] == "meanings:64"
        made = kept(mem.remember("The ferry leaves at six", tier="archival"))
        assert made.id.endswith("-000000000001")
        assert mem.tenant == "acme"


@pytest.mark.promise("D14", "D42")
def test_every_public_name_can_be_imported() -> None:
    assert [name for name in keepward.__all__ if not hasattr(keepward, name)] == []
    assert {"Memory", "Record", "Tier", "Access", "Proposal", "Committed", "Quarantined", "Refused"} <= set(
        keepward.__all__
    )


@pytest.mark.promise("D11", "D24", "D26", "D43")
def test_no_module_outside_the_stores_speaks_to_a_database() -> None:
    talking = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        # The drill attacks a copy of the file from outside, as a thief would; an import reads files of other programs.
        if not {"storage", "drill"} & set(path.parts)
        and path.name != "sqlite_file.py"
        and any(word in path.read_text("utf-8") for word in ("sqlite3.connect", ".execute(", "executescript"))
    ]
    assert talking == []


@pytest.mark.promise("D22")
def test_fresh_store_records_its_schema_and_refuses_newer_ones(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("dated") as mem:
        kept(mem.remember("The ferry leaves at six"))
        schema = mem.status()["schema"]
    with sqlite3.connect(tmp_path / "dated.db") as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (schema,)
        assert raw.execute("SELECT max(number) FROM migrations").fetchone() == (schema,)
        raw.execute(f"PRAGMA user_version = {schema + 1}")
    raw.close()
    with pytest.raises(NewerSchema):
        opened("dated")


@pytest.mark.promise("D35", "D36")
def test_a_tenants_memories_are_another_tenants_nothing(owner: Memory) -> None:
    ours, theirs = owner.at(tenant="ours"), owner.at(tenant="theirs")
    made = kept(ours.remember("Liquorice for the keeper", key="keeper", aliases=["old-7"]))
    held(ours.as_actor(Actor.agent()).remember("Liquorice, perhaps", tier="archival", confidence=0.1))
    context, commit = ours.context("what does the keeper like"), ours.log()[0].commit
    shown: list[object] = [
        theirs.list_memories(include_ended=True),
        list(theirs.recall("liquorice keeper")),
        theirs.context("what does the keeper like").text,
        theirs.snapshot().text,
        theirs.log(),
        theirs.pending(state="all"),
        theirs.diff(0),
        list(theirs.journal()),
        theirs.status()["live"],
    ]
    assert shown == [[], [], "", "", [], [], [], [], 0]
    for ask in (
        lambda: theirs.get(made.id),
        lambda: theirs.get("old-7"),
        lambda: theirs.history(made.id),
        lambda: theirs.revise(made.id, "No", reason="malice"),
        lambda: theirs.show(commit.id),
        lambda: theirs.rollback(commit.id),
        lambda: theirs.receipt(context.receipt.id),
        lambda: theirs.replay(context.receipt.id),
    ):
        with pytest.raises(NotFound):
            ask()
    assert kept(theirs.remember("Liquorice for the keeper", key="keeper")).version == 1
