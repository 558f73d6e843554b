"""The in-process indexes, one for each tenant, and the features that they are built from.

At every search an index is brought up to the head of the journal, commits of other processes included, so that the next
recall finds what was just written. An index contains active memories only; expiry is checked at search.
The indexes of all tenants share a limit of bytes: the least recently searched leave first, and are rebuilt when they
are searched again. The one that is searched stays, however large.
Memories are added in batches, so that a cold start needs little more memory than the index itself.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from keepward.core.memory import Record, Status
from keepward.core.query import EVERYTHING
from keepward.errors import ModelUnavailable, StoreUnavailable
from keepward.locks import ForkSafeLock
from keepward.ports.store import Features, IndexedMemory, RankingRow
from keepward.retrieval.chunking import CURRENT_VERSIONS, PROVIDED, PROVIDED_PREFIX
from keepward.services.search_features import (
    answered_questions,
    embedder_id,
    known_embedder_id,
    text_features,
    with_vectors,
)
from keepward.storage.reads import Reader

if TYPE_CHECKING:
    from keepward.retrieval.index import Index
    from keepward.services.request_context import Engine, RequestContext

_log = logging.getLogger(__name__)
#: Cached indexes of past states.
MAX_PAST_INDEXES = 2
#: Bytes that the indexes of all tenants may take together.
MAX_BYTES = 1 << 30
#: Memories that are added together.
_READ_BATCH = 2_000
#: Memories embedded between two writes of ``reindex``.
EMBEDDING_BATCH = 64


@dataclass(slots=True)
class _Live:
    index: Index
    #: Seq of the last commit that it includes.
    seq: int = 0
    position: int = 0
    #: Bytes after the last update.
    size: int = 0


@dataclass(slots=True, weakref_slot=True)
class IndexCache:
    """The indexes of one opened store; a search must hold ``lock``."""

    lock: ForkSafeLock = field(init=False)
    max_bytes: int = MAX_BYTES
    #: The least recently searched first.
    _live: OrderedDict[str, _Live] = field(default_factory=OrderedDict)
    #: Tenants whose memories all had stored vectors when they were last read.
    _embedded: set[str] = field(default_factory=set)
    _past: OrderedDict[tuple[str, int], Index] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.lock = ForkSafeLock(self.clear)

    def clear(self) -> None:
        """Drop everything."""
        self._live, self._embedded, self._past = OrderedDict(), set(), OrderedDict()

    def current(self, store: Reader, tenant: str) -> Index:
        """Return the index of the tenant's present state; the caller must hold ``lock``."""
        from keepward.retrieval.index import Index

        live = self._live.get(tenant)
        if live is None:
            live = self._live[tenant] = _Live(Index())
        self._live.move_to_end(tenant)
        head = store.head(tenant)
        if head.seq != live.seq:
            for added, removed, position in _index_changes(store, tenant, store.profiles(tenant, after=live.position)):
                live.index.apply(added, removed)
                live.position = max(live.position, position)
            live.seq, live.size = head.seq, live.index.nbytes
            while len(self._live) > 1 and sum(live.size for live in self._live.values()) > self.max_bytes:
                self._live.popitem(last=False)
        return live.index

    def containing(self, engine: Engine, tenant: str, ids: Collection[str]) -> Index:
        """Return an index of the present state with at least these memories; the caller must hold ``lock``."""
        from keepward.retrieval.index import Index

        if not uses_database_index(engine, tenant):
            return self.current(engine.store, tenant)
        index = Index()
        index.apply(engine.store.profiles_at(tenant, ids=ids))
        return index

    def is_small(self, tenant: str, limit: int) -> bool:
        """Whether a tenant's index is loaded and has at most ``limit`` memories."""
        live = self._live.get(tenant)
        return live is not None and len(live.index) <= limit

    def reload_needed(self, tenant: str, *, complete: bool) -> bool:
        """Record whether the store has all vectors; return whether an index without some of them must be reloaded.

        Vectors that another process computed do not move the head, so the index cannot notice them.
        """
        if not complete:
            self._embedded.discard(tenant)
            return False
        if tenant in self._embedded:
            return False
        self.drop(tenant)
        self._embedded.add(tenant)
        return True

    def at(self, store: Reader, tenant: str, seq: int) -> Index:
        """Return the index of the state after a commit; the caller must hold ``lock``."""
        from keepward.retrieval.index import Index

        past = self._past.get((tenant, seq))
        if past is None:
            past = Index()
            for added, _, _ in _index_changes(store, tenant, store.profiles(tenant, after=0, as_of=seq), as_of=seq):
                past.apply(added)
            self._past[tenant, seq] = past
            while len(self._past) > MAX_PAST_INDEXES:
                self._past.popitem(last=False)
        else:
            self._past.move_to_end((tenant, seq))
        return past

    def drop(self, tenant: str) -> None:
        """Drop a tenant's indexes; the next search rebuilds them."""
        with self.lock:
            self._live.pop(tenant, None)
            for key in [key for key in self._past if key[0] == tenant]:
                del self._past[key]


def wants_database_index(engine: Engine, tenant: str) -> bool:
    """Whether policy asks for candidates from the database."""
    if engine.policy.candidates != "auto":
        return engine.policy.candidates == "database"
    limit = engine.policy.process_limit
    return not engine.indexes.is_small(tenant, limit) and sum(engine.store.tally(tenant).values()) > limit


def uses_database_index(engine: Engine, tenant: str) -> bool:
    """Whether a tenant's candidates come from the database; every caller decides by this function."""
    return wants_database_index(engine, tenant) and engine.store.searchable(tenant)


def sync_database_index(engine: Engine, tenant: str, before_batch: Callable[[], None] | None = None) -> None:
    """Build the database's own indexes of a tenant if it is searched there, else drop them.

    Raises:
        StoreUnavailable: policy asks for candidates from a database that lacks pgvector.
    """
    if not wants_database_index(engine, tenant):
        if engine.policy.candidates == "process" and engine.store.searchable(tenant):
            with engine.store.write() as writer:
                writer.forget_candidates(tenant)
        return
    done = engine.store.searchable(tenant)
    if not done:
        try:
            engine.store.create_vectors()
        except StoreUnavailable as exc:
            if engine.policy.candidates == "database":
                raise
            _log.warning("%s; until then the process names them", exc, extra={"action": "candidates_failed"})
            return
    while not done:
        if before_batch is not None:
            before_batch()
        with engine.store.write() as writer:
            done = writer.index_next_batch(tenant)
    engine.store.index_vectors(tenant)


def _index_changes(
    store: Reader, tenant: str, rows: Iterator[tuple[str, RankingRow | None]], *, as_of: int | None = None
) -> Iterator[tuple[list[RankingRow], list[str], int]]:
    """Yield batches of rows to add and ids to remove, with the position that the index reaches by each."""
    from keepward.retrieval.tokenizer import has_current_layout

    while batch := list(islice(rows, _READ_BATCH)):
        added: dict[str, RankingRow] = {}
        removed: list[str] = []
        position = 0
        for memory_id, row in batch:
            if row is None:
                added.pop(memory_id, None)
                removed.append(memory_id)
            else:
                position = max(position, row.touched)
                added[memory_id] = row
        # Words of rows without stored features (a past state, a restored journal) or with features of an older release.
        unknown = [row.id for row in added.values() if not has_current_layout(row.terms)]
        for record in store.records(tenant, unknown, as_of=as_of).records if unknown else ():
            added[record.id] = added[record.id]._replace(terms=text_features(record).terms)
        yield [row for row in added.values() if row.terms], removed, position


def rebuild(session: RequestContext) -> int:
    """Recompute the tenant's records from the journal; return how many there are."""
    count = session.store.rebuild(session.tenant)
    session.indexes.drop(session.tenant)
    return count


def lacks_embedding(session: RequestContext) -> bool:
    """Whether an active memory has no vectors of the present embedder and version; False while it has no id."""
    model = known_embedder_id(session.embedder)
    return model is not None and session.store.unembedded(session.tenant, session.clock.now(), model, CURRENT_VERSIONS)


def reindex(
    session: RequestContext,
    *,
    ended: bool = False,
    batch: int = EMBEDDING_BATCH,
    before_batch: Callable[[], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Bring every active memory's features up to the present embedder, version and release; return how many changed.

    Each batch is written at once, and a second run continues with the rest. A vector that was supplied with its memory
    stays. Without an embedder so do all others.

    ``ended`` also computes the words of inactive memories, as after a journal was restored. If ``before_batch`` raises,
    the earlier batches stay.

    Raises:
        ModelUnavailable: the embedder failed; what was computed before stays, and the rest keeps its old features.
    """
    model = known_embedder_id(session.embedder)
    if model is None and session.embedder is not None and not ended:
        model = embedder_id(session.embedder)
    if ended:
        _recompute_inactive(session)
    active = list(session.store.indexed(session.tenant))
    stale = [memory for memory in active if _is_stale(memory, model)]
    # The vectors of a message include the question that it answers.
    in_order = [memory.record for memory in sorted(active, key=lambda memory: memory.arrival)] if stale else []
    questions = answered_questions(in_order, lambda _: None)
    for start in range(0, len(stale), batch):
        if before_batch is not None:
            before_batch()
        part = stale[start : start + batch]
        records = [memory.record for memory in part]
        features = [_recomputed_features(memory, model) for memory in part]
        try:
            computed = with_vectors(session.embedder, records, features, questions)
        except ModelUnavailable as exc:
            if not ended:
                raise ModelUnavailable(f"{exc}; try again, and this goes on where it stopped") from exc
            computed = features
        _write_features(session, records, computed)
        if on_progress is not None:
            on_progress(min(start + batch, len(stale)), len(stale))
    session.indexes.drop(session.tenant)
    sync_database_index(session.engine, session.tenant, before_batch)
    return len(stale)


def _is_stale(memory: IndexedMemory, model: str | None) -> bool:
    from keepward.retrieval.tokenizer import has_current_layout

    features = memory.features
    if model is None:
        # Without vectors there is no stored version, so compare the words.
        return features.terms != text_features(memory.record).terms
    other_version = features.model != model or features.recipe not in CURRENT_VERSIONS
    return other_version or not has_current_layout(features.terms)


def _recomputed_features(memory: IndexedMemory, model: str | None) -> Features:
    """Return the recomputed words of a memory, with its present vectors if the embedder must not replace them."""
    words, present = text_features(memory.record), memory.features
    if model is None:
        recipe = present.recipe
    elif present.model == model and present.recipe.startswith(PROVIDED_PREFIX):
        recipe = PROVIDED
    else:
        return words
    return replace(words, model=present.model, recipe=recipe, vectors=present.vectors, units=present.units)


def _recompute_inactive(session: RequestContext) -> None:
    records = session.store.find(session.tenant, EVERYTHING, live_at=None, limit=None).records
    inactive = [record for record in records if record.status is not Status.ACTIVE]
    for start in range(0, len(inactive), EMBEDDING_BATCH):
        batch = inactive[start : start + EMBEDDING_BATCH]
        _write_features(session, batch, [text_features(record) for record in batch])


def _write_features(session: RequestContext, records: Sequence[Record], computed: Sequence[Features]) -> None:
    versions = {record.id: record.version for record in records}
    with session.store.write() as writer:
        writer.put_features(session.tenant, dict(zip(versions, computed, strict=True)), versions)
