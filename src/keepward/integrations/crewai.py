"""The storage of CrewAI's memory over a handle on memories.

A scope of CrewAI is one below the handle's own, a record a memory whose tags are its categories. CrewAI searches by
vectors: its memory is given ``embedder`` of the storage as well, which knows again of which text a vector was made, so
that a search is a recall. Needs the extra ``crewai``.

Invariants
(1) A refused or quarantined write is an error, which CrewAI reports as a failed save; the other records are stored.
(2) What is deleted is retired: it can be restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from crewai.memory.types import MemoryRecord, ScopeInfo

from keepward.core.memory import Record
from keepward.core.query import Filters
from keepward.embedding.hashed import HashedEmbedder
from keepward.errors import NotFound
from keepward.integrations import (
    KINDS,
    ORIGIN_FIELD,
    emit_warnings,
    origin_of,
    require_all_stored,
    text_with_origin,
    text_without_origin,
)
from keepward.integrations.embedder import TextByVector
from keepward.integrations.messages import async_method
from keepward.integrations.namespaces import key_of, labels_of, name_of, to_namespace, to_scope
from keepward.memory import Memory

#: What keys of CrewAI's records begin with; what other surfaces keep is named by its id.
_KEY_PREFIX = "crewai:"
_PRIVATE = "_private"


class KeepwardStorage:
    """CrewAI's storage over a handle; scopes lie below the handle's.

    ``embed`` makes the vectors by which CrewAI itself compares what it is about to save; without one they are made of
    hashed words. What is recalled is decided by the embedder of the handle's store.
    """

    def __init__(self, mem: Memory, embed: Callable[[list[str]], Any] | None = None) -> None:
        self.memory = mem
        self.embedder = TextByVector(embed or HashedEmbedder().embed)

    def save(self, records: list[MemoryRecord]) -> None:
        """Save records.

        Raises:
            NotStored: a gate refused one, or holds it for a person; the others are stored.
        """
        outcomes = []
        for scope in dict.fromkeys(each.scope for each in records):
            part = [_item(each) for each in records if each.scope == scope]
            outcomes += self._at(scope).remember_many(part, reason="saved")
        require_all_stored(outcomes)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        target = (self._at(record.scope).scope, _KEY_PREFIX + key_of(record.id))
        others = [each for each in self._named(record.id) if (each.scope, each.key) != target]
        self.save([record])
        self._retire(others)

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return what bears on the text of a vector, nearest first, with its cosine from 0 to 1."""
        handle, text = self._at(scope_prefix), self.embedder.text_of(query_embedding)
        asked: dict[str, Any] = {"within": handle.scope, "kinds": KINDS, "where": metadata_filter or None}
        # CrewAI compares scores with thresholds for cosines.
        hits = handle.recall(text, **asked, tags=categories or (), limit=limit, order="cosine").hits
        # Words alone never count as equal in meaning. An equal text is.
        scored = [(each.memory, 1.0 if each.memory.text == text else each.score) for each in hits]
        return [(self._record(memory), score) for memory, score in scored if score >= min_score]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Retire the records that match every condition, and return their number."""
        found = self._find(scope_prefix, tags=categories or (), where=metadata_filter or None)
        matching = [each for each in found if record_ids is None or _id(each) in record_ids]
        matching = [each for each in matching if older_than is None or _naive(each.created_at) < older_than]
        self._retire(matching)
        return len(matching)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        return next(map(self._record, self._named(record_id)), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records of a scope and those below, newest first."""
        if limit <= 0 or offset < 0:
            return []
        return list(map(self._record, self._find(scope_prefix, limit=limit, offset=offset)))

    def get_scope_info(self, scope: str) -> ScopeInfo:
        newest, oldest = self._find(scope, limit=1), self._find(scope, limit=1, ascending=True)
        return ScopeInfo(
            path="/" + "/".join(labels_of(scope)),
            record_count=self.count(scope),
            categories=sorted(self.list_categories(scope)),
            oldest_record=_naive(oldest[0].created_at) if oldest else None,
            newest_record=_naive(newest[0].created_at) if newest else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes right below another that have records, or have some that do."""
        labels = labels_of(parent)
        every = (to_namespace(self.memory.scope, each) for each in self._counts(parent, "scope"))
        return sorted({"/" + "/".join(each[: len(labels) + 1]) for each in every if len(each) > len(labels)})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records each category has, in a scope and below."""
        return self._counts(scope_prefix, "tag")

    def count(self, scope_prefix: str | None = None) -> int:
        """Return how many records there are in a scope and below."""
        return sum(self._counts(scope_prefix, "scope").values())

    def reset(self, scope_prefix: str | None = None) -> None:
        """Retire all records of a scope and those below."""
        self._retire(self._find(scope_prefix))

    asave, asearch, adelete = map(async_method, ("save", "search", "delete"))

    def _at(self, scope: str | None) -> Memory:
        return self.memory.at(scope=to_scope(self.memory.scope, labels_of(scope)))

    def _find(self, scope: str | None, **asked: Any) -> list[Record]:
        handle = self._at(scope)
        return list(handle.list_memories(within=handle.scope, kinds=KINDS, **{"limit": None, **asked}))

    def _named(self, record_id: str) -> list[Record]:
        found = self._find(None, key=_KEY_PREFIX + key_of(record_id))
        with suppress(NotFound):
            found = found or [self.memory.get(record_id)]
        return [each for each in found if each.status == "active" and each.kind in KINDS]

    def _counts(self, scope: str | None, of: str) -> dict[str, int]:
        handle = self._at(scope)
        filters = Filters(within=handle.scope, kinds=KINDS)
        counts = handle.facets(filters=filters, of=[of], most=100_000).facets[of]
        return {each.value: each.count for each in counts}

    def _retire(self, records: Iterable[Record]) -> None:
        for each in records:
            emit_warnings([self.memory.at(scope=each.scope).forget(each.id, reason="deleted")])

    def _record(self, record: Record) -> MemoryRecord:
        metadata = {name: value for name, value in record.metadata.items() if name != _PRIVATE}
        if origin := origin_of(record):
            metadata[ORIGIN_FIELD] = origin
        return MemoryRecord(
            id=_id(record),
            content=text_with_origin(record),
            scope="/" + "/".join(to_namespace(self.memory.scope, record.scope)),
            categories=list(record.tags),
            metadata=metadata,
            importance=record.importance,
            created_at=_naive(record.created_at),
            last_accessed=_naive(record.updated_at or record.created_at),
            source=record.speaker,
            private=_PRIVATE in record.metadata,
        )


def _item(record: MemoryRecord) -> dict[str, Any]:
    metadata = dict(record.metadata)
    origin = metadata.pop(ORIGIN_FIELD, None)
    return {
        "text": text_without_origin(record.content, origin),
        "key": _KEY_PREFIX + key_of(record.id),
        "tags": record.categories,
        "metadata": metadata | ({_PRIVATE: True} if record.private else {}),
        "importance": record.importance,
        "speaker": record.source,
        "tier": "archival",
        "kind": "fact",
    }


def _id(record: Record) -> str:
    key = record.key or ""
    return name_of(key.removeprefix(_KEY_PREFIX)) if key.startswith(_KEY_PREFIX) else record.id


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)  # as CrewAI writes instants
