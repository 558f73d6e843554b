"""Candidates that come from the database find and rank what an index in the process does, and nothing is left behind."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from outcomes import kept

from keepward import Actor, Memory, Policy
from keepward.engine import audit
from keepward.engine import candidates as gathering
from keepward.engine import index as engine_index
from keepward.models.hashed import HashedEmbedder
from keepward.retrieval import index, units
from keepward.store import candidates
from support.clock import SteppingClock

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
    kept(mem.remember("Maria's manager is Tomasz Wilk", tier="archival"))
    kept(mem.remember("Last year Wilk moved to Gdansk", tier="archival"))
    for year, rent in ((2024, "1,150"), (2026, "1,240")):
        text = f"The rent of the flat is {rent} euros a month"
        kept(mem.remember(text, tier="archival", occurred_at=datetime(year, 1, 1, tzinfo=UTC)))
    for n, like in enumerate(("tabs", "ferries", "blue tea", "the quay at night", "old maps")):
        given: dict[str, Any] = {"subject": "ana" if n % 2 else None, "metadata": {"reason": n}, "importance": n / 5}
        given["tags"] = ("harbour",) if n > 2 else ()
        kept(mem.remember(f"Ana likes {like} for reason {n}", tier="archival", **given))
    kept(mem.remember("Please always put the sum into the first line", tier="archival"))
    kept(mem.remember("Ana likes a medicine that is nobody's business", tier="archival", sensitivity="sensitive"))
    kept(mem.remember("Ana likes what a page of the web says about ferry prices", tier="archival", source="web"))
    kept(mem.at(scope="/agents/orion").remember("Orion likes the ferry to the lighthouse", tier="archival"))
    for talk in (1, 2):
        for n, said in enumerate(
            ("Where is the keeper?", "At the lighthouse.", "Since when?", "Since the ferry left.")
        ):
            spoken = {"tier": "episodic", "kind": "event", "stability": "stable", "session": f"talk-{talk}"}
            kept(mem.remember(f"{said} ({talk}/{n})", speaker="Ana" if n % 2 else "Ben", **spoken))


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
    embedder = getattr(request, "param", "hashed")
    with (
        opened(database, tmp_path, policy=Policy(candidates="process"), embedder=embedder) as process,
        opened(database, tmp_path, policy=Policy(candidates="database"), embedder=embedder) as made,
    ):
        fill(process)
        made.reindex()
        yield Pair(process, made)


def kept_of(database: str) -> dict[str, Any]:
    """Return what the tables of candidates hold, whatever the blocks and the numbers of classes are."""
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT class, scope, sensitive, trust FROM search_classes").fetchall()
        classes = {row[0]: row[1:] for row in rows}
        found: dict[str, Any] = {"postings": set()}
        for term, number, holders, refs in connection.execute("SELECT term, class, holders, refs FROM search_terms"):
            postings = [each for (each,) in struct.iter_unpack("<q", refs)]
            assert holders == len(postings) > 0
            assert postings[0] >> candidates.SHIFT is not None
            found["postings"] |= {(term, classes[number], each) for each in postings}
        for name, columns in (
            ("search_classes", "class, memories, length, turns, spoken"),
            ("search_spaces", "class, space, holders, units, ones"),
            ("search_rows", "class, arrival, turn, terms"),
            ("search_units", "class, arrival, n, space, until, bits"),
        ):
            rows = connection.execute(f"SELECT {columns} FROM {name}".encode()).fetchall()
            # What nothing is in any more stays as a row of zeros.
            found[name] = sorted((classes[row[0]], *row[1:]) for row in rows if any(row[1:4]) and row[2] != 0)
    return found


def arrivals_of(database: str, memory_id: str) -> int:
    with psycopg.connect(database) as connection:
        (arrival,) = connection.execute("SELECT arrival FROM records WHERE id = %s", (memory_id,)).fetchone()
    return arrival


@pytest.mark.parametrize("narrow", NARROW, ids=lambda narrow: "-".join(narrow) or "all")
def test_both_ways_rank_alike(pair: Pair, narrow: dict[str, Any]) -> None:
    assert_alike(pair, **narrow)


@each_kind
def test_what_another_scope_may_not_see_is_found_in_neither_way(pair: Pair) -> None:
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
def test_a_part_ranks_as_the_whole_does(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """So few candidates that statistics of the whole matter: the best are the same, to the last digit of the words."""
    for name in ("SIGNS", "VECTORS", "WORDS"):
        monkeypatch.setattr(gathering, name, 2)
    for query in QUERIES[:5]:
        # Twice the limit is looked at, so that a small one makes a small part.
        best, due = (answers(each, query, limit=3) for each in (pair.database, pair.process))
        assert best[0][0] == due[0][0]
        assert best[0][2]["cosine"] == due[0][2]["cosine"]
        assert best[0][2]["cover"] == pytest.approx(due[0][2]["cover"], abs=0.05)


def test_every_change_reaches_the_tables_with_its_commit(pair: Pair, database: str) -> None:
    mem = pair.database
    first = mem.recall("old maps").hits[0].memory.id
    mem.revise(first, "Ana likes new charts by now", reason="she said so")
    mem.forget(mem.recall("blue tea").hits[0].memory.id, reason="no longer")
    kept(mem.remember("Ana likes violins from Gdansk", tier="archival", scope="/agents/orion"))
    kept(mem.remember("a fact under a key", tier="archival", kind="state", key="note"))
    kept(mem.remember("the fact under that key, anew", tier="archival", kind="state", key="note"))
    mem.rollback(str(mem.log()[0].commit.seq - 1))
    assert_alike(pair)
    level = kept_of(database)
    pair.process.reindex()
    assert pair.process.status()["candidates"] != "database"
    assert kept_of(database)["postings"] == set()
    mem.reindex()
    assert kept_of(database) == level


def test_a_touch_of_a_sliding_term_reaches_the_tables(pair: Pair) -> None:
    text = "Ana likes ferries that slide"
    made = kept(pair.database.remember(text, tier="archival", ttl="1h", sliding=True))
    assert_alike(pair)
    for _ in range(2):
        for mem in pair:
            mem._engine.clock.advance(timedelta(minutes=50))
        pair.database.touch([made.id])
    assert made.id in {hit.memory.id for hit in pair.database.recall("ferries that slide", floor=0)}
    assert_alike(pair)
    assert pair.database.verify().ok


def test_nothing_of_an_erased_memory_is_left(pair: Pair, database: str) -> None:
    mem = pair.database
    out = kept(mem.remember("The boat in the dry dock is the Quokka", tier="archival"))
    before, arrival = kept_of(database), arrivals_of(database, out.id)
    assert any(posting >> candidates.SHIFT == arrival for _, _, posting in before["postings"])
    mem.erase(mem.plan_erase(out.id).digest, out.id)
    after = kept_of(database)
    assert not any(posting >> candidates.SHIFT == arrival for _, _, posting in after["postings"])
    assert arrival not in {row[1] for name in ("search_rows", "search_units") for row in after[name]}
    assert not any(term in {t for t, _, _ in after["postings"]} for term in _own(before, arrival, after))
    assert mem.verify().ok


def _own(before: dict[str, Any], arrival: int, after: dict[str, Any]) -> set[int]:
    """Return the terms that nothing but one memory held."""
    others = {term for term, _, posting in before["postings"] if posting >> candidates.SHIFT != arrival}
    return {term for term, _, posting in before["postings"] if posting >> candidates.SHIFT == arrival} - others


@pytest.mark.parametrize("name", ["search_rows", "search_units", "search_classes", "search_spaces"])
def test_verify_misses_candidates_that_were_deleted_by_hand(pair: Pair, database: str, name: str) -> None:
    assert pair.database.verify().ok
    with psycopg.connect(database) as connection:
        connection.execute(f"DELETE FROM {name} WHERE class = (SELECT min(class) FROM {name})".encode())
    assert [fault.row for fault in pair.database.verify().faults] == ["search_rows default"]


def test_another_embedder_is_searched_once_it_has_computed(pair: Pair, database: str, tmp_path: Path) -> None:
    given = {"embedder": HashedEmbedder(dim=128), "policy": Policy(candidates="database")}
    with opened(database, tmp_path, **given) as other:
        assert other.recall("old maps").used == ("text",)
        other.reindex()
        assert other.recall("old maps").used == ("text", "vector")
        with opened(database, tmp_path, **given | {"policy": Policy()}) as process:
            assert_alike(Pair(process, other))


def test_vectors_of_an_earlier_recipe_are_searched_until_there_are_others(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (units, index, engine_index, audit):
        monkeypatch.setattr(where, "FRESH", ("next", units.GIVEN))
    monkeypatch.setattr(units, "RECIPE", "next")
    assert pair.database.status()["vectors_pending"] == sum(pair.database.status()["by_tier"].values())
    assert_alike(pair)
    assert pair.database.reindex() == sum(pair.database.status()["by_tier"].values())
    assert pair.database.recall("old maps").candidates == "database"
    assert_alike(pair)


def test_a_graph_leads_to_the_nearest_vectors(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "SCANNED", 10)
    pair.database.reindex()
    assert pair.database._session.store.graphs("default") == []
    assert_alike(pair)
    assert_alike(pair, tags=("harbour",))


def test_auto_chooses_by_the_number_of_memories_and_receipts_say_so(database: str, tmp_path: Path) -> None:
    with opened(database, tmp_path, policy=Policy(process_limit=3)) as mem:
        for text in ("one ferry", "two ferries", "three ferries"):
            kept(mem.remember(text, tier="archival"))
        mem.reindex()
        assert mem.status()["candidates"] == "process"
        kept(mem.remember("four ferries", tier="archival"))
        mem.reindex()
        assert mem.status()["candidates"] == "database"
        found = mem.recall("ferry", receipt=True)
        assert mem.receipt(found.receipt)["inputs"]["versions"]["candidates"] == "database"
        context = mem.context("ferry", budget_tokens=400)
        assert mem.replay(context.receipt.id).text == context.text


def test_a_store_in_a_file_is_searched_in_the_process(tmp_path: Path) -> None:
    with opened(str(tmp_path / "memory.db"), tmp_path, policy=Policy(candidates="database")) as mem:
        kept(mem.remember("one ferry", tier="archival"))
        mem.reindex()
        assert mem.recall("ferry").candidates == "process"


def test_a_role_that_is_no_superuser_finds_its_own_tenant(pair: Pair, database: str, tmp_path: Path) -> None:
    """Behind the wall of rows, which stands before every condition, the tables are searched just the same."""
    pair.process.at(tenant="other").remember("the ferry of another tenant", tier="archival")
    pair.database.at(tenant="other").reindex()
    with psycopg.connect(database, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone() is None:
            connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader")
    address = database.replace("postgresql://postgres:@", "postgresql://reader@")
    with psycopg.connect(address) as connection:
        connection.execute("SELECT set_config('keepward.tenant', 'other', true)")
        for name in candidates.NAMES:
            tenants = connection.execute(f"SELECT DISTINCT tenant FROM {name}".encode()).fetchall()
            assert tenants == [("other",)], name
    with opened(address, tmp_path, policy=Policy(candidates="database")) as mem:
        assert_alike(Pair(pair.process, mem))
