"""The in-process indexes, one for each tenant, and the features that they are built from.

At every search an index is brought up to the head of the journal, commits of other processes included, so that the next
recall finds what was just written. An index contains active memories only; expiry is checked at search.
The indexes of all tenants share a limit of bytes: the least recently searched leave first, and are loaded when they
are searched again. The one that is searched stays, however large.
A large index is stored in a file next to the store, and again when it has changed enough. A process begins with the
file and applies the changes since. Without a file memories are read in batches, so that a cold start needs little more
memory than the index itself.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from keepward.errors import KeepwardError
from keepward.locks import ForkSafeLock
from keepward.ports.index_parts import DamagedIndex, IndexedState
from keepward.ports.store import IndexedMemory
from keepward.retrieval import index, tokenizer, vector_index
from keepward.retrieval.chunking import CURRENT_VERSIONS
from keepward.retrieval.index import Index
from keepward.retrieval.tokenizer import has_current_layout
from keepward.services.search.features import (
    text_features,
)
from keepward.storage.reads import StoreReader
from keepward.storage.rows import MAX_EVENTS_PER_COMMIT

if TYPE_CHECKING:
    from keepward.retrieval.index import Query
    from keepward.storage.index_files import IndexFile
    from keepward.storage.store import EventStore

_log = logging.getLogger(__name__)
#: Cached indexes of past states.
MAX_PAST_INDEXES = 2
#: Bytes that the indexes of all tenants may take together.
MAX_BYTES = 1 << 30
#: Memories that are added together.
_READ_BATCH = 1_000
#: The smallest index that is stored: reading it takes as long as building it.
MIN_STORED = 2_000
#: An index is stored again after this many changes, or a share of it.
MAX_CHANGES, MAX_CHANGED_SHARE = 1_000, 0.02
#: Bytes that an index of a file counts, for what it takes in addition to its arrays.
_MAPPED_BYTES = 4 << 20
_T = TypeVar("_T")


@dataclass(slots=True)
class _Live:
    index: Index
    #: Seq of the last commit that it includes.
    seq: int = 0
    position: int = 0
    #: The file that it began with.
    file: IndexFile | None = None
    #: Erasures when it was brought up to date.
    erasures: int = 0
    #: The last reindexing before it was built.
    reindexed: str = ""
    #: Memories that have changed since it was stored.
    changes: int = 0
    #: Whether it could not be stored.
    unwritable: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory."""
        return self.index.nbytes + (0 if self.file is None else _MAPPED_BYTES)

    def is_due(self) -> bool:
        """Whether it has changed enough to be stored."""
        if self.unwritable:
            return False
        if self.file is None:
            return len(self.index) >= MIN_STORED
        return self.changes > _most_changes(len(self.index))


def _most_changes(entries: int) -> int:
    return max(MAX_CHANGES, int(entries * MAX_CHANGED_SHARE))


@dataclass(slots=True, weakref_slot=True)
class IndexCache:
    """The indexes of one opened store; a search must hold ``lock``."""

    lock: ForkSafeLock = field(init=False)
    max_bytes: int = MAX_BYTES
    #: The least recently searched first.
    _live: OrderedDict[str, _Live] = field(default_factory=OrderedDict)
    #: Tenants whose memories all had stored vectors of a model when they were last read.
    _embedded: set[tuple[str, str]] = field(default_factory=set)
    _past: OrderedDict[tuple[str, int], Index] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.lock = ForkSafeLock(self.clear)

    def clear(self) -> None:
        """Drop everything."""
        self._live, self._embedded, self._past = OrderedDict(), set(), OrderedDict()

    def current(self, store: EventStore, tenant: str) -> Index:
        """Return the index of the tenant's present state; the caller must hold ``lock``.

        Raises:
            DamagedIndex: see ``retrying``.
        """
        state = store.indexed_state(tenant)
        live = self._live.get(tenant)
        if live is not None and live.file is not None and not live.file.is_unchanged():
            # Another process wrote a newer file, or this one was changed.
            live = None
        if live is None:
            live = self._opened(store, tenant) or self._empty()
        self._live[tenant] = live
        self._live.move_to_end(tenant)
        if state.seq != live.seq or live.is_due():
            # What was erased must not stay in the file that an index reads.
            must_store = live.file is not None and live.erasures != state.erasures
            state = self._apply_changes(store, tenant, live)
            if must_store or live.is_due():
                stored = self._store(store, tenant, live, state)
                if stored is None and must_store:
                    self.drop(store, tenant)
                    stored = self._empty(unwritable=True)
                    self._apply_changes(store, tenant, stored)
                live = self._live[tenant] = stored or live
            self._free_bytes()
        return live.index

    @staticmethod
    def _empty(*, unwritable: bool = False) -> _Live:
        return _Live(Index(), unwritable=unwritable)

    def _apply_changes(self, store: EventStore, tenant: str, live: _Live) -> IndexedState:
        """Bring an index up to the present state, and return that."""
        with store.read_snapshot(tenant):
            state = store.indexed_state(tenant)
            if not live.seq:
                live.reindexed = store.reindexed(tenant)
            for added, removed, position in _index_changes(store, tenant, store.profiles(tenant, after=live.position)):
                live.index.apply(added, removed)
                live.position = max(live.position, position)
                live.changes += len(added) + len(removed)
        live.seq, live.erasures = state.seq, state.erasures
        live.position = max(live.position, (state.seq + 1) * MAX_EVENTS_PER_COMMIT - 1)
        return state

    def _free_bytes(self) -> None:
        while len(self._live) > 1 and sum(live.nbytes for live in self._live.values()) > self.max_bytes:
            self._live.popitem(last=False)

    def _opened(self, store: EventStore, tenant: str, *, erased: bool = False) -> _Live | None:
        """Return the index of the newest file that can be believed; with ``erased`` also from before an erasure."""
        files = store.index_files()
        if files is None or not files.usable:
            return None

        def is_past(file: IndexFile) -> bool:
            known = file.facts["reindexed"] == store.reindexed(tenant)
            return known and store.was_at(tenant, file.state, erased=erased)

        file = files.open(tenant, _release(), is_past)
        if file is None:
            return None
        index = Index.from_parts(file.parts, [(model, dim) for model, dim in file.facts["spaces"]])
        self._embedded.update((tenant, model) for model in file.facts["embedded"])
        live = _Live(index, seq=file.state.seq, position=file.facts["position"], file=file)
        live.erasures, live.reindexed = file.state.erasures, file.facts["reindexed"]
        return live

    def _store(self, store: EventStore, tenant: str, live: _Live, state: IndexedState) -> _Live | None:
        """Write an index to a file; return the one that begins with it, or None."""
        files = store.index_files()
        live.unwritable = True
        if files is None or not files.usable or store.has_damage(tenant):
            return None
        entries = len(live.index)
        facts = {
            "spaces": live.index.spaces,
            "position": live.position,
            "reindexed": live.reindexed,
            "embedded": [model for name, model in sorted(self._embedded) if name == tenant],
        }
        try:
            files.write(
                *(tenant, _release(), state, facts, live.index.parts()),
                entries=entries,
                spare=_most_changes(entries) * 5 // 4,
                is_present=lambda: store.erasure_count(tenant) == state.erasures,
            )
        except (OSError, KeepwardError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            _log.info("an index was not stored: %s", why, extra={"action": "index_not_stored"})
            return None
        stored = self._opened(store, tenant)
        return None if stored is None or stored.seq < live.seq else stored

    def retrying(self, store: EventStore, tenant: str, read: Callable[[], _T]) -> _T:
        """Call a function that reads a tenant's index; call it again if the file of the index proved to be damaged."""
        try:
            return read()
        except DamagedIndex as exc:
            _log.warning("an index file was dropped and is built again: %s", exc, extra={"action": "index_dropped"})
            self.drop(store, tenant)
            return read()

    def ask_changes(self, store: StoreReader, tenant: str, head: int) -> None:
        """Let the changes since the last search come with the answer to the next read, if there are any."""
        live = self._live.get(tenant)
        if live is not None and live.seq != head:
            store.ask_ahead("profiles", tenant, pages=True, after=live.position)

    def containing(self, store: EventStore, tenant: str, ids: Collection[str]) -> Index:
        """Return an index of these memories in the present state."""
        index = Index()
        for added, _, _ in _index_changes(store, tenant, store.profiles_of(tenant, ids)):
            index.apply(added)
        return index

    def is_small(self, tenant: str, limit: int) -> bool:
        """Whether a tenant's index is loaded and has at most ``limit`` memories."""
        live = self._live.get(tenant)
        return live is not None and len(live.index) <= limit

    def reload_vectors(self, store: EventStore, tenant: str, query: Query, *, complete: bool) -> None:
        """Read again the memories that lack a vector for a query, once the store has all of them.

        Vectors that another process computed do not move the head, so the index cannot notice them.
        """
        space = tenant, str(query.vector_model)
        if not complete:
            self._embedded.discard(space)
            return
        if space in self._embedded:
            return
        self.reload(store, tenant, self._live[tenant].index.ids_to_embed(query))
        self._embedded.add(space)

    def reload(self, store: EventStore, tenant: str, ids: Sequence[str]) -> None:
        """Read some memories again into a tenant's index, if it is loaded."""
        # Who waits for the lock has a connection, so whoever has the lock must not wait for one.
        with store.read_snapshot(tenant), self.lock:
            live = self._live.get(tenant)
            if live is None:
                return
            for start in range(0, len(ids), _READ_BATCH):
                rows = store.profiles_of(tenant, ids[start : start + _READ_BATCH])
                for added, removed, _ in _index_changes(store, tenant, rows):
                    live.index.apply(added, removed)
                    live.changes += len(added) + len(removed)

    def at(self, store: StoreReader, tenant: str, seq: int) -> Index:
        """Return the index of the state after a commit; the caller must hold ``lock``."""
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

    def drop(self, store: EventStore, tenant: str) -> None:
        """Drop a tenant's indexes and their files; the next search rebuilds them."""
        with self.lock:
            self._forget(tenant)
            if (files := store.index_files()) is not None:
                files.drop(tenant)

    def _forget(self, tenant: str) -> None:
        self._live.pop(tenant, None)
        for key in [key for key in self._past if key[0] == tenant]:
            del self._past[key]

    def erase(self, store: EventStore, tenant: str) -> None:
        """Drop what was erased from a tenant's indexes and their files. The erasure is stored, so nothing is raised."""
        files = store.index_files()
        with ExitStack() as block:
            with suppress(KeepwardError):
                block.enter_context(store.read_snapshot(tenant))
            block.enter_context(self.lock)
            live = self._live.get(tenant)
            self._forget(tenant)
            stored = None
            # Without a new file the next search builds the index.
            with suppress(DamagedIndex, KeepwardError, OSError):
                if live is None or live.file is None or not live.file.is_unchanged():
                    live = self._opened(store, tenant, erased=True)
                if live is not None:
                    stored = self._store(store, tenant, live, self._apply_changes(store, tenant, live))
            self._live |= {} if stored is None else {tenant: stored}
            but = None if stored is None or stored.file is None else stored.file.path
            if files is not None and not files.drop(tenant, but=but):
                text = "an index file may have erased content, and cannot be removed: close what has it open"
                _log.warning(text, extra={"action": "index_not_removed"})

    def drop_erased_files(self, store: EventStore, tenant: str) -> bool:
        """Remove the files of a tenant from before its last erasure; return whether that succeeded."""
        files = store.index_files()
        if files is None:
            return True
        with store.read_snapshot(tenant), self.lock:
            live = self._live.get(tenant)
            is_new = live is not None and live.file is not None and live.erasures == store.erasure_count(tenant)
            return files.drop(tenant, but=live.file.path if live and live.file and is_new else None)


def _release() -> str:
    """Return what an index depends on apart from the store."""
    layouts = (index.LAYOUT, tokenizer.PACK_VERSION, vector_index.PACK_VERSION)
    return " ".join(map(str, (*layouts, *CURRENT_VERSIONS)))


def _index_changes(
    store: StoreReader, tenant: str, rows: Iterator[tuple[str, IndexedMemory | None]], *, as_of: int | None = None
) -> Iterator[tuple[list[IndexedMemory], list[str], int]]:
    """Yield batches of memories to add and ids to remove, with the position that the index reaches by each."""
    while batch := list(islice(rows, _READ_BATCH)):
        added: dict[str, IndexedMemory] = {}
        removed: list[str] = []
        position = 0
        for memory_id, row in batch:
            if row is None:
                added.pop(memory_id, None)
                removed.append(memory_id)
            else:
                position = max(position, row.position)
                added[memory_id] = row
        # Words of memories without stored features (a past state, a restored journal) or with those of an older layout.
        unknown = [name for name, row in added.items() if not has_current_layout(row.features.terms)]
        for record in store.records(tenant, unknown, as_of=as_of).records if unknown else ():
            row = added[record.id]
            added[record.id] = row._replace(features=replace(row.features, terms=text_features(record).terms))
        yield [row for row in added.values() if row.features.terms], removed, position
