"""LangGraph's ``BaseStore`` over a handle on memories, for threads (``KeepwardStore``) and for an event loop.

A namespace is a scope below the handle's own, and an item is a memory with a key whose metadata is the value; it is
found by the text of its indexed fields. Needs the extra ``langgraph``.

Invariants
(1) A read that renews a time to live makes a commit only if at most half of that time is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.store import base
from langgraph.store.base.batch import AsyncBatchedBaseStore

from keepward.core.memory import Record, Tier
from keepward.core.query import Filters
from keepward.integrations import KINDS, ORIGIN_FIELD, emit_warnings, find_item, origin_of
from keepward.integrations.embedder import FunctionEmbedder
from keepward.integrations.messages import run_shielded
from keepward.integrations.namespaces import index_text, key_of, name_of, texts_of, to_namespace, to_scope
from keepward.memory import Memory

_EVERY = 100_000
_FILTER = re.compile(r"[a-zA-Z0-9_.-]+")


def embedder_of(index: base.IndexConfig) -> FunctionEmbedder:
    """Return the embeddings of an index configuration as the embedder that a store is opened with."""
    found, dims = base.ensure_embeddings(index["embed"]), index["dims"]
    return FunctionEmbedder(
        id=f"langchain:{type(found).__name__}:{dims}",
        dim=dims,
        function=found.embed_documents,
        query_function=found.embed_query,
    )


class KeepwardStore(base.BaseStore):
    """LangGraph's store over a handle; namespaces lie below the handle's scope.

    The embedder of the handle's store compares texts; ``embedder_of`` makes one from an index configuration. With an
    ``index``, the results of searches are sorted by cosine.
    """

    supports_ttl = True

    def __init__(self, mem: Memory, index: base.IndexConfig | None = None, ttl: base.TTLConfig | None = None) -> None:
        super().__init__()
        self.memory, self.index_config, self.ttl_config = mem, index, ttl
        self._fields = list((index or {}).get("fields") or ["$"])
        self._swept: set[str] = set()

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations: the reads, then the writes, of which the last to a key counts."""
        return self._run(list(ops))

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Do the same in a thread."""
        return await run_shielded(self._run, list(ops))

    def sweep_ttl(self) -> Any:
        """Return how many items have expired since the last call; expired items are never read."""
        found = self.memory.list_memories(within=self.memory.scope, statuses=["expired"], kinds=KINDS, limit=None)
        ended = {each.id for each in found}
        fresh, self._swept = ended - self._swept, ended
        return len(fresh)

    def start_ttl_sweeper(self, *_: Any, **__: Any) -> Any:
        """Return True: nothing has to run. Expired items are not read, and the job ``expire`` retires them."""
        return True

    stop_ttl_sweeper = start_ttl_sweeper

    def _run(self, ops: Sequence[base.Op]) -> list[base.Result]:
        for op in ops:
            base.validate_op_namespace(op)
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, base.PutOp)}
        # Reads see the state before the writes of the same batch.
        results = [None if isinstance(op, base.PutOp) else self._read(op) for op in ops]
        for namespace in dict.fromkeys(namespace for namespace, _ in puts):
            self._put(namespace, [op for op in puts.values() if op.namespace == namespace])
        return results

    def _read(self, op: base.GetOp | base.SearchOp | base.ListNamespacesOp) -> base.Result:
        if isinstance(op, base.ListNamespacesOp):
            return self._namespaces(op)
        renews = bool(op.refresh_ttl and self.ttl_config and self.ttl_config.get("refresh_on_read", False))
        if isinstance(op, base.SearchOp):
            return self._search(op, renews)
        record = self._get(op.namespace, op.key)
        return None if record is None else base.Item(**self._item_of(record, renews))

    def _at(self, namespace: Sequence[str]) -> Memory:
        return self.memory.at(scope=to_scope(self.memory.scope, namespace))

    def _get(self, namespace: Sequence[str], key: str) -> Record | None:
        return find_item(self._at(namespace), key)

    def _search(self, op: base.SearchOp, renews: bool) -> list[base.SearchItem]:
        handle, where = self._at(op.namespace_prefix), _where(op.filter or {})
        asked: dict[str, Any] = {"within": handle.scope, "where": where or None, "kinds": KINDS}
        if not op.query:
            listed = handle.list_memories(**asked, sort="changed", offset=op.offset, limit=op.limit)
            return [base.SearchItem(**self._item_of(each, renews)) for each in listed]
        asked |= {"order": "cosine" if self.index_config else "learned"}
        hits = handle.recall(op.query, **asked, limit=op.offset + op.limit).hits[op.offset :]
        scores = (hit.parts["cosine"] if self.index_config else hit.score for hit in hits)
        shown = (self._item_of(hit.memory, renews) for hit in hits)
        return [base.SearchItem(**each, score=score) for each, score in zip(shown, scores, strict=True)]

    def _item_of(self, record: Record, renews: bool) -> dict[str, Any]:
        # Other surfaces set fixed expiries: only values that a put stored are renewed.
        if renews and record.expires_at is not None and record.content_type == "structured":
            ttl = record.expires_at - (record.updated_at or record.created_at)
            if (record.expires_at - self.memory.now) * 2 <= ttl:
                emit_warnings([self.memory.at(scope=record.scope).revise(record.id, ttl=ttl, reason="read")])
        value = record.metadata if record.content_type == "structured" else {"text": record.text, **record.metadata}
        if origin := origin_of(record):
            value = {**value, ORIGIN_FIELD: origin}
        return {
            "namespace": to_namespace(self.memory.scope, record.scope),
            "key": name_of(record.key) if record.key else record.id,
            "value": value,
            "created_at": record.created_at,
            "updated_at": record.updated_at or record.created_at,
        }

    def _put(self, namespace: tuple[str, ...], ops: Sequence[base.PutOp]) -> None:
        handle = self._at(namespace)
        deleted = [found for op in ops if op.value is None and (found := self._get(namespace, op.key))]
        if deleted:
            outcome, _ = handle.forget_many([each.id for each in deleted], reason="deleted")
            emit_warnings([outcome] if outcome else [])
        written = [op for op in ops if op.value is not None]
        outcomes = handle.remember_many([self._item(op) for op in written], reason="put") if written else []
        emit_warnings(outcomes)
        for op, outcome in zip(written, outcomes, strict=True):
            for record in getattr(outcome, "records", ()):
                if op.ttl is None and record.expires_at is not None:
                    emit_warnings([handle.revise(record.id, ttl=None, reason="put")])

    def _item(self, op: base.PutOp) -> dict[str, Any]:
        value = {name: each for name, each in (op.value or {}).items() if name != ORIGIN_FIELD}
        paths = [] if op.index is False else self._fields if op.index is None else op.index
        texts = [
            each for path in paths for each in (texts_of(value) if path == "$" else base.get_text_at_path(value, path))
        ]
        return {
            "text": index_text(texts, self.memory.policy.text_limit[Tier.ARCHIVAL]),
            "key": key_of(op.key),
            "metadata": value,
            "content_type": "structured",
            "tier": "archival",
            "kind": "fact",
            "ttl": None if op.ttl is None else op.ttl * 60,
        }

    def _namespaces(self, op: base.ListNamespacesOp) -> list[tuple[str, ...]]:
        filters = Filters(within=self.memory.scope, kinds=KINDS)
        scopes = self.memory.facets(filters=filters, of=["scope"], most=_EVERY).facets["scope"]
        every = (to_namespace(self.memory.scope, each.value) for each in scopes)
        found = {
            each[: op.max_depth] for each in every if all(_matches(each, one) for one in op.match_conditions or ())
        }
        found.discard(())
        return sorted(found)[op.offset : op.offset + op.limit]


class AsyncKeepwardStore(KeepwardStore, AsyncBatchedBaseStore):
    """The same for an event loop: simultaneous calls run together, in a thread."""

    batch = AsyncBatchedBaseStore.batch

    async def sweep_ttl(self) -> int:
        """Return how many items have expired since the last call."""
        return int(await run_shielded(KeepwardStore.sweep_ttl, self))

    async def start_ttl_sweeper(self, *_: Any, **__: Any) -> bool:
        """Return True: nothing has to run."""
        return True

    stop_ttl_sweeper = start_ttl_sweeper


def _where(args: dict[str, Any]) -> dict[str, Any]:
    """Return a filter as conditions; an unequal field must exist."""
    if not all(map(_FILTER.fullmatch, args)):
        raise ValueError("Invalid filter key: use letters, digits, dots, hyphens and underscores")
    differs = {name for name, asked in args.items() if isinstance(asked, dict) and "$ne" in asked}
    return {name: {**asked, "$exists": True} if name in differs else asked for name, asked in args.items()}


def _matches(namespace: tuple[str, ...], condition: base.MatchCondition) -> bool:
    """Whether a namespace has the prefix or suffix of a condition."""
    path = condition.path
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[start : start + len(path)] if start >= 0 else ()
    return len(part) == len(path) and all(one in {"*", label} for one, label in zip(path, part, strict=True))
