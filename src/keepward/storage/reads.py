"""Reads of memories.

Invariants
(1) Filters apply before limits.
(2) A damaged row is left out, named in ``damaged`` and logged; it is never returned.
(3) Every order is total: newest arrival first, unless a docstring says otherwise.
(4) A indexed memory consists of a record and its features, each checked against its own seal.
(5) Duplicate candidates are unchecked: the caller reads each, which checks it, and compares its partition, because
    minhashes of two partitions can be equal.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import heappop, heappush, merge
from itertools import chain, islice
from typing import Any, TypeAlias

from keepward.core.commit import Head
from keepward.core.evidence import CHECKED_FORMS
from keepward.core.memory import Record, Status
from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.core.serialization import decode_fields
from keepward.core.value import from_micros, name_forms, to_micros
from keepward.errors import Tampered
from keepward.ports.index_parts import IndexedState
from keepward.ports.store import Features, IndexedMemory, ReadResult, ScopeRange
from keepward.storage import tenant as tenants
from keepward.storage.candidates import CandidateReads
from keepward.storage.journal import JournalReads, record_or_erased, scope_parameters
from keepward.storage.listing import ListReads, count_memories
from keepward.storage.rows import (
    MAX_EVENTS_PER_COMMIT,
    EventRow,
    FeatureRow,
    RecordRow,
    dedup_partition,
    filter_parameters,
    has_body_filter,
    json_array,
    pack_minhashes,
    partitioned_minhashes,
    profile_of,
    record_of,
    record_row,
    split_record_row,
    unpack_minhashes,
    verified_features,
    worth_of,
)
from keepward.storage.sql import Connection, Cursor, Row, Snapshot, prefix_range
from keepward.storage.tenant import TenantHead
from keepward.storage.uses import UseReads

#: A limit above every number of rows.
_NO_LIMIT = (1 << 63) - 1
#: Most candidates for one text.
MAX_DUPLICATE_CANDIDATES = 8
#: How many of six minhashes likely duplicates share, unless the texts are equal. Of texts that share four fifths of
#: their words, one in 600 pairs shares fewer. See ``services.search.features``.
MIN_SHARED_MINHASHES = 2
#: Most memories that are counted for one minhash, those changed last.
MAX_HOLDERS_PER_MINHASH = 32
#: Memories that a statement reads by their ids.
_READ_AT_ONCE = 500
#: Memories whose uses are read at once, to find what a full tier archives.
_FIRST_BY_WORTH, _MORE_BY_WORTH = 16, 500
#: Tiers whose memories are all in the index of ``standing``.
_LASTING_TIERS = frozenset({"core", "working"})
#: Most traits that one statement finds.
_TRAITS_AT_ONCE = 10_000
_log = logging.getLogger(__name__)


def _query_for(filters: Filter) -> str:
    """Return the query of ``find`` with the best index for a filter."""
    if filters.key is not None:
        return "find_key"
    if filters.subject is not None:
        return "find_subject"
    if filters.session is not None:
        return "find_session"
    is_standing = filters.keyed or filters.permanent or (filters.tiers and set(filters.tiers) <= _LASTING_TIERS)
    return "find_standing" if is_standing else "find"


def _damaged(found: ReadResult, memory_id: object, fault: Tampered) -> None:
    found.damaged.append(str(memory_id))
    _log.warning("memory %s was left out: %s", memory_id, fault, extra={"action": "damaged"})


#: Whether a scope is visible.
Sees: TypeAlias = Callable[[str], bool]


class MemoryReads(Snapshot):
    """Reads of memories; a part of ``StoreReader``."""

    def _tenant_row(self, tenant: str) -> TenantHead:
        with self._reading(tenant) as db:
            return tenants.read(db, self._sealer, tenant)

    def head(self, tenant: str) -> Head:
        """Return the tenant's head; seq 0 without a commit."""
        return self._tenant_row(tenant).head

    def indexed_state(self, tenant: str) -> IndexedState:
        """Return the state that an index of the tenant would be of now."""
        row = self._tenant_row(tenant)
        return IndexedState(seq=row.head.seq, hash=row.head.hash, erasures=row.erasures())

    def reindexed(self, tenant: str) -> str:
        """Return a text that changes when stored vectors or words of a tenant are replaced."""
        with self._reading(tenant) as db:
            row = db.run("meta", name=f"reindexed_{tenant}").fetchone()
        return "" if row is None else str(row[0])

    def was_at(self, tenant: str, state: IndexedState, *, erased: bool = False) -> bool:
        """Whether the tenant was in a state, and nothing was erased since; ``erased`` allows erasures."""
        with self._reading(tenant) as db:
            row = tenants.read(db, self._sealer, tenant)
            known = db.run("commit_hash_at", tenant=tenant, seq=state.seq).fetchone()
        return (erased or state.erasures == row.erasures()) and known is not None and known[0] == state.hash

    def tally(self, tenant: str) -> dict[str, int]:
        """Return the number of active memories by tier, in constant time."""
        return self._tenant_row(tenant).active()

    def writes(self, tenant: str) -> int:
        """Return how many transactions have changed the tenant."""
        return self._tenant_row(tenant).writes

    def document_count(self, tenant: str, kind: str) -> int:
        """Return how many documents of a kind a tenant has, in constant time."""
        return self._tenant_row(tenant).documents.counts[kind]

    def tenants(self) -> list[str]:
        """Return the names of tenants with at least one commit, sorted; for owner tools only."""
        with self._everywhere() as db:
            return [name for (name,) in db.run("tenants")]

    def ids_with_prefix(self, tenant: str, prefix: str, *, limit: int) -> list[str]:
        """Return the sorted ids of memories that start with a text."""
        return [name for (name,) in self._run("memories_by_prefix", tenant, **prefix_range(prefix), limit=limit)]

    def ids_by_key(self, tenant: str, keys: Collection[str], scopes: Collection[str]) -> list[tuple[str, str]]:
        """Return (key, id) of the memories, in any status, with one of these keys in one of these scopes."""
        return self._run("keyed", tenant, keys=json_array(keys), scopes=json_array(scopes))

    def children(self, tenant: str, ids: Sequence[str]) -> list[str]:
        """Return ids of memories derived directly from any of these, sorted."""
        return self._linked(tenant, "lineage", ids)

    def citing(self, tenant: str, names: Collection[str]) -> list[str]:
        """Return the sorted ids of memories whose newest version cites one of these names as evidence."""
        return self._linked(tenant, "evidence", names)

    def citing_sources(self, tenant: str) -> list[str]:
        """Return the sorted ids of memories whose newest version cites a source that a check can read."""
        ranges = [prefix_range(form) for form in CHECKED_FORMS]
        found = {name for each in ranges for (name,) in self._run("citing_between", tenant, **each)}
        return sorted(found)

    def with_traits(self, tenant: str, traits: Collection[bytes]) -> list[str]:
        """Return the sorted ids of memories, in any status, whose newest text has one of some traits."""
        asked, found = sorted(traits), set[str]()
        with self._reading(tenant) as db:
            for some in (asked[at : at + _TRAITS_AT_ONCE] for at in range(0, len(asked), _TRAITS_AT_ONCE)):
                query = f"SELECT id FROM features WHERE tenant = ? AND trait IN ({', '.join('?' * len(some))})"
                found.update(name for (name,) in db.execute(query, [tenant, *some]))
        return sorted(found)

    def _linked(self, tenant: str, kind: str, names: Collection[str]) -> list[str]:
        return [name for (name,) in self._run("linked", tenant, kind=kind, ids=json_array(names))]

    def unembedded(self, tenant: str, now: datetime, model: str, recipes: Collection[str]) -> bool:
        """Whether a live memory has no vectors of this embedder by one of these recipes."""
        return bool(self._run("unembedded", tenant, now=to_micros(now), model=model, recipes=json_array(recipes)))

    def superseded(self, tenant: str, scope: str, digest: bytes, trait: bytes) -> ReadResult:
        """Return superseded and contained memories of a scope, newest first, at most 24.

        They have the same text (``digest``), or the same words in any capitals and with any fillers (``trait``).
        """
        return self._by_ids("superseded", tenant, scope=scope, digest=digest, trait=trait)

    def known_trust(
        self, tenant: str, trait: bytes, memory_id: str, scopes: Collection[str], *, include_sensitive: bool
    ) -> Trust | None:
        """Return the lowest trust of other memories of some scopes with this trait, in any status; None if none."""
        values = {"trait": trait, "id": memory_id, "scopes": json_array(scopes)}
        ((trust,),) = self._run("known_trust", tenant, **values, include_sensitive=int(include_sensitive))
        return None if trust is None else tuple(Trust)[trust]

    def expired(self, tenant: str, now: datetime, *, limit: int | None) -> ReadResult:
        """Return active memories whose TTL has passed, the longest ago first, ties by id; no limit means all."""
        return self._by_ids("lapsed", tenant, now=to_micros(now), limit=_NO_LIMIT if limit is None else limit)

    def session_tail(self, tenant: str, session: str) -> Record | None:
        """Return the newest active memory of a session, or None."""
        return next(iter(self._by_ids("session_tail", tenant, session=session).records), None)

    def _by_ids(self, name: str, tenant: str, **values: Any) -> ReadResult:
        """Return the memories with the ids that a named statement selects."""
        with self._reading(tenant) as db:
            ids = [memory_id for (memory_id,) in db.run(name, tenant=tenant, **values)]
            return self._records(db, tenant, ids, None) if ids else ReadResult()

    def same_event(self, tenant: str, aliases: Sequence[str], scope: str, session: str | None) -> ReadResult:
        """Return the memories of a scope and session that have one of some aliases."""
        return self._by_ids("same_event", tenant, ids=json_array(aliases), scope=scope, session=session)

    def ids_by_alias(self, tenant: str, names: Collection[str], sees: Sees) -> list[tuple[str, str]]:
        """Return (alias, id) of memories with one of these aliases: the first and the last of each scope and trust."""
        rows = self._run("by_alias", tenant, ids=json_array(names))
        seen = [row for row in rows if row[1] is not None and sees(row[1])]
        return [(name, holder) for name, _, _, *holders in seen for holder in dict.fromkeys(holders)]

    def records(
        self,
        tenant: str,
        ids: Sequence[str],
        *,
        as_of: int | None = None,
        scopes: Sequence[str] = (),
        sees: Sees | None = None,
    ) -> ReadResult:
        """Return the newest records by id or alias, in the order of ``ids``, without those that do not exist.

        An alias of several memories names the one of the highest trust, then the one in the first of ``scopes``, then
        the oldest. ``sees`` says in which scopes an alias counts.
        """
        with self._reading(tenant) as db:
            return self._records(db, tenant, ids, as_of, scopes, sees)

    def _records(
        self,
        db: Connection,
        tenant: str,
        ids: Sequence[str],
        as_of: int | None,
        scopes: Sequence[str] = (),
        sees: Sees | None = None,
    ) -> ReadResult:
        found = ReadResult()
        by_id: dict[str, Record] = {}
        self._read(db, tenant, list(ids), as_of, found, by_id)
        others = [name for name in ids if name not in by_id]
        aliases: dict[str, list[str]] = {}
        holders = db.run("by_alias", tenant=tenant, ids=json_array(others)).fetchall() if others else []
        for name, scope, _, *ends in holders:
            if sees is None or scope is None or sees(scope):
                aliases.setdefault(name, []).extend(ends)
        wanted = [each for each in dict.fromkeys(chain.from_iterable(aliases.values())) if each not in by_id]
        if wanted:
            self._read(db, tenant, wanted, as_of, found, by_id)
        missing = [name for name in (*ids, *wanted) if name not in by_id and name not in found.damaged]
        if as_of is None and missing:
            for (memory_id,) in db.run("in_journal", tenant=tenant, ids=json_array(missing)).fetchall():
                _damaged(found, memory_id, Tampered("its record is missing"))
        order = {scope: number for number, scope in enumerate(scopes)}
        seen: set[str] = set()
        for name in ids:
            record_or_none = by_id.get(name)
            if record_or_none is None and name in aliases:
                # An alias counts only if the memory itself still has it.
                targets = [each for holder in aliases[name] if (each := by_id.get(holder)) and name in each.aliases]
                targets.sort(key=lambda each: (-int(each.name_trust), order.get(each.scope, len(order)), each.id))
                record_or_none = next(iter(targets), None)
            if record_or_none is not None and record_or_none.id not in seen:
                seen.add(record_or_none.id)
                found.records.append(record_or_none)
        return found

    def _read(
        self,
        db: Connection,
        tenant: str,
        ids: Sequence[str],
        as_of: int | None,
        found: ReadResult,
        by_id: dict[str, Record],
    ) -> None:
        """Read records by their ids into ``by_id``; add damaged ones to ``found``."""
        if as_of is None:
            rows = db.run("records_by_id", tenant=tenant, ids=json_array(ids)).fetchall()
        else:
            rows = db.run("records_as_of", tenant=tenant, ids=json_array(ids), as_of=as_of).fetchall()
        for row in rows:
            memory_id = row[0] if as_of is None else EventRow._make(row).memory_id
            try:
                by_id[memory_id] = self._record(db, tenant, row, as_of)
            except Tampered as exc:
                _damaged(found, memory_id, exc)

    def _record(self, db: Connection, tenant: str, row: Sequence[Any], as_of: int | None) -> Record:
        """Return the record of a ``record_row``, or of an event within the first ``as_of`` commits."""
        if as_of is None:
            *cells, newest = row
            return record_of(self._sealer, tenant, RecordRow._make(cells), newest)
        event = EventRow._make(row)
        record = record_or_erased(db, self._sealer, tenant, event)
        if event.seq > as_of:
            raise Tampered("an index is damaged")
        return record

    def ask_find(self, tenant: str, filters: Filter, *, live_at: datetime | None) -> None:
        """Let the answer to a later ``find`` with these values come with that to the next read."""
        live = None if live_at is None else to_micros(live_at)
        self.ask_ahead(_query_for(filters), tenant, pages=True, **filter_parameters(filters, live))

    def find(
        self, tenant: str, filters: Filter, *, live_at: datetime | None, limit: int | None, as_of: int | None = None
    ) -> ReadResult:
        """Return matching records, newest arrival first; ``live_at`` None includes inactive ones."""
        if as_of is not None:
            return self._find_as_of(tenant, filters, live_at, limit, as_of)
        found = ReadResult()
        live = None if live_at is None else to_micros(live_at)
        narrowed = has_body_filter(filters)
        with self._reading(tenant) as db:
            for *cells, newest in db.stream(_query_for(filters), tenant=tenant, **filter_parameters(filters, live)):
                # The limit is applied here: a damaged row must not replace an intact one.
                if limit is not None and len(found.records) >= limit:
                    break
                row = RecordRow._make(cells)
                # Most rows do not match, so the filter reads the body before it is decoded completely.
                if narrowed and (fields := decode_fields(row.body)) is not None and not filters.passes_fields(fields):
                    continue
                try:
                    record = record_of(self._sealer, tenant, row, newest)
                except Tampered as exc:
                    _damaged(found, row.id, exc)
                    continue
                if filters.passes(record):
                    found.records.append(record)
        return found

    def naming(self, tenant: str, name: str) -> list[Record]:
        """Return the newest records, in any status, that hold a name in some field or list, newest arrival first."""
        quoted = json_array(json.dumps(form, ensure_ascii=False) for form in name_forms([name]))
        found = ReadResult()
        with self._reading(tenant) as db:
            for *cells, newest in db.stream("find_naming", tenant=tenant, quoted=quoted):
                try:
                    found.records.append(record_of(self._sealer, tenant, RecordRow._make(cells), newest))
                except Tampered as exc:
                    _damaged(found, cells[0], exc)
        return found.records

    def _find_as_of(
        self, tenant: str, filters: Filter, live_at: datetime | None, limit: int | None, as_of: int
    ) -> ReadResult:
        found = ReadResult()
        with self._reading(tenant) as db:
            steps = (db.stream(name, tenant=tenant, as_of=as_of) for name in ("listed_as_of", "headless_as_of"))
            for *cells, _ in chain.from_iterable(steps):
                if limit is not None and len(found.records) >= limit:
                    break
                try:
                    record = self._record(db, tenant, cells, as_of)
                except Tampered as exc:
                    _damaged(found, EventRow._make(cells).memory_id, exc)
                    continue
                if filters.passes(record) and (live_at is None or record.is_live(live_at)):
                    found.records.append(record)
        return found

    def indexed(self, tenant: str) -> Iterator[tuple[Record, Features]]:
        """Yield every active memory with its features, in order of arrival."""
        with self._reading(tenant) as db:
            yield from self._with_features(tenant, db.stream("indexed", tenant=tenant))

    def _with_features(self, tenant: str, rows: Iterable[Row]) -> Iterator[tuple[Record, Features]]:
        for row, features in map(split_record_row, rows):
            if row.status != Status.ACTIVE:
                continue
            try:
                record = record_of(self._sealer, tenant, row, row.version)
            except Tampered as exc:
                _log.warning("memory %s was left out: %s", row.id, exc, extra={"action": "damaged"})
                continue
            yield record, verified_features(self._sealer, tenant, features)

    def features(self, tenant: str, records: Iterable[Record]) -> Iterator[tuple[Record, Features]]:
        """Yield memories with the verified features of their version, empty ones if there are none, in order."""
        rest = iter(records)
        while part := list(islice(rest, _READ_AT_ONCE)):
            with self._reading(tenant) as db:
                rows = db.run("features_by_id", tenant=tenant, ids=json_array(each.id for each in part)).fetchall()
            found = {(row.id, row.version): row for row in map(FeatureRow._make, rows)}
            for record in part:
                row = found.get((record.id, record.version))
                yield record, verified_features(self._sealer, tenant, row)

    def alike(self, tenant: str, now: datetime, *, newest: int) -> Iterator[tuple[Record, Features]]:
        """Yield the archival and episodic memories, no events and without a key, that others resemble.

        They have the words of another memory in any capitals, or are likely duplicates of one of the ``newest``.
        """
        micros = to_micros(now)
        ids = {name: None for (name,) in self._run("alike", tenant, now=micros, none=b"")}
        recent = [name for (name,) in self._run("mergeable", tenant, now=micros, most=newest)]
        for start in range(0, len(recent), _READ_AT_ONCE):
            asked = list(self._profiles_by_id(tenant, recent[start : start + _READ_AT_ONCE]))
            for (record, _), found in zip(asked, self.duplicate_candidates(tenant, asked, now), strict=True):
                ids |= dict.fromkeys((record.id, *found) if found else ())
        names = list(ids)
        for start in range(0, len(names), _READ_AT_ONCE):
            yield from self._profiles_by_id(tenant, names[start : start + _READ_AT_ONCE])

    def _profiles_by_id(self, tenant: str, ids: Sequence[str]) -> Iterator[tuple[Record, Features]]:
        with self._reading(tenant) as db:
            rows = db.run("profiles_by_id", tenant=tenant, ids=json_array(ids)).fetchall()
        return self._with_features(tenant, rows)

    def passing(self, tenant: str, now: datetime, *, until: datetime) -> list[str]:
        """Return the ids of active volatile memories without a key that were not confirmed since an instant."""
        values = {"now": to_micros(now), "until": to_micros(until)}
        return [name for (name,) in self._run("passing", tenant, **values)]

    def profiles(
        self, tenant: str, *, after: int, as_of: int | None = None
    ) -> Iterator[tuple[str, IndexedMemory | None]]:
        """Yield (id, memory) for every memory changed after a position, oldest first; None if it is not active."""
        with self._reading(tenant) as db:
            if as_of is not None:
                yield from self._profiles_as_of(db, tenant, as_of)
            else:
                for row, features in map(split_record_row, db.stream("profiles", tenant=tenant, after=after)):
                    profile = None
                    if row.status == "active" and (profile := profile_of(self._sealer, tenant, row, features)) is None:
                        self._on_damaged_row(tenant)
                    yield row.id, profile

    def profiles_of(self, tenant: str, ids: Collection[str]) -> Iterator[tuple[str, IndexedMemory | None]]:
        """Yield (id, memory) of some memories, in no stated order; None if it is not active or is damaged."""
        with self._reading(tenant) as db:
            rows = db.run("profiles_by_id", tenant=tenant, ids=json_array(ids)).fetchall()
            for row, features in map(split_record_row, rows):
                active = row.status == "active"
                yield row.id, profile_of(self._sealer, tenant, row, features) if active else None

    def _on_damaged_row(self, tenant: str) -> None:
        """Called when a read of all rows leaves out a damaged one."""

    def _profiles_as_of(self, db: Connection, tenant: str, as_of: int) -> Iterator[tuple[str, IndexedMemory | None]]:
        """Yield the memories of an earlier state, with features if they are of the version of that time."""
        width = len(EventRow._fields)
        for row in db.stream("indexed_as_of", tenant=tenant, as_of=as_of):
            event, arrival, cells = EventRow._make(row[:width]), row[width], row[width + 1 :]
            profile = None
            try:
                record = self._record(db, tenant, event, as_of)
                if record.status is Status.ACTIVE and arrival is not None and event.payload is not None:
                    at = event.seq * MAX_EVENTS_PER_COMMIT + event.n
                    row_then = record_row(self._sealer, tenant, at, arrival, record, event.payload)
                    features = None if cells[0] is None else FeatureRow._make(cells)
                    profile = profile_of(self._sealer, tenant, row_then, features)
            except Tampered as exc:
                _log.warning("memory %s was left out: %s", event.memory_id, exc, extra={"action": "damaged"})
            yield event.memory_id, profile

    # --- duplicates

    def duplicate_candidates(
        self, tenant: str, asked: Sequence[tuple[Record, Features]], now: datetime
    ) -> list[dict[str, bool]]:
        """Return for each record the ids of up to 8 likely duplicates, and whether each must be read.

        Candidates are live and have an equal digest or share two minhashes. Equal digests come first, by id; then the
        most shared minhashes, ties by newer position. They may be of another partition, see (5). One must be read if it
        may state the same by its trait, or if it was revised.
        """
        with self._reading(tenant) as db:
            return _duplicate_candidates(db, tenant, asked, now)

    # --- counts

    def queue_change_counter(self, tenant: str) -> tuple[int, ...]:
        """Return values that change with the review queue; the number of pending proposals comes first."""
        with self._reading(tenant) as db:
            return tuple(db.run("facts_queue", tenant=tenant).fetchone())

    def facts(self, tenant: str, now: datetime, *, scopes: ScopeRange | None = None) -> dict[str, Any]:
        """Return JSON-safe counts for ``status``, with ``scopes`` of the memories and blobs there and no queue.

        ``by_status`` counts all memories, with expiry computed; every other ``by_*`` counts live ones.
        ``bloat`` is events per live memory. Averages are over live memories, 0 without any.
        """
        every, values = scopes is None, {"tenant": tenant, **scope_parameters(scopes)}
        with self._reading(tenant) as db:
            attached = {name for (name,) in db.run("attached_blobs", values)}
            blobs = {
                row[2]: json.loads(row[8])["blob"]["bytes"]
                for row in db.run("documents", tenant=tenant, kind="blobs")
                if every or row[2] in attached
            }
            found = count_memories(db, tenant, scopes, to_micros(now))
            live = found["live"]
            events, commits = db.run("facts_journal" if every else "facts_journal_in", values).fetchone()
            depth, oldest, _ = db.run("facts_queue", tenant=tenant).fetchone() if every else (0, None, None)
            used, uses = db.run("facts_usage", {**values, "now": to_micros(now)}).fetchone()
            return found | {
                "events": events,
                "commits": commits,
                "bloat": round(events / live, 4) if live else 0.0,
                "quarantine": depth,
                "quarantine_oldest": None if oldest is None else from_micros(oldest).isoformat(),
                "average_uses": round(uses / live, 4) if live else 0.0,
                "used": used,
                "blobs": {
                    "count": len(blobs),
                    "bytes": sum(blobs.values()),
                    "unattached": len(blobs.keys() - attached),
                },
                "schema": db.execute("SELECT max(number) FROM migrations").fetchone()[0],
            }


class StoreReader(MemoryReads, ListReads, JournalReads, UseReads, CandidateReads):
    """All reads of one state: of the store, or of a writer's own transaction."""

    def least_worth(self, tenant: str, tier: str, scopes: Sequence[str]) -> Iterator[str]:
        """Yield the ids of memories of a tier in some scopes, in the order in which the full tier archives them.

        They are active and not sensitive, and no person said them. The least important comes first; a use raises the
        importance at once. Equal ones are in order of arrival.
        """
        with self._reading(tenant) as db:
            streams = [db.stream("least_worth", tenant=tenant, tier=tier, scope=scope) for scope in scopes]
            yield from self._by_worth(tenant, merge(*streams))

    def least_worth_of_tier(self, tenant: str, tier: str, *, owner: bool) -> Iterator[str]:
        """Yield the ids of a tier's active memories, of the owner or of all others, in the same order."""
        with self._reading(tenant) as db:
            rows = db.stream("least_worth_of_tier", tenant=tenant, tier=tier, owner=int(owner))
            yield from self._by_worth(tenant, rows)

    def _by_worth(self, tenant: str, rows: Iterator[Row]) -> Iterator[str]:
        """Yield ids in the order of their worth with their uses, given rows in the order of that without."""
        waiting: list[tuple[int, int, str]] = []
        number = _FIRST_BY_WORTH
        while page := list(islice(rows, number)):
            uses = self.usage(tenant, [row[2] for row in page])
            for worth, arrival, name, importance, since in page:
                count, last = uses.get(name, (0, None))
                used = worth if last is None else worth_of(importance, max(since, to_micros(last)), count)
                heappush(waiting, (used, arrival, name))
            # A use only raises the worth, so no later row comes before these.
            while waiting and waiting[0][0] <= page[-1][0]:
                yield heappop(waiting)[2]
            number = _MORE_BY_WORTH
        while waiting:
            yield heappop(waiting)[2]


def _duplicate_candidates(
    db: Connection, tenant: str, asked: Sequence[tuple[Record, Features]], now: datetime
) -> list[dict[str, bool]]:
    """Return the result of ``StoreReader.duplicate_candidates``; a memory without a record is left out."""
    minhashes = [_stored(record, features) for record, features in asked]
    micros = to_micros(now)
    # All is asked before the first answer is read. An empty digest belongs to no memory.
    equal = [_ask_equal(db, tenant, *each, micros) if each[1].digest else None for each in asked]
    holders = _minhash_holders(db, tenant, minhashes)
    equals = [[] if rows is None else [position for _, position in sorted(rows)] for rows in equal]
    ranked: list[list[int]] = []
    for placed in minhashes:
        crowds = [crowd for minhash in placed if (crowd := holders.get(minhash))]
        shared = Counter(chain.from_iterable([crowd[:MAX_HOLDERS_PER_MINHASH] for crowd in crowds]))
        # Positions rise with time: of equal matches, the memory changed last comes first.
        counted = sorted(
            ((count, int(each)) for each, count in shared.items() if count >= MIN_SHARED_MINHASHES), reverse=True
        )
        ranked.append([position for _, position in counted])
    order = [list(dict.fromkeys([*same, *near])) for same, near in zip(equals, ranked, strict=True)]
    rows_by_position = _rows_at(
        db, tenant, {position for places in order for position in places[:MAX_DUPLICATE_CANDIDATES]}
    )
    found: list[dict[str, bool]] = []
    for (record, features), same, places in zip(asked, equals, order, strict=True):
        first = _live_candidates(places[:MAX_DUPLICATE_CANDIDATES], rows_by_position, record, features, same, micros)
        if len(first) < MAX_DUPLICATE_CANDIDATES and len(places) > MAX_DUPLICATE_CANDIDATES:
            # Many of them have expired, so all of them are checked.
            first = _live_candidates(places, _rows_at(db, tenant, places), record, features, same, micros)
        found.append(first)
    return found


def _live_candidates(
    positions: Sequence[int],
    rows_by_position: Mapping[int, Row],
    asked: Record,
    features: Features,
    equal: Sequence[int],
    now: int,
) -> dict[str, bool]:
    """Return the first live memories by their rows; one with an empty trait must be read."""
    found: dict[str, bool] = {}
    for position in positions:
        row = rows_by_position.get(position)
        if row is None:
            continue
        _, name, version, status, expires_at, trait = row
        if name == asked.id or status != "active" or (expires_at is not None and expires_at <= now):
            continue
        kindred = position in equal or not trait or not features.trait or trait == features.trait
        found[name] = kindred or version != 1
        if len(found) == MAX_DUPLICATE_CANDIDATES:
            break
    return found


def _stored(record: Record, features: Features) -> set[int]:
    minhashes = features.marks
    if minhashes and not 0 <= min(minhashes) <= max(minhashes) < 1 << 63:
        minhashes = unpack_minhashes(pack_minhashes(minhashes))
    return set(partitioned_minhashes(dedup_partition(record), minhashes))


def _minhash_holders(db: Connection, tenant: str, minhashes: Iterable[set[int]]) -> dict[int, list[str]]:
    """Return by minhash the positions of its newest memories, as digits."""
    wanted: set[int] = set().union(*minhashes)
    # One more than counted, because the memory itself may be among them.
    values = {"tenant": tenant, "marks": str(sorted(wanted)), "most": MAX_HOLDERS_PER_MINHASH + 1}
    rows = db.run("minhash_holders", values)
    return {minhash: positions.split(" ") for minhash, positions in rows if positions is not None}


def _ask_equal(db: Connection, tenant: str, record: Record, features: Features, now: int) -> Cursor:
    values = {
        "tenant": tenant,
        "digest": features.digest,
        "id": record.id,
        "tier": record.tier.value,
        "scope": record.scope,
        "sensitivity": record.sensitivity.value,
        "now": now,
    }
    return db.run("same_digest", values)


def _rows_at(db: Connection, tenant: str, positions: Collection[int]) -> dict[int, Row]:
    if not positions:
        return {}
    return {row[0]: row for row in db.run("likely", tenant=tenant, positions=str(sorted(positions)))}
