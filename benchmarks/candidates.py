"""Candidates from PostgreSQL for one large tenant: how long its indexes take to make, their size, recall and latency.

    python -m benchmarks.postgres --candidates 100000 [--per-topic 50]

The memories are those of ``bench_index``: words by a Zipf law, vectors of 384 dimensions in clusters. They are written
as commits of a thousand, past the gates. Recall is measured by vectors alone against exact cosines of the same floats;
latency is that of a whole ``recall`` by words and vectors, the memories read and checked.
"""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.bench_index import _WORDS, CHUNK, DIM, near_centres, words
from benchmarks.database import Server
from benchmarks.measure import p50, p95, table, times
from keepward import Actor, Memory, Policy, Tier
from keepward.core.commit import CommitDetails, Step
from keepward.core.memory import Kind, Record
from keepward.core.principals import Trust
from keepward.machine.clock import RandomIds
from keepward.ports.store import Features, PendingCommit
from keepward.retrieval import tokenizer, vector_index
from keepward.storage.candidates import CANDIDATE_TABLES
from keepward.storage.store import EventStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUERIES = 100
BEST = 10


class Given:
    """An embedder that was given its vectors."""

    id, dim = "bench", DIM

    def __init__(self) -> None:
        self.vectors: dict[str, np.ndarray] = {}

    def embed(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of these texts."""
        return np.stack([self.vectors[text] for text in texts])


def fill(store: EventStore, size: int, per_topic: int, wanted: np.ndarray) -> np.ndarray:
    """Write memories as commits; return for each wanted vector the texts' numbers that are nearest."""
    ids, best = RandomIds(), np.zeros((len(wanted), 0), dtype=np.float32)
    near = np.zeros((len(wanted), 0), dtype=np.int64)
    for start in range(0, size, CHUNK):
        rng, count = np.random.default_rng(start), min(CHUNK, size - start)
        units = near_centres(rng, count, max(size // per_topic, 1))
        steps, features = [], []
        for n in range(count):
            said = [_WORDS[w] for w in words(rng, int(rng.integers(6, 24)))]
            steps.append(Step(op="insert", before=None, after=_record(ids.new_id(NOW), start + n, " ".join(said))))
            terms = tokenizer.pack(said)
            features.append(Features(terms=terms, model="bench", vectors=vector_index.pack(units[n : n + 1]), units=1))
        stage = PendingCommit(
            commit_id=ids.new_id(NOW),
            at=NOW,
            kind="write",
            actor_kind="operator",
            details=CommitDetails(actor="operator:owner", reason="bench", receipt=ids.new_id(NOW), policy="0" * 16),
            steps=tuple(steps),
            features=tuple(features),
            base={},
            salts=tuple(ids.salt() for _ in range(count + 1)),
        )
        with store.write() as writer:
            writer.append("default", stage)
        # Every fifth is out of sight.
        seen = np.where(np.arange(start, start + count) % 5, wanted @ units.T, -1.0).astype(np.float32)
        best = np.concatenate((best, seen), axis=1)
        near = np.concatenate((near, np.broadcast_to(np.arange(start, start + count), (len(wanted), count))), axis=1)
        kept = np.argsort(-best, axis=1, kind="stable")[:, :BEST]
        best, near = np.take_along_axis(best, kept, axis=1), np.take_along_axis(near, kept, axis=1)
    return near


def _record(name: str, number: int, text: str) -> Record:
    return Record(
        id=name,
        version=1,
        tier=Tier.ARCHIVAL,
        kind=Kind.FACT,
        text=f"{number} {text}",
        scope="/" if number % 5 else "/agents/orion",
        source="operator",
        trust=Trust.OWNER,
        confidence=1.0,
        importance=0.5,
        author="operator:owner",
        created_at=NOW,
        reinforced_at=NOW,
    )


def run(size: int, per_topic: int) -> None:
    """Print the tables."""
    rng = np.random.default_rng(5)
    wanted = near_centres(rng, QUERIES, max(size // per_topic, 1))
    asked = [" ".join(_WORDS[w] for w in words(rng, 6)) for _ in range(QUERIES)]
    unsaid = [f"qzx{n}zxq" for n in range(QUERIES)]
    embedder = Given()
    for texts in (asked, unsaid):
        embedder.vectors |= dict(zip(texts, wanted, strict=True))
    settings = {"shared_buffers": "2GB", "maintenance_work_mem": "1GB", "max_wal_size": "8GB", "autovacuum": "off"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        server = Server(folder)
        server.configure(**settings)
        given = {"actor": Actor.operator(), "embedder": embedder, "config_dir": folder / "config", "maintenance": False}
        with Memory.open(server.address(), policy=Policy(candidates="database"), **given) as mem:
            exact = make(mem, server.address(), size, per_topic, wanted)
            ask(mem, server.data, asked, unsaid, exact)
        server.close()


def make(mem: Memory, url: str, size: int, per_topic: int, wanted: np.ndarray) -> np.ndarray:
    """Write the memories and make the indexes of the database, and print what that took; return what ``fill`` does."""
    import psycopg

    store, instants = mem._context.store, [time.perf_counter()]  # noqa: SLF001  what is written past the gates
    exact = fill(store, size, per_topic, wanted)
    instants.append(time.perf_counter())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    store.create_vectors()
    done = False
    while not done:
        with store.write() as writer:
            done = writer.index_next_batch("default")
    instants.append(time.perf_counter())
    store.index_vectors("default")
    instants.append(time.perf_counter())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        sizes = [(each, _size(connection, f"{each}%")) for each in (*CANDIDATE_TABLES, "records")]
    steps = ("writing the memories, s", "tables of candidates, s", "index of the vectors, s")
    rows = [(step, f"{b - a:.0f}") for step, (a, b) in zip(steps, pairwise(instants), strict=True)]
    rows += [(f"{each}, MB", f"{taken / 1e6:.0f}") for each, taken in sizes]
    table(f"PostgreSQL: {size} memories of one tenant", ("", ""), rows)
    return exact


def ask(mem: Memory, data: Path, asked: list[str], unsaid: list[str], exact: np.ndarray) -> None:
    """Print how well and how fast candidates are found."""
    found = [mem.recall(each, limit=BEST, order="cosine", floor=0) for each in unsaid]
    numbers = [{int(hit.memory.text.split()[0]) for hit in each} for each in found]
    shares = [len(got & set(due.tolist())) / BEST for got, due in zip(numbers, exact, strict=True)]
    times(lambda n: mem.recall(asked[n], limit=BEST, floor=0), QUERIES)
    before = time.process_time(), _spent(data)
    both = times(lambda n: mem.recall(asked[n], limit=BEST, floor=0), QUERIES)
    after = time.process_time(), _spent(data)
    own, servers = (1_000 * (b - a) / QUERIES for a, b in zip(before, after, strict=True))
    scoped = mem.at(scope="/agents/orion")
    here = times(lambda n: scoped.recall(asked[n], limit=BEST, floor=0), QUERIES)
    rows = [
        (f"recall@{BEST} of exact cosines", f"{np.mean(shares):.3f}", f"{min(shares):.1f} at least"),
        ("recall, ms", f"{p50(both):.1f}", f"p95 {p95(both):.1f}"),
        ("processor time of it, ms", f"{own + servers:.1f}", f"{servers:.1f} of them the server's"),
        ("recall of two scopes, ms", f"{p50(here):.1f}", f"p95 {p95(here):.1f}"),
    ]
    table("PostgreSQL: candidates from the database", ("", "", ""), rows)


def _size(connection: object, pattern: str) -> int:
    query = "SELECT coalesce(sum(pg_relation_size(oid)), 0) FROM pg_class WHERE relname LIKE %s"
    query += " AND relkind IN ('r', 'i', 't')"
    return int(connection.execute(query, (pattern,)).fetchone()[0])


def _spent(data: Path) -> float:
    """Return the seconds of processor time that the processes of a server have taken; 0 where the system is silent."""
    parent, ticks = (data / "postmaster.pid").read_text().split()[0], 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            cells = file.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += int(cells[11]) + int(cells[12]) if cells[1] == parent else 0
    return ticks / os.sysconf("SC_CLK_TCK")
