"""Tables that name candidates of recall in a large tenant: its words, and its vectors under a pgvector index.

Only PostgreSQL has these tables, and only indexed tenants (``UnitOfWork.index_next_batch``) have rows in them.
Recall ranks the candidates like any other memories.

Invariants
(1) The tables of an indexed tenant change in the transaction that changes the memory. All rows are computed from
    ``records``: they can be deleted and computed again at any time, and no result shows them.
(2) The row of a memory has its scope, trust, sensitivity and expiry, so that no count includes a hidden memory.
(3) Only active memories have rows.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from keepward.core.memory import Status
from keepward.core.query import Filter
from keepward.core.value import name_forms
from keepward.ports.store import TERMS_HEADER, VECTORS_HEADER, IndexedMemory
from keepward.storage.rows import filter_parameters, json_array, profile_of, split_record_row
from keepward.storage.seals import Sealer
from keepward.storage.sql import Connection, Snapshot, parse_queries, read_sql

#: Memories that one call indexes.
INDEX_BATCH_SIZE: Final = 20_000
#: Up to this many vectors of a space all are compared; with more, the index finds the nearest.
MAX_SCANNED_VECTORS: Final = 50_000
#: Most dimensions that pgvector can index, and that it can store.
INDEXED_DIM, MAX_DIM = 4_000, 16_000
CANDIDATE_TABLES: Final = ("candidate_state", "candidates", "candidate_words", "candidate_vectors")


def vector_space_id(tenant: str, model: str, dim: int) -> int:
    """Return the number of a tenant's vectors of one model and dimension, below 2**63."""
    name = f"{tenant}\0{model}\0{dim}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> 1


# --- writing


def index_next_batch(db: Connection, sealer: Sealer, tenant: str, most: int = INDEX_BATCH_SIZE) -> bool:
    """Index a tenant's next memories in the order of their arrival; return whether these were the last."""
    if not db.searchable:
        return True
    after, level = db.run("candidate_state", tenant=tenant).fetchone() or (-1, 0)
    if level:
        return True
    rows = db.run("candidates_unread", tenant=tenant, after=after, most=most).fetchall()
    pairs = [split_record_row(row) for row in rows]
    _add(db, tenant, [profile_of(sealer, tenant, *pair) for pair in pairs])
    done = len(rows) < most
    db.run_many("set_candidate_state", [(tenant, pairs[-1][0].arrival if pairs else after, int(done))])
    return done


def refresh(db: Connection, sealer: Sealer, tenant: str, ids: Collection[str]) -> None:
    """Update the rows of these memories, as far as the tenant is indexed; see (1)."""
    last, level = db.run("candidate_state", tenant=tenant).fetchone()
    pairs = [split_record_row(row) for row in db.run("profiles_by_id", tenant=tenant, ids=json_array(ids))]
    pairs = [pair for pair in pairs if level or pair[0].arrival <= last]
    db.run("drop_candidates", tenant=tenant, arrivals=[row.arrival for row, _ in pairs])
    active = [each for each in pairs if each[0].status == Status.ACTIVE]
    _add(db, tenant, [profile_of(sealer, tenant, *each) for each in active])


def drop_candidates(db: Connection, tenant: str) -> None:
    """Delete all rows of a tenant; it can be indexed again."""
    for name in CANDIDATE_TABLES:
        db.execute(f"DELETE FROM {name} WHERE tenant = ?", (tenant,))


def _add(db: Connection, tenant: str, profiles: Iterable[IndexedMemory | None]) -> None:
    rows, vectors = [], []
    for memory in profiles:
        if memory is None:
            continue
        fields, features, arrival, _ = memory
        count, length = (len(features.terms) - TERMS_HEADER.size) // 5, TERMS_HEADER.unpack_from(features.terms)[1]
        terms = list(struct.unpack_from(f"<{count}I", features.terms, TERMS_HEADER.size))
        space, units = None, list[bytes]()
        if features.has_vectors:
            _, _, dim, many = VECTORS_HEADER.unpack_from(features.vectors)
            if dim <= MAX_DIM:
                space = vector_space_id(tenant, features.model or "", dim)
                codes = features.vectors[VECTORS_HEADER.size + 4 * many :]
                units = [codes[n * dim : (n + 1) * dim] for n in range(many)]
        hidden = (fields.scope, int(fields.sensitivity != "normal"), fields.effective_trust, fields.expires_at)
        has_session = int(fields.event_session is not None)
        rows.append((tenant, arrival, *hidden, has_session, length, space, len(units), terms))
        # A code is the middle of a quantisation step, so twice the value is an integer.
        doubled = ([2 * code + 1 for code in memoryview(unit).cast("b")] for unit in units)
        vectors += [(tenant, arrival, n, space, str(unit)) for n, unit in enumerate(doubled)]
    db.run_many("add_candidate", rows)
    db.run_many("add_candidate_vector", vectors)


# --- reading


class VisibleCounts(NamedTuple):
    """Counts of the memories that a reader may see."""

    memories: int
    #: Number of terms in all, and in those of a session.
    length: int
    turn_length: int
    #: Memories and vectors from the embedder of the query vector.
    holders: int
    units: int


#: Conditions that no column of a candidate answers.
_NARROWING = ("tiers", "kinds", "content_types", "tags", "subject", "category", "session", "min_importance")


def _parameters(asked: Filter, space: int) -> dict[str, Any]:
    """Return the parameters of the statements: what may be seen, and the vector space that counts."""
    return {
        **filter_parameters(asked, None),
        # Fields of the body that only these statements read.
        "content_types": json_array(asked.content_types),
        "tags": json_array(name_forms(asked.tags)),
        # The stored importance only decays, so it is an upper bound.
        "min_importance": round(asked.min_importance * 10_000),
        "narrow": int(any(getattr(asked, name) for name in _NARROWING)),
        "trust": asked.min_trust,
        "sensitive": int(asked.include_sensitive),
        "now": asked.now,
        "space": space,
    }


class CandidateReads(Snapshot):
    """Reads of candidates; a part of ``StoreReader``."""

    def searchable(self, tenant: str) -> bool:
        """Whether the tables have all memories of a tenant."""
        with self._reading(tenant) as db:
            return db.searchable and (db.run("candidate_state", tenant=tenant).fetchone() or (0, 0))[1] == 1

    def visible_counts(self, tenant: str, asked: Filter, space: int) -> VisibleCounts:
        """Return counts of the memories that a reader may see."""
        with self._reading(tenant) as db:
            # The setting applies to all queries of this snapshot.
            db.run("candidate_tune", sort="on", breadth="40")
            return VisibleCounts(*self._candidates("candidates_seen", tenant, asked, space)[0])

    def document_frequencies(self, tenant: str, asked: Filter, space: int, terms: Collection[int]) -> dict[int, int]:
        """Return how many visible memories contain each term, rarest first; terms without a memory are left out."""
        return dict(self._candidates("candidate_holders", tenant, asked, space, terms=list(terms)))

    def by_words(
        self, tenant: str, asked: Filter, space: int, weights: dict[int, float], norm: tuple[float, float], most: int
    ) -> set[int]:
        """Return the arrivals of the ``most`` memories with the highest word weights.

        The weight of a memory is the sum over its terms, divided by 1 + norm[0] + norm[1] * its length.
        """
        values = {"terms": list(weights), "weights": list(weights.values()), "base": norm[0], "each": norm[1]}
        found = self._candidates("candidates_by_words", tenant, asked, space, **values, most=most)
        return {arrival for (arrival,) in found}

    def nearest(
        self, tenant: str, asked: Filter, space: int, units: int, vector: Sequence[float], most: int
    ) -> set[int]:
        """Return the arrivals of the ``most`` vectors with the best cosines; ``units`` is the number of visible
        vectors."""
        dim = len(vector)
        with self._reading(tenant) as db:
            indexed, schema = db.run("candidate_index", name=_index_of(space)).fetchone()
            indexed = indexed and units > MAX_SCANNED_VECTORS
            db.run("candidate_tune", sort="off" if indexed else "on", breadth=str(min(max(most, 40), 1_000)))
            half = f"AS {schema}.halfvec({dim}))"
            distance = f"CAST(v.vector {half} OPERATOR({schema}.<=>) CAST(CAST(:vector AS TEXT) {half}"
            # PostgreSQL uses an index only for its exact expression; `+ 0` avoids the index.
            query = _nearest().replace("DISTANCE", distance if indexed else f"({distance}) + 0")
            values = _parameters(asked, space) | {"tenant": tenant, "vector": str([*map(float, vector)]), "most": most}
            return {arrival for (arrival,) in db.execute(query, values)}

    def sample(self, tenant: str, asked: Filter, space: int, percent: float) -> list[bytes]:
        """Return the packed vectors of about ``percent`` of the visible memories, the same ones each time."""
        return [packed for (packed,) in self._candidates("candidate_sample", tenant, asked, space, percent=percent)]

    def matching_arrivals(self, tenant: str, asked: Filter, space: int, most: int) -> list[int]:
        """Return at most ``most`` arrivals of matching memories, in no stated order."""
        return [arrival for (arrival,) in self._candidates("candidates_all", tenant, asked, space, most=most)]

    def neighbouring_turns(self, tenant: str, turns: Collection[tuple[str, int]], reach: int) -> set[int]:
        """Return up to ``reach`` messages before and after each of some, given session and arrival."""
        sessions, arrivals = map(list, zip(*turns, strict=True))
        found = self._run("candidates_near_turns", tenant, sessions=sessions, arrivals=arrivals, reach=reach)
        return {arrival for (arrival,) in found}

    def profiles_at(
        self, tenant: str, arrivals: Collection[int] = (), *, ids: Collection[str] = ()
    ) -> list[IndexedMemory]:
        """Return active memories by arrival or id, in no stated order, without damaged rows."""
        rows = self._run("candidate_profiles", tenant, arrivals=list(arrivals), ids=json_array(ids))
        found = (profile_of(self._sealer, tenant, *split_record_row(row)) for row in rows)
        return [match for match in found if match is not None]

    def missing_indexes(self, tenant: str) -> list[str]:
        """Return the statements that create a tenant's missing vector indexes; they run outside transactions."""
        made: list[str] = []
        with self._reading(tenant) as db:
            for space, units, packed, part in db.run("candidate_spaces", tenant=tenant) if db.searchable else ():
                name, dim = _index_of(space), VECTORS_HEADER.unpack_from(packed)[2]
                there, schema = db.run("candidate_index", name=name).fetchone()
                if there or units <= MAX_SCANNED_VECTORS or dim > INDEXED_DIM:
                    continue
                key = f"((CAST(vector AS {schema}.halfvec({dim}))) {schema}.halfvec_cosine_ops)"
                # An index that exists but is invalid comes from an interrupted CREATE INDEX.
                made.append(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
                made.append(f"CREATE INDEX CONCURRENTLY {name} ON {part} USING hnsw {key} WHERE space = {space}")
        return made

    def _candidates(self, name: str, tenant: str, asked: Filter, space: int, **more: Any) -> list[Any]:
        return self._run(name, tenant, **_parameters(asked, space), **more)


@cache
def _nearest() -> str:
    return parse_queries(read_sql("queries.sql") + read_sql("candidates.sql"))["candidates_nearest"]


def _index_of(space: int) -> str:
    """Return the name of the index over the vectors of a space."""
    return f"candidate_vectors_{space:x}"
