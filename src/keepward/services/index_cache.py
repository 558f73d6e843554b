"""The in-process indexes, one for each tenant and level with the journal, and the features that they are made of.

Invariants
(1) An index is level with the journal's position at every search: commits of other processes are taken in
    first, so that what was written is found by the very next recall.
(2) An index holds active memories alone; the clock decides about expiry at search.
(3) Indexes of several tenants take so many bytes together: the tenants that were searched longest ago leave first, and
    are read anew when they are searched again. The one that is searched stays, however large.
(4) Memories are taken in a few thousand at a time: what is read of them is let go before the next ones are read, so
    that a cold start holds little more than the index it makes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from keepward.core.memory import Record, Status
from keepward.core.query import EVERYTHING
from keepward.errors import ModelUnavailable
from keepward.locks import ForkSafeLock
from keepward.ports.store import Features, IndexedMemory, RankingRow
from keepward.retrieval.chunking import CURRENT_VERSIONS, PROVIDED, PROVIDED_PREFIX
from keepward.services.search_features import answered_questions, text_features, with_vectors
from keepward.storage.reads import Reader

if TYPE_CHECKING:
    from keepward.retrieval.index import Index
    from keepward.services.request_context import Engine, RequestContext

#: States of the past kept at hand.
MAX_PAST_INDEXES = 2
#: Bytes that the indexes of all tenants may take together.
MAX_BYTES = 1 << 30
#: Memories taken in together.
_READ_BATCH = 2_000
#: Memories embedded between two writes of ``reindex``.
EMBEDDING_BATCH = 64


@dataclass(slots=True)
class _Live:
    index: Index
    #: Seq of the last commit taken in.
    seq: int = 0
    position: int = 0
    #: Bytes, as it was last brought level.
    size: int = 0


@dataclass(slots=True, weakref_slot=True)
class IndexCache:
    """The indexes of one opened store. Searches hold ``lock``."""

    lock: ForkSafeLock = field(init=False)
    most_bytes: int = MAX_BYTES
    #: The one searched longest ago first.
    _live: OrderedDict[str, _Live] = field(default_factory=OrderedDict)
    #: Tenants whose memories, as they were last read, all had vectors in the store.
    _whole: set[str] = field(default_factory=set)
    _past: OrderedDict[tuple[str, int], Index] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.lock = ForkSafeLock(self.clear)

    def clear(self) -> None:
        """Drop everything."""
        self._live, self._whole, self._past = OrderedDict(), set(), OrderedDict()

    def current(self, store: Reader, tenant: str) -> Index:
        """Return the index of the tenant's present state; the caller holds ``lock``."""
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
            while len(self._live) > 1 and sum(each.size for each in self._live.values()) > self.most_bytes:
                self._live.popitem(last=False)
        return live.index

    def containing(self, engine: Engine, tenant: str, ids: Collection[str]) -> Index:
        """Return an index of the present state that holds at least these memories; the caller holds ``lock``."""
        from keepward.retrieval.index import Index

        if not uses_database_index(engine, tenant):
            return self.current(engine.store, tenant)
        some = Index()
        some.apply(engine.store.profiles_at(tenant, ids=ids))
        return some

    def is_small(self, tenant: str, most: int) -> bool:
        """Whether a tenant's index is at hand and has at most so many memories."""
        live = self._live.get(tenant)
        return live is not None and len(live.index) <= most

    def reload_needed(self, tenant: str, *, whole: bool) -> bool:
        """Note whether the store has all vectors; return True where an index that lacks some is to be read anew.

        Vectors that another process computed change no head, so an index does not hear of them.
        """
        if not whole:
            self._whole.discard(tenant)
            return False
        if tenant in self._whole:
            return False
        self.drop(tenant)
        self._whole.add(tenant)
        return True

    def at(self, store: Reader, tenant: str, seq: int) -> Index:
        """Return the index of the state after a commit; the caller holds ``lock``."""
        from keepward.retrieval.index import Index

        kept = self._past.get((tenant, seq))
        if kept is None:
            kept = Index()
            for added, _, _ in _index_changes(store, tenant, store.profiles(tenant, after=0, as_of=seq), as_of=seq):
                kept.apply(added)
            self._past[tenant, seq] = kept
            while len(self._past) > MAX_PAST_INDEXES:
                self._past.popitem(last=False)
        else:
            self._past.move_to_end((tenant, seq))
        return kept

    def drop(self, tenant: str) -> None:
        """Drop a tenant's indexes, so that the next search reads them anew."""
        with self.lock:
            self._live.pop(tenant, None)
            for key in [key for key in self._past if key[0] == tenant]:
                del self._past[key]


def wants_database_index(engine: Engine, tenant: str) -> bool:
    """Whether policy has a tenant's candidates come from the database, where that can give them."""
    if engine.policy.candidates != "auto":
        return engine.policy.candidates == "database"
    most = engine.policy.process_limit
    return not engine.indexes.is_small(tenant, most) and sum(engine.store.tally(tenant).values()) > most


def uses_database_index(engine: Engine, tenant: str) -> bool:
    """Whether a tenant's candidates come from the database; the one place that chooses."""
    return wants_database_index(engine, tenant) and engine.store.searchable(tenant)


def sync_database_index(engine: Engine, tenant: str, between: Callable[[], None] | None = None) -> None:
    """Have the database make its own indexes of a tenant that is to be searched there, or let go of them."""
    if not wants_database_index(engine, tenant):
        if engine.policy.candidates == "process" and engine.store.searchable(tenant):
            with engine.store.write() as writer:
                writer.forget_candidates(tenant)
        return
    done = engine.store.searchable(tenant)
    while not done:
        if between is not None:
            between()
        with engine.store.write() as writer:
            done = writer.index_next_batch(tenant)
    engine.store.index_vectors(tenant)


def _index_changes(
    store: Reader, tenant: str, rows: Iterator[tuple[str, RankingRow | None]], *, as_of: int | None = None
) -> Iterator[tuple[list[RankingRow], list[str], int]]:
    """Yield by parts what to add and what to remove, and the position that the index is level with then."""
    while part := list(islice(rows, _READ_BATCH)):
        yield _read(store, tenant, part, as_of)


def _read(
    store: Reader, tenant: str, rows: list[tuple[str, RankingRow | None]], as_of: int | None
) -> tuple[list[RankingRow], list[str], int]:
    added: dict[str, RankingRow] = {}
    removed: list[str] = []
    position = 0
    for memory_id, profile in rows:
        if profile is None:
            added.pop(memory_id, None)
            removed.append(memory_id)
        else:
            position = max(position, profile.touched)
            added[memory_id] = profile
    from keepward.retrieval.tokenizer import has_current_layout

    # A version whose features were not kept (an earlier state, a restored journal), or were by an older release, is
    # found by its words.
    unknown = [each.id for each in added.values() if not has_current_layout(each.terms)]
    for record in store.records(tenant, unknown, as_of=as_of).records if unknown else ():
        added[record.id] = added[record.id]._replace(terms=text_features(record).terms)
    return [each for each in added.values() if each.terms], removed, position


def rebuild(session: RequestContext) -> int:
    """Compute the tenant's records anew from the journal; return how many there are."""
    count = session.store.rebuild(session.tenant)
    session.indexes.drop(session.tenant)
    return count


def lacks_embedding(session: RequestContext) -> bool:
    """Whether a live memory has no vectors of the embedder in use by the present recipe."""
    model = session.embedder
    return model is not None and session.store.unembedded(
        session.tenant, session.clock.now(), model.id, CURRENT_VERSIONS
    )


def reindex(
    session: RequestContext,
    *,
    ended: bool = False,
    batch: int = EMBEDDING_BATCH,
    before_batch: Callable[[], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Bring every active memory's features up to the present embedder, recipe and release; return how many there were.

    What is done is written batch by batch, and a second run goes on with the rest. A vector that came with its memory
    stays, and without an embedder so does every other.

    ``ended`` also computes the words of memories that no longer hold, as after a journal was restored.
    ``before_batch`` may raise, and what was computed until then is kept.

    Raises:
        ModelUnavailable: the embedder failed; what it had done is kept, and so is what the others had.
    """
    wanted = session.embedder.id if session.embedder else None
    if ended:
        _features_of_inactive(session)
    active = list(session.store.indexed(session.tenant))
    stale = [each for each in active if _stale(each, wanted)]
    # A turn's vectors hold the question that it answers, as they did when it was told.
    in_order = [each.record for each in sorted(active, key=lambda each: each.arrival)] if stale else []
    asked = answered_questions(in_order, lambda _: None)
    for start in range(0, len(stale), batch):
        if before_batch is not None:
            before_batch()
        these = stale[start : start + batch]
        part = [each.record for each in these]
        computed = with_vectors(session.embedder, part, [_recomputed_features(each, wanted) for each in these], asked)
        if wanted is not None and computed[0].model != wanted and not ended:
            raise ModelUnavailable("the embedder failed; try again, and this goes on where it stopped")
        _write_features(session, part, computed)
        if on_progress is not None:
            on_progress(min(start + batch, len(stale)), len(stale))
    session.indexes.drop(session.tenant)
    sync_database_index(session.engine, session.tenant, before_batch)
    return len(stale)


def _stale(each: IndexedMemory, wanted: str | None) -> bool:
    from keepward.retrieval.tokenizer import has_current_layout

    if wanted is None:
        # Only a vector says by which recipe the words were analysed.
        return each.features.terms != text_features(each.record).terms
    of_another = each.features.model != wanted or each.features.recipe not in CURRENT_VERSIONS
    return of_another or not has_current_layout(each.features.terms)


def _recomputed_features(each: IndexedMemory, wanted: str | None) -> Features:
    """Return the words of a memory, analysed anew, and those of its vectors that no embedder is to make anew."""
    found, had = text_features(each.record), each.features
    if wanted is None:
        return replace(found, model=had.model, recipe=had.recipe, vectors=had.vectors, units=had.units)
    if had.model == wanted and had.recipe.startswith(PROVIDED_PREFIX):
        return replace(found, model=had.model, recipe=PROVIDED, vectors=had.vectors, units=had.units)
    return found


def _features_of_inactive(session: RequestContext) -> None:
    records = session.store.find(session.tenant, EVERYTHING, live_at=None, limit=None).records
    gone = [record for record in records if record.status is not Status.ACTIVE]
    for start in range(0, len(gone), EMBEDDING_BATCH):
        part = gone[start : start + EMBEDDING_BATCH]
        _write_features(session, part, [text_features(record) for record in part])


def _write_features(session: RequestContext, records: Sequence[Record], computed: Sequence[Features]) -> None:
    versions = {record.id: record.version for record in records}
    with session.store.write() as writer:
        writer.put_features(session.tenant, dict(zip(versions, computed, strict=True)), versions)
