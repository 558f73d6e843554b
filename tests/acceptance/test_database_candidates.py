"""Candidates that come from the database find and rank what an index in the process does, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from outcomes import committed_record

from keepward import Actor, Memory, Policy, status
from keepward.embedding.hashed import HashedEmbedder
from keepward.retrieval import chunking, columns
from keepward.services.reading import reindex
from keepward.services.search import database_candidates as gathering
from keepward.services.search import index_cache as engine_index
from keepward.storage import candidates
from support.clock import SteppingClock
from support.database import as_superuser

psycopg = pytest.importorskip("psycopg")
#: Each fills a store on a server.
pytestmark = pytest.mark.slow

QUERIES = (
    "what does Ana like",
    "home of Maria's manager",
    "the rent of the flat is",
    "who said lighthouse to the keeper",
    "ferry",
    "Could you draft a letter to the landlord?",
    "something that nobody has a word for",
)
NARROW: tuple[dict[str, Any], ...] = (
    {},
    {"include_sensitive": True},
    {"tags": ("harbour",)},
    {"kinds": ("fact",)},
    {"session": "talk-1"},
    {"subject": "ana"},
    {"min_importance": 0.6},
    {"purpose": "act"},
    {"limit": 3},
    {"where": {"reason": {"$gte": 2}}},
    {"within": "/agents"},
    {"until": "2000-01-01"},
)


class Pair(NamedTuple):
    """Two handles on one store: candidates from the process, and from the database."""

    process: Memory
    database: Memory


def answers(mem: Memory, query: str, **narrow: Any) -> list[Any]:
    return [(hit.memory.id, hit.score, hit.parts, hit.why) for hit in mem.recall(query, floor=0, **narrow)]


def assert_alike(pair: Pair, **narrow: Any) -> None:
    for query in QUERIES:
        assert answers(pair.database, query, **narrow) == answers(pair.process, query, **narrow), query


def fill(mem: Memory) -> None:
    committed_record(mem.remember("Maria's manager is Tomasz Wilk", tier="archival"))
    committed_record(mem.remember("Last year Wilk moved to Gdansk", tier="archival"))
    for year, rent in ((2024, "1,150"), (2026, "1,240")):
        text = f"The rent of the flat is {rent} euros a month"
        committed_record(mem.remember(text, tier="archival", occurred_at=datetime(year, 1, 1, tzinfo=UTC)))
    for n, like in enumerate(("tabs", "ferries", "blue tea", "the quay at night", "old maps")):
        given: dict[str, Any] = {"subject": "ana" if n % 2 else None, "metadata": {"reason": n}, "importance": n / 5}
        given["tags"] = ("harbour",) if n > 2 else ()
        committed_record(mem.remember(f"Ana likes {like} for reason {n}", tier="archival", **given))
    committed_record(mem.remember("Please always put the sum into the first line", tier="archival"))
    committed_record(
        mem.remember("Ana likes a medicine that is nobody's business", tier="archival", sensitivity="sensitive")
    )
    committed_record(
        mem.remember("Ana likes what a page of the web says about ferry prices", tier="archival", source="web")
    )
    committed_record(mem.at(scope="/agents/orion").remember("Orion likes the ferry to the lighthouse", tier="archival"))
    for talk in (1, 2):
        for n, said in enumerate(
            ("Where is the keeper?", "At the lighthouse.", "Since when?", "Since the ferry left.")
        ):
            spoken = {"tier": "episodic", "kind": "event", "stability": "stable", "session": f"talk-{talk}"}
            committed_record(mem.remember(f"{said} ({talk}/{n})", speaker="Ana" if n % 2 else "Ben", **spoken))


def opened(database: str, folder: Path, **given: Any) -> Memory:
    options = {"embedder": "hashed", "clock": SteppingClock(), "config_dir": folder / "config", **given}
    return Memory.open(database, actor=Actor.operator("olga"), **options)


class Dense:
    """Vectors like those of a model of meaning: without zeros, and all of them lean one way."""

    id, dim = "dense:1:64", 64

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim), rows L2-normalised."""
        dice = np.random.default_rng(5)
        made = HashedEmbedder(64).embed(texts) @ dice.normal(size=(64, 64)) + 0.6 * dice.normal(size=64)
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


each_kind = pytest.mark.parametrize("pair", ["hashed", Dense()], ids=["hashed", "dense"], indirect=True)


@pytest.fixture
def pair(
    request: pytest.FixtureRequest, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pair]:
    monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(gathering, "SMALL_SET_SIZE", 3)
    embedder = getattr(request, "param", "hashed")
    with (
        opened(database, tmp_path, policy=Policy(candidates="process"), embedder=embedder) as process,
        opened(database, tmp_path, policy=Policy(candidates="database"), embedder=embedder) as made,
    ):
        fill(process)
        made.reindex()
        yield Pair(process, made)


def stored_in(database: str) -> dict[str, list[Any]]:
    """Return what the tables of candidates hold."""
    with psycopg.connect(as_superuser(database)) as connection:
        return {
            name: sorted(connection.execute(f"SELECT {name}::text FROM {name} {name}".encode()).fetchall())
            for name in candidates.CANDIDATE_TABLES[1:]
        }


@pytest.mark.parametrize("narrow", NARROW, ids=lambda narrow: "-".join(narrow) or "all")
def test_both_ways_rank_alike(pair: Pair, narrow: dict[str, Any]) -> None:
    assert_alike(pair, **narrow)


@each_kind
def test_neither_search_finds_memories_of_an_invisible_scope(pair: Pair) -> None:
    for scope in ("/agents/orion", "/agents/vega"):
        assert_alike(Pair(*(each.at(scope=scope) for each in pair)))
    seen = [
        hit.memory.text for hit in pair.database.at(scope="/agents/vega").recall("ferry to the lighthouse", floor=0)
    ]
    assert not any(text.startswith("Orion") for text in seen)


def test_a_state_of_the_past_is_ranked_alike(pair: Pair) -> None:
    assert_alike(pair, as_of=12)
    assert pair.database.recall("ferry", as_of=12).candidates == "process"


@each_kind
def test_a_part_ranks_as_the_total_does(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """So few candidates that statistics of the whole matter: the best and its cosine are the same."""
    for name in ("MIN_VECTOR_HITS", "MIN_WORD_HITS"):
        monkeypatch.setattr(gathering, name, 2)
    for query in QUERIES[:5]:
        # Twice the limit is looked at, so that a small one makes a small part.
        best, due = (answers(each, query, limit=3) for each in (pair.database, pair.process))
        assert best[0][0] == due[0][0]
        assert best[0][2]["cosine"] == due[0][2]["cosine"]


def test_the_best_of_many_memories_are_found_among_few_candidates(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MIN_VECTOR_HITS", "MIN_WORD_HITS"):
        monkeypatch.setattr(gathering, name, 30)
    monkeypatch.setattr(candidates, "MAX_SCANNED_VECTORS", 20)
    places, things = ("pier", "mill", "attic", "yard"), ("rope", "oars", "paint", "lamp", "maps", "tools")
    for n in range(120):
        text = f"In the {places[n % 4]} box {n} holds {things[n % 6]} of boat {n // 6}"
        committed_record(pair.process.remember(text, tier="archival"))
    pair.database.reindex()
    shares = []
    for query in [f"which box holds {thing} of boat {n}" for n, thing in enumerate(things)] + [*QUERIES]:
        best, due = ({hit.memory.id for hit in mem.recall(query, limit=10)} for mem in pair[::-1])
        shares.append(len(best & due) / len(due))
    assert sum(shares) / len(shares) >= 0.95


def test_every_change_reaches_the_tables_with_its_commit(pair: Pair, database: str) -> None:
    mem = pair.database
    first = mem.recall("old maps").hits[0].memory.id
    mem.revise(first, "Ana likes new charts by now", reason="she said so")
    mem.forget(mem.recall("blue tea").hits[0].memory.id, reason="no longer")
    committed_record(mem.remember("Ana likes violins from Gdansk", tier="archival", scope="/agents/orion"))
    committed_record(mem.remember("a fact under a key", tier="archival", kind="state", key="note"))
    committed_record(mem.remember("the fact under that key, anew", tier="archival", kind="state", key="note"))
    mem.rollback(str(mem.log()[0].commit.seq - 1))
    assert_alike(pair)
    before = stored_in(database)
    pair.process.reindex()
    assert pair.process.status()["candidates"] != "database"
    assert not any(stored_in(database).values())
    mem.reindex()
    assert stored_in(database) == before


def test_nothing_of_an_erased_memory_is_left(pair: Pair, database: str) -> None:
    mem = pair.database
    before = stored_in(database)
    out = committed_record(mem.remember("The boat in the dry dock is the Quokka", tier="archival"))
    assert all(len(rows) > len(before[name]) for name, rows in stored_in(database).items())
    mem.erase(mem.plan_erase(out.id).digest, out.id)
    assert stored_in(database) == before
    assert mem.verify().ok


@pytest.mark.parametrize("name", candidates.CANDIDATE_TABLES[1:])
def test_verify_misses_candidates_that_were_deleted_by_hand(pair: Pair, database: str, name: str) -> None:
    assert pair.database.verify().ok
    with psycopg.connect(as_superuser(database)) as connection:
        connection.execute(f"DELETE FROM {name} WHERE arrival = (SELECT min(arrival) FROM {name})".encode())
    assert [fault.row for fault in pair.database.verify().faults] == ["candidates default"]


def test_another_embedder_is_searched_once_it_has_computed(pair: Pair, database: str, tmp_path: Path) -> None:
    given = {"embedder": HashedEmbedder(dim=128), "policy": Policy(candidates="database")}
    with opened(database, tmp_path, **given) as other:
        assert other.recall("old maps").used == ("text",)
        other.reindex()
        assert other.recall("old maps").used == ("text", "vector")
        with opened(database, tmp_path, **given | {"policy": Policy()}) as process:
            assert_alike(Pair(process, other))


def test_vectors_of_an_earlier_embedding_version_are_searched_until_replaced(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (chunking, columns, engine_index, reindex, status):
        monkeypatch.setattr(where, "CURRENT_VERSIONS", ("next", chunking.PROVIDED))
    monkeypatch.setattr(chunking, "EMBEDDING_VERSION", "next")
    assert pair.database.status()["vectors_pending"] == sum(pair.database.status()["by_tier"].values())
    assert_alike(pair)
    assert pair.database.reindex() == sum(pair.database.status()["by_tier"].values())
    assert pair.database.recall("old maps").candidates == "database"
    assert_alike(pair)


def test_an_index_leads_to_the_nearest_vectors(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_SCANNED_VECTORS", 10)
    pair.database.reindex()
    assert pair.database._context.store.missing_indexes("default") == []
    assert_alike(pair)
    assert_alike(pair, tags=("harbour",))


def test_auto_chooses_by_memory_count_and_receipts_report_it(database: str, tmp_path: Path) -> None:
    with opened(database, tmp_path, policy=Policy(process_limit=3)) as mem:
        for text in ("one ferry", "two ferries", "three ferries"):
            committed_record(mem.remember(text, tier="archival"))
        mem.reindex()
        assert mem.status()["candidates"] == "process"
        committed_record(mem.remember("four ferries", tier="archival"))
        mem.reindex()
        assert mem.status()["candidates"] == "database"
        found = mem.recall("ferry", receipt=True)
        assert mem.receipt(found.receipt)["inputs"]["versions"]["candidates"] == "database"
        context = mem.context("ferry", budget_tokens=400)
        assert mem.replay(context.receipt.id).text == context.text


def test_a_store_in_a_file_is_searched_in_the_process(tmp_path: Path) -> None:
    with opened(str(tmp_path / "memory.db"), tmp_path, policy=Policy(candidates="database")) as mem:
        committed_record(mem.remember("one ferry", tier="archival"))
        mem.reindex()
        assert mem.recall("ferry").candidates == "process"


def test_a_query_that_names_no_tenant_finds_candidates_of_its_own_alone(pair: Pair, database: str) -> None:
    pair.process.at(tenant="other").remember("the ferry of another tenant", tier="archival")
    pair.database.at(tenant="other").reindex()
    with psycopg.connect(database) as connection:
        connection.execute("SELECT set_config('keepward.tenant', 'other', true)")
        for name in candidates.CANDIDATE_TABLES:
            tenants = connection.execute(f"SELECT DISTINCT tenant FROM {name}".encode()).fetchall()
            assert tenants == [("other",)], name
    assert_alike(pair)
