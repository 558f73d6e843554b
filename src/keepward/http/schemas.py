"""Schemas: what the description of the API says of answers: their shapes as pydantic models, statuses and links.

Answers are built by ``results`` and not passed through these models; a test holds each answer against its model.

Invariants
(1) A model of a class is made from its fields by the rules of ``results``, so it cannot fall behind.
(2) Models name what is there; they forbid nothing, for keys may be added.
(3) A route that takes a token may always answer 400, 401, 403, 421 and 503; what more there is follows from what it
    takes.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

from keepward.core.commit import Commit as CommitHeader
from keepward.core.commit import CommitDetails, Reason, Receipt, Step
from keepward.core.compiled import Explanation
from keepward.core.journal import CommitView, Difference, Erased, Rollback, Version
from keepward.core.memory import Record
from keepward.core.patterns import load_toml
from keepward.core.principals import Actor, Token, Trust
from keepward.core.proposal import Committed, Duplicate, Proposal, ProposedStep, Quarantined, Refused
from keepward.core.query import Hit as FoundHit
from keepward.core.query import Recall
from keepward.core.results import (
    EXPANDED_FIELD_SUFFIXES,
    NESTED_FIELDS,
    SHAPES,
    VERSION_SHAPE,
    FieldChange,
    Key,
    keys_of,
)
from keepward.core.value import Data
from keepward.http.requests import MEDIA_TYPE

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_PLAIN: dict[Any, Any] = {
    datetime: Instant,
    timedelta: str,
    bytes: Annotated[str, Field(description="Hex digits.", json_schema_extra={"pattern": "^([0-9a-f]{2})*$"})],
    Trust: Literal[tuple(each.label for each in Trust)],
    Any: Any,
}
_models: dict[type, type[BaseModel]] = {}


def model_from_dataclass(kind: type[Data], name: str | None = None, **extra: Any) -> type[BaseModel]:
    """Return the model of a class as ``results.to_json`` gives it, and its ``more`` fields; see (1)."""
    if kind in _models:
        return _models[kind]
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {}
    for each in kind.__struct_fields__:
        if each == "metadata_json":
            # Kept as text, and given as the object that it is.
            fields["metadata"] = (dict[str, Any] | None, ...)
            continue
        hint = hints[each]
        whole = next((part for part in (hint, *typing.get_args(hint)) if part in (CommitHeader, Receipt)), None)
        if whole is not None:
            optional = type(None) in typing.get_args(hint)
            model = model_from_dataclass(whole)
            fields[each] = (str | None if optional else str, ...)
            fields[each + EXPANDED_FIELD_SUFFIXES[whole]] = (model | None if optional else model, ...)
        else:
            fields[each] = (_typed(hint), ...)
    fields |= {field: (hint, ...) for field, hint in extra.items()}
    made: type[BaseModel] = create_model(name or kind.__name__, __doc__=inspect.getdoc(kind), **fields)
    _models[kind] = made
    return made


def _typed(hint: Any) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(each.value for each in hint)]
    if typing.is_typeddict(hint):
        if hint not in _models:
            _models[hint] = model_with_fields(hint.__name__, inspect.getdoc(hint) or "", typing.get_type_hints(hint))
        return _models[hint]
    if isinstance(hint, type) and issubclass(hint, Data):
        return model_from_dataclass(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_typed(part) for part in parts)]  # noqa: UP007  parts are known when it runs
    if isinstance(origin, type) and issubclass(origin, tuple | list | frozenset):
        # In an order of their own: typing remembers unions of the same parts in the order that came first.
        kinds: Any = tuple(sorted({_typed(part) for part in parts if part is not Ellipsis}, key=str))
        return list[Union[kinds]]  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _typed(parts[1])]  # type: ignore[misc]
    return hint


class OpenModel(BaseModel):
    """What may have further fields."""

    model_config = ConfigDict(extra="allow")


def page_model(item: Any, name: str, **extra: Any) -> type[BaseModel]:
    """Return the model of one page of a list."""
    items: Any = _typed(item)
    return model_with_fields(name, "One page.", {"items": list[items], "cursor": str | None, **extra})  # type: ignore[no-any-return]


Memory: Any = model_from_dataclass(Record, "Memory")
ReceiptRecord: Any = model_from_dataclass(Receipt, "ReceiptRecord")
Header: Any = model_from_dataclass(CommitHeader, "CommitHeader")
Details: Any = model_from_dataclass(CommitDetails)
ReasonModel: Any = model_from_dataclass(Reason)
Principal: Any = model_from_dataclass(Actor, "Principal")


def model_with_fields(name: str, doc: str, *parts: Mapping[str, Any], base: type[BaseModel] | None = None) -> Any:
    """Return a model of fields from several places."""
    asked: dict[str, Any] = {field: (hint, ...) for part in parts for field, hint in part.items()}
    return create_model(name, __doc__=doc, __base__=base, **asked)


def extended_model(kind: type, name: str, doc: str, keys: tuple[Key, ...] = (), **extra: Any) -> Any:
    """Return the model of what has a shape of its own, and of what ``results`` puts beside it."""
    hints = typing.get_type_hints(kind)
    parts = {
        each.name: _typed(typing.get_type_hints(each.owner)[each.name] if each.kind is None else each.kind)
        for each in keys or SHAPES[kind]
    }
    beside = {key: hints[field] for key, field in NESTED_FIELDS.get(kind, {}).items() if key not in parts}
    made = model_with_fields(
        name, doc, parts | {key: _typed(extra.get(key, hint)) for key, hint in beside.items()} | extra
    )
    _models[kind] = made
    return made


Event: Any = extended_model(Step, "Event", "What was done to one memory.")
Commit: Any = extended_model(
    CommitView,
    "Commit",
    "A commit of the journal; ``events`` is null where it was not asked for.",
    events=list[Event] | None,
)
ProposalSchema: Any = extended_model(
    Proposal, "Proposal", "A proposal: its diff, who made it and why, and the digest that an approval is bound to."
)
Reviewed: Any = model_with_fields(
    "Reviewed",
    "A proposal as its reviewer needs it; ``shown`` has every character that would be stored.",
    {"shown": list[model_from_dataclass(ProposedStep)]},  # type: ignore[misc]
    base=ProposalSchema,
)
Proposals: Any = model_with_fields(
    "Proposals",
    "One page of the review queue, oldest first; `counts` is by proposer, gate, tier and operation.",
    {"items": list[Reviewed], "offset": int, "total": int, "next_offset": int | None},
    {"counts": dict[str, dict[str, int]], "oldest_at": Instant | None},
)
MemoryVersion: Any = extended_model(
    Version, "MemoryVersion", "One version of a memory and the commit that made it.", VERSION_SHAPE
)
Written: Any = extended_model(
    Committed,
    "Written",
    "What became of a write; ``id`` and ``version`` are of the memory written, proposed, or found to be the same.",
    commit_header=Header | None,
    waiting=ProposalSchema | None,
)
_models |= dict.fromkeys((Duplicate, Quarantined, Refused), Written)
model_from_dataclass(Difference, changed=_typed(list[FieldChange]))
Failure: Any = model_with_fields(
    "Failure",
    "An error that is part of an answer; ``status`` is what it would have been by itself.",
    {"code": str, "detail": str, "status": int},
)
_RECEIPT_FIELDS = {"receipt": str, "receipt_record": ReceiptRecord}
Decision: Any = model_with_fields(
    "Decision",
    "What became of one proposal of many.",
    {"id": str, "ok": bool, "outcome": Written | None},
    {name: kind | None for name, kind in _RECEIPT_FIELDS.items()},
    {"error": Failure | None},
)
extended_model(
    FoundHit, "Hit", "One recalled memory; ``score`` and ``parts`` are rounded, the exact ones stand beside."
)
Recalled: Any = extended_model(Recall, "Recalled", "The answer to a query, best first.")
Found: Any = model_with_fields(
    "Found", "A page of the answer to a query, best first.", {"cursor": str | None}, base=Recalled
)
Certificate: Any = model_with_fields(
    "Certificate", "What was erased, what proves it, and what it cannot promise.", base=OpenModel
)
Destroyed: Any = model_with_fields(
    "Destroyed", "An erasure that was carried out.", {"certificate": Certificate}, base=model_from_dataclass(Erased)
)
Commits: Any = model_with_fields(
    "Commits",
    "Commits within reach, newest first.",
    # The number is for `before`, to go on; the tag of the head for the `If-Match` of a rollback.
    {"items": list[Commit], "next_before": int | None, "etag": str},
)
RolledBack: Any = model_with_fields(
    "RolledBack",
    "What a rollback did, or would do; ``etag`` is of the head now.",
    {"dry_run": bool, "etag": str},
    base=model_from_dataclass(Rollback),
)
BlockState: Any = model_with_fields(
    "BlockState", "A core block in numbers.", {"tokens": int, "budget": int, "id": str | None, "version": int | None}
)
CoreBlock: Any = model_with_fields(
    "CoreBlock",
    "A core block; a text without a memory is a document's, kept outside the store and not repeated here.",
    {"key": str, "text": str | None, "memory": Memory | None},
    base=BlockState,
)
Core: Any = model_with_fields(
    "Core",
    "Core memory as the caller's scope sees it.",
    # Blocks in the order in which they are compiled, and what else is in the core tier, under no block's key.
    {"head": str, "scope": str, "blocks": list[CoreBlock], "items": list[Memory]},
    {"withheld": list[str], "notes": list[str]},
)
Rejected: Any = model_with_fields(
    "Rejected", "A proposal that was rejected.", {"id": str, "state": Literal["rejected"], **_RECEIPT_FIELDS}
)
Reopened: Any = model_with_fields(
    "Reopened", "A proposal that waits again.", {"id": str, "state": Literal["pending"], **_RECEIPT_FIELDS}
)
Approved: Any
RejectedMany: Any
Approved, RejectedMany = (
    model_with_fields(
        name, "What became of each, in the order given.", {"results": list[Decision], word: int, "failed": int}
    )
    for name, word in (("Approved", "approved"), ("RejectedMany", "rejected"))
)
TokenState: Any = extended_model(
    Token,
    "TokenState",
    "What the store knows of a token; the token itself it does not know.",
    (
        *keys_of(Token, "id name rights can tenant scope"),
        Key("state", str, Literal["valid", "expired", "revoked"]),
        *keys_of(Token, "created_by made_with created_at expires_at revoked_at"),
    ),
    # When this server last let it in since it was started.
    used_at=Instant | None,
)
IssuedToken: Any = model_with_fields(
    "IssuedToken", "A new token, and its secret: the only time that it is shown.", {"token": TokenState, "secret": str}
)
Revoked: Any = model_with_fields("Revoked", "A token that holds no more.", {"id": str, **_RECEIPT_FIELDS})
Rebuilt: Any = model_with_fields("Rebuilt", "How many records were computed anew.", {"records": int, "head": str})
Reindexed: Any = model_with_fields("Reindexed", "How many memories got terms and vectors anew.", {"indexed": int})
Outcomes: Any = model_with_fields(
    "Outcomes",
    "What became of many memories: with ``each`` one outcome an item, with ``atomic`` one for all ``count`` items.",
    {"mode": str, "count": int, "outcomes": list[Written]},
)
Forgotten: Any = model_with_fields(
    "Forgotten",
    "What became of those that are there, and the names of those that are not.",
    {"outcome": Written | None, "missing": list[str]},
)


_nothing = Annotated[None, Field(description="Null: fewer than two memories were named.")]
Merged: Any = model_with_fields("Merged", "Nothing was merged: it takes two memories.", {"outcome": _nothing})
NOTHING_MERGED = {
    "model": Written | Merged,
    "description": "The same was there already, or there was nothing to merge.",
}
Memories = page_model(Memory, "Memories", head=str, total=int | None, withheld=list[str], notes=list[str])


AnyReceipt: Any = model_with_fields(
    "AnyReceipt",
    "The record of one decision; each kind of it holds facts of its own. A context's has an `explanation`.",
    {"id": str, "tenant": str, "kind": str, "at": Instant, "actor": str, "policy": str, "head": str},
    {"reasons": list[ReasonModel]},
    base=create_model("Explained", __base__=OpenModel, explanation=(_typed(Explanation | None), None)),
)


Quarantine: Any = model_with_fields(
    "Quarantine",
    "The review queue in numbers.",
    {"depth": int, "oldest_at": str | None, "oldest_age_seconds": int | None, "stuck": int, "expired": int},
)


Status: Any = model_with_fields(
    "Status",
    "Counts, sizes, the queue and the use of budgets; ``path`` is the owner's alone to see.",
    {"path": str | None, "tenant": str, "scope": str, "actor": str, "actor_record": Principal, "now": Instant},
    # The tag is for the `If-Match` of a rollback.
    {"head": str, "etag": str, "policy": str, "enabled": bool, "capture": bool, "recall": bool},
    {"embedder": str | None, "by_tier": dict[str, int], "by_status": dict[str, int], "live": int, "total": int},
    {"commits": int, "quarantine": Quarantine, "blocks": dict[str, BlockState]},
    base=OpenModel,
)


_STATUS_TEXT = {
    200: "Done; of a write: the same was there already.",
    201: "Made; of a write: committed.",
    202: "Held for review.",
}
#: What a caller may do next, by operation.
_LINKS: Mapping[str, Mapping[str, str]] = load_toml(__package__, "links.toml")


def problems_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of statuses that are problems, for ``responses`` of a route."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {each: {"description": "A problem.", "content": {MEDIA_TYPE: {"schema": schema}}} for each in statuses}


def documented_answers(
    operation: str, status: int, answers: Mapping[int, Any], problems: tuple[int, ...]
) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of every status that a route which takes a token answers.

    ``answers`` has models, or the whole documentation, by status; links hang on ``status``.
    """
    found: dict[int | str, dict[str, Any]] = {
        code: dict(each) if isinstance(each, dict) else {"model": each, "description": _STATUS_TEXT[code]}
        for code, each in answers.items()
    }
    if operation in _LINKS:
        found[status]["links"] = {name: _link(*words.split()) for name, words in _LINKS[operation].items()}
    # 422 is told of in any case: for a route that says nothing of it the framework describes a body that is never sent.
    return found | problems_of(*sorted({400, 401, 403, 421, 422, 429, 503, *problems} - found.keys()))


def _link(operation: str, *pairs: str) -> dict[str, Any]:
    parameters, body = {}, {}
    for pair in pairs:
        name, _, place = pair.partition("=")
        value = f"$response.{place}" if place.startswith("header.") else f"$response.body#/{place}"
        if name.startswith("body."):
            body[name.removeprefix("body.")] = value
        else:
            parameters[name] = value
    return {"operationId": operation, "parameters": parameters} | ({"requestBody": body} if body else {})
