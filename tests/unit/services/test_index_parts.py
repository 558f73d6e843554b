"""A cold start takes memories in by parts: all are found, and no part is larger than it may be."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from keepward.core.query import Filter
from keepward.ports.index_parts import IndexedState
from keepward.ports.store import IndexedMemory
from keepward.retrieval import tokenizer
from keepward.retrieval.index import Index, Query
from keepward.services.search import index_cache as engine
from support.indexed import indexed_memory


def profile(n: int) -> IndexedMemory:
    name = f"01920000-0000-7000-8000-{n:012x}"
    return indexed_memory(id=name, arrival=n, position=n, created_at=n, trust=3, terms=tokenizer.pack(["tea"]))


class Store:
    """What a cold start asks of a store: ten memories, of which the third is retired."""

    def __init__(self) -> None:
        self.broken_at: int | None = None
        self.asked: list[int] = []

    def indexed_state(self, tenant):
        return IndexedState(seq=1, hash=b"", erasures=0)

    def read_snapshot(self, tenant):
        return nullcontext()

    def reindexed(self, tenant):
        return ""

    def index_files(self):
        return None

    def profiles(self, tenant, *, after):
        self.asked.append(after)
        for n in range(after + 1, 11):
            if n == self.broken_at:
                raise OSError("the disk gave an error")
            yield profile(n).fields.id, None if n == 3 else profile(n)


@pytest.fixture
def store(monkeypatch) -> Store:
    monkeypatch.setattr(engine, "_READ_BATCH", 4)
    return Store()


def found(index: Index) -> set[str]:
    query = Query(text="tea", terms=("tea",))
    return {scored.id for scored in index.search(query, Filter(scopes=()), 20)}


def test_every_part_is_found(store):
    index = engine.IndexCache().current(store, "default")
    assert found(index) == {profile(n).fields.id for n in range(1, 11) if n != 3}


def test_no_part_is_larger_than_it_may_be(store, monkeypatch):
    sizes = []
    apply = Index.apply
    monkeypatch.setattr(
        Index, "apply", lambda self, added, *rest: (sizes.append(len(added)), apply(self, added, *rest))
    )
    engine.IndexCache().current(store, "default")
    assert sizes == [3, 4, 2]


def test_a_cold_start_that_fails_goes_on_where_it_stopped(store):
    indexes = engine.IndexCache()
    store.broken_at = 7
    with pytest.raises(OSError, match="disk"):
        indexes.current(store, "default")
    store.broken_at = None
    assert found(indexes.current(store, "default")) == {profile(n).fields.id for n in range(1, 11) if n != 3}
    assert store.asked == [0, 4]


def test_least_recently_searched_tenants_leave_memory_and_are_reloaded(store):
    one = engine.IndexCache().current(store, "ada").nbytes
    indexes = engine.IndexCache(max_bytes=2 * one)
    store.asked.clear()
    for tenant in ("ada", "bob", "ada", "eve"):
        indexes.current(store, tenant)
    before = len(store.asked)
    kept = [indexes.current(store, tenant) for tenant in ("ada", "eve")]
    assert (before, len(store.asked), len(kept)) == (3, 3, 2)
    assert found(indexes.current(store, "bob")) == found(kept[0])
    assert len(store.asked) == 4
