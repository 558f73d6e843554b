"""Schemas: the shapes of answers as pydantic models, for the description of the API.

Answers are built by ``shapes`` and not passed through these models; a test holds each answer against its model.

Invariants
(1) A model of a dataclass is made from its fields by the rules of ``shapes``, so it cannot fall behind.
(2) Models name what is there; they forbid nothing, for keys may be added.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

from keepward.http.shapes import BESIDE
from keepward.model.commit import Commit as CommitHeader
from keepward.model.commit import CommitDetails, Reason, Receipt, Step
from keepward.model.journal import CommitView, Difference, Erased, Rollback, Version
from keepward.model.memory import Record
from keepward.model.proposal import Committed, Duplicate, Quarantined, Refused, Shown, Waiting
from keepward.model.trust import Actor, Trust

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_PLAIN: dict[Any, Any] = {
    datetime: Instant,
    timedelta: str,
    bytes: Annotated[str, Field(description="Hex digits.", json_schema_extra={"pattern": "^([0-9a-f]{2})*$"})],
    Trust: Literal[tuple(each.label for each in Trust)],
    Any: Any,
}
_models: dict[type, type[BaseModel]] = {}


def mirror(kind: type, name: str | None = None, **more: Any) -> type[BaseModel]:
    """Return the model of a dataclass as ``shapes.shape`` gives it, and its ``more`` fields; see (1)."""
    if kind in _models:
        return _models[kind]
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        if each.name == "metadata_json":
            # Kept as text, and given as the object that it is.
            fields["metadata"] = (dict[str, Any] | None, ...)
            continue
        hint = hints[each.name]
        whole = next((part for part in (hint, *typing.get_args(hint)) if part in (CommitHeader, Receipt)), None)
        if whole is not None:
            optional = type(None) in typing.get_args(hint)
            model = mirror(whole)
            fields[each.name] = (str | None if optional else str, ...)
            fields[f"{each.name}_{BESIDE[whole]}"] = (model | None if optional else model, ...)
        else:
            fields[each.name] = (_typed(hint), ...)
    fields |= {field: (hint, ...) for field, hint in more.items()}
    made: type[BaseModel] = create_model(name or kind.__name__, __doc__=inspect.getdoc(kind), **fields)
    _models[kind] = made
    return made


def _typed(hint: Any) -> Any:
    if isinstance(hint, typing.TypeAliasType if hasattr(typing, "TypeAliasType") else ()):
        return _typed(hint.__value__)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(each.value for each in hint)]
    if dataclasses.is_dataclass(hint):
        return mirror(typing.cast("type", hint))
    if origin in (Union, types.UnionType):
        return Union[tuple(_typed(part) for part in parts)]  # noqa: UP007  parts are known when it runs
    if origin is Annotated:
        return _typed(parts[0])
    if isinstance(origin, type) and issubclass(origin, tuple | list | frozenset):
        # In an order of their own: typing remembers unions of the same parts in the order that came first.
        kinds = tuple(sorted({_typed(part) for part in parts if part is not Ellipsis}, key=str))
        return list[Union[kinds]]  # type: ignore[valid-type]  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _typed(parts[1])]  # type: ignore[misc]
    return hint


def page(item: Any, name: str, **more: Any) -> type[BaseModel]:
    """Return the model of one page of a list."""
    items: Any = _typed(item)
    fields: dict[str, Any] = {"items": list[items], "cursor": str | None, **more}
    asked: dict[str, Any] = {key: (hint, ...) for key, hint in fields.items()}
    made: type[BaseModel] = create_model(name, __doc__="One page.", **asked)
    return made


Memory = mirror(Record, "Memory")
ReceiptRecord = mirror(Receipt, "ReceiptRecord")
Header = mirror(CommitHeader, "CommitHeader")
Details = mirror(CommitDetails)
Why = mirror(Reason)
Principal = mirror(Actor, "Principal")


class FieldChange(BaseModel):
    """One field that differs."""

    field: str
    before: Any
    after: Any


class Event(BaseModel):
    """What was done to one memory."""

    op: str
    id: str
    version: int
    before: Memory | None  # type: ignore[valid-type]
    after: Memory  # type: ignore[valid-type]
    changed: list[FieldChange]


class Touched(BaseModel):
    """Which memory a commit made a version of."""

    op: str
    id: str
    version: int
    tier: str


class Commit(BaseModel):
    """A commit of the journal; ``events`` is null where it was not asked for."""

    id: str
    seq: int
    at: Instant
    kind: str
    actor: str
    reason: str
    receipt: str
    policy: str
    session: str | None
    proposal: str | None
    approved_by: str | None
    undoes: list[str]
    hash: str
    prev: str
    changes: list[Touched]
    commit_header: Header  # type: ignore[valid-type]
    details: Details  # type: ignore[valid-type]
    events: list[Event] | None


class Proposal(BaseModel):
    """A proposal: its diff, who made it and why, and the digest that an approval is bound to."""

    id: str
    state: Literal["pending", "approved", "rejected", "expired", "stale"]
    proposer: str
    reason: str
    reasons: list[Why]  # type: ignore[valid-type]
    diff: list[Event]
    base: dict[str, int]
    base_version: int
    digest: str
    created_at: Instant
    expires_at: Instant
    decided_by: str | None
    decision: str | None
    decided_at: Instant | None
    tenant: str
    told: bool
    proposer_actor: Principal  # type: ignore[valid-type]


Legible = mirror(Shown)


class Reviewed(Proposal):
    """A proposal as its reviewer needs it; ``shown`` has every character that would be stored."""

    shown: list[Legible]  # type: ignore[valid-type]


class MemoryVersion(BaseModel):
    """One version of a memory and the commit that made it."""

    version: int
    op: str
    commit: str
    seq: int
    at: Instant
    actor: str
    approved_by: str | None
    reason: str
    receipt: str
    record: Memory  # type: ignore[valid-type]
    before: Memory | None  # type: ignore[valid-type]
    changed: list[FieldChange]
    commit_header: Header  # type: ignore[valid-type]
    details: Details  # type: ignore[valid-type]


class IdVersion(BaseModel):
    """A memory at a version, by name."""

    id: str
    version: int


class Written(BaseModel):
    """What became of a write; ``id`` and ``version`` are of the memory written, proposed, or found to be the same."""

    outcome: Literal["committed", "quarantined", "refused", "duplicate"]
    id: str | None
    version: int | None
    commit: str | None
    proposal: str | None
    receipt: str
    reasons: list[Why]  # type: ignore[valid-type]
    #: Kinds of personal identifiers and secrets that were replaced by markers; consent keeps the former.
    redacted: list[str]
    tier: str | None
    kind: str | None
    key: str | None
    expires_at: Instant | None
    memories: list[IdVersion]
    records: list[Memory]  # type: ignore[valid-type]
    commit_header: Header | None  # type: ignore[valid-type]
    receipt_record: ReceiptRecord  # type: ignore[valid-type]
    waiting: Proposal | None


_models |= {Step: Event, CommitView: Commit, Waiting: Proposal, Version: MemoryVersion}
_models |= dict.fromkeys((Committed, Duplicate, Quarantined, Refused), Written)


class Failure(BaseModel):
    """An error that is part of an answer; ``status`` is what it would have been by itself."""

    code: str
    detail: str
    status: int


class Decision(BaseModel):
    """What became of one proposal of many."""

    id: str
    ok: bool
    outcome: Written | None
    receipt: str | None
    receipt_record: ReceiptRecord | None  # type: ignore[valid-type]
    error: Failure | None


class Hit(BaseModel):
    """One recalled memory; ``score`` and ``parts`` are rounded, the exact ones stand beside."""

    rank: int
    id: str
    text: str
    score: float
    parts: dict[str, float]
    tier: str
    kind: str
    key: str | None
    scope: str
    trust: str
    source: str
    confidence: float
    importance: float
    version: int
    tags: list[str]
    content_type: str
    blob: str | None
    speaker: str | None
    occurred_at: Instant | None
    created_at: Instant
    why: list[str]
    metadata: dict[str, Any] | None
    #: Whether it is below the line from which a memory counts as relevant.
    weak: bool
    exact_score: float
    exact_parts: dict[str, float]
    memory: Memory  # type: ignore[valid-type]


class Exclusion(BaseModel):
    """A memory that matched and was left out."""

    id: str
    reason: str


class Found(BaseModel):
    """The answer to a query, best first."""

    used: list[str]
    notes: list[str]
    head: str
    now: Instant
    hits: list[Hit]
    excluded: list[Exclusion]
    reranker: str | None
    #: Ids of memories in reach that were edited outside of Keepward or are missing.
    withheld: list[str]
    #: Least score of the best hit, the best's own, and how many were left out because it is lower.
    floor: float
    best: float | None
    below: int
    #: Name of the constants that scores were computed with.
    calibration: str | None
    receipt: str | None
    cursor: str | None


mirror(Difference, changed=list[FieldChange])


class Certificate(BaseModel):
    """What was erased, what proves it, and what it cannot promise."""

    model_config = ConfigDict(extra="allow")


class Destroyed(mirror(Erased)):  # type: ignore[misc]
    """An erasure that was carried out."""

    certificate: Certificate


class Commits(BaseModel):
    """Commits within reach, newest first."""

    items: list[Commit]
    #: For ``before``, to go on; null at the end.
    next_before: int | None
    #: Of the head, for the ``If-Match`` of a rollback.
    etag: str


class AnyReceipt(BaseModel):
    """The record of one decision; each kind of it holds facts of its own."""

    model_config = ConfigDict(extra="allow")

    id: str
    tenant: str
    kind: str
    at: Instant
    actor: str
    policy: str
    head: str
    reasons: list[Why]  # type: ignore[valid-type]


class RolledBack(mirror(Rollback)):  # type: ignore[misc]
    """What a rollback did, or would do; ``etag`` is of the head now."""

    dry_run: bool
    etag: str


class Quarantine(BaseModel):
    """The review queue in numbers."""

    depth: int
    oldest_at: str | None
    oldest_age_seconds: int | None
    stuck: int


class BlockState(BaseModel):
    """A core block in numbers."""

    tokens: int
    budget: int
    id: str | None
    version: int | None


class Status(BaseModel):
    """Counts, sizes, the queue and the use of budgets; ``path`` is the owner's alone to see."""

    model_config = ConfigDict(extra="allow")

    path: str | None
    tenant: str
    scope: str
    actor: str
    actor_record: Principal  # type: ignore[valid-type]
    now: Instant
    head: str
    #: For the ``If-Match`` of a rollback.
    etag: str
    policy: str
    enabled: bool
    capture: bool
    recall: bool
    embedder: str | None
    by_tier: dict[str, int]
    by_status: dict[str, int]
    live: int
    total: int
    commits: int
    quarantine: Quarantine
    blocks: dict[str, BlockState]


class CoreBlock(BlockState):
    """A core block; a text without a memory is a document's, kept outside the store and not repeated here."""

    key: str
    text: str | None
    memory: Memory | None  # type: ignore[valid-type]


class Core(BaseModel):
    """Core memory as the caller's scope sees it."""

    head: str
    scope: str
    #: In the order in which they are compiled.
    blocks: list[CoreBlock]
    #: What else is in the core tier, under no block's key.
    items: list[Memory]  # type: ignore[valid-type]
    #: Ids of core memories that were edited outside of Keepward or are missing, and a sentence on them.
    withheld: list[str]
    notes: list[str]


class Rejected(BaseModel):
    """A proposal that was rejected."""

    id: str
    state: Literal["rejected"]
    receipt: str
    receipt_record: ReceiptRecord  # type: ignore[valid-type]


class Approved(BaseModel):
    """What became of each, in the order given."""

    results: list[Decision]
    approved: int
    failed: int


class RejectedMany(BaseModel):
    """What became of each, in the order given."""

    results: list[Decision]
    rejected: int
    failed: int


class TokenState(BaseModel):
    """What the store knows of a token; the token itself it does not know."""

    id: str
    name: str
    rights: Literal["agent", "reviewer", "owner"]
    can: list[str]
    tenant: str
    scope: str
    state: Literal["valid", "expired", "revoked"]
    created_by: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None


class IssuedToken(BaseModel):
    """A new token, and its secret: the only time that it is shown."""

    token: TokenState
    secret: str


class Revoked(BaseModel):
    """A token that holds no more."""

    id: str
    receipt: str
    receipt_record: ReceiptRecord  # type: ignore[valid-type]


class Rebuilt(BaseModel):
    """How many records were computed anew."""

    records: int
    head: str


class Reindexed(BaseModel):
    """How many memories got terms and vectors anew."""

    indexed: int


class Outcomes(BaseModel):
    """What became of many memories: with ``each`` one outcome an item, with ``atomic`` one for all ``count`` items."""

    mode: str
    count: int
    outcomes: list[Written]


class Merged(BaseModel):
    """Nothing was merged: it takes two memories."""

    outcome: None = Field(description="Null: fewer than two memories were named.")


class Forgotten(BaseModel):
    """What became of those that are there, and the names of those that are not."""

    outcome: Written | None
    missing: list[str]


NOTHING_MERGED = {
    "model": Written | Merged,
    "description": "The same was there already, or there was nothing to merge.",
}
Memories = page(Memory, "Memories", head=str, withheld=list[str], notes=list[str])
