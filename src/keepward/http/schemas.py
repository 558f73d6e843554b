"""Response models for the OpenAPI document, with statuses and links.

Responses are built by ``core.results``, not by these models; a test validates each response against its model.

* The model of a class is made from its fields by the rules of ``core.results``.
* Models allow further keys, because keys may be added.
* A route with a token may always answer 400, 401, 403, 421 and 503; other statuses follow from its parameters.
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
    Trust: Literal[tuple(trust.label for trust in Trust)],
    Any: Any,
}
_models: dict[type, type[BaseModel]] = {}


def model_from_dataclass(kind: type[Data], name: str | None = None, **extra: Any) -> type[BaseModel]:
    """Return the model of a class as ``results.to_json`` returns it, with ``extra`` fields."""
    if kind in _models:
        return _models[kind]
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {}
    for field in kind.__struct_fields__:
        if field == "metadata_json":
            # Stored as text, returned as an object.
            fields["metadata"] = (dict[str, Any] | None, ...)
            continue
        hint = hints[field]
        expanded = next((part for part in (hint, *typing.get_args(hint)) if part in (CommitHeader, Receipt)), None)
        if expanded is not None:
            optional = type(None) in typing.get_args(hint)
            complete = model_from_dataclass(expanded)
            fields[field] = (str | None if optional else str, ...)
            fields[field + EXPANDED_FIELD_SUFFIXES[expanded]] = (complete | None if optional else complete, ...)
        else:
            fields[field] = (_typed(hint), ...)
    fields |= {field: (hint, ...) for field, hint in extra.items()}
    model: type[BaseModel] = create_model(name or kind.__name__, __doc__=inspect.getdoc(kind), **fields)
    _models[kind] = model
    return model


def _typed(hint: Any) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(member.value for member in hint)]
    if typing.is_typeddict(hint):
        if hint not in _models:
            _models[hint] = model_with_fields(hint.__name__, inspect.getdoc(hint) or "", typing.get_type_hints(hint))
        return _models[hint]
    if isinstance(hint, type) and issubclass(hint, Data):
        return model_from_dataclass(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_typed(part) for part in parts)]  # noqa: UP007  parts are known when it runs
    if isinstance(origin, type) and issubclass(origin, tuple | list | frozenset):
        # Sort the parts, because typing caches a union with the first order of its parts.
        kinds: Any = tuple(sorted({_typed(part) for part in parts if part is not Ellipsis}, key=str))
        return list[Union[kinds]]  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _typed(parts[1])]  # type: ignore[misc]
    return hint


class OpenModel(BaseModel):
    """A model with further fields."""

    model_config = ConfigDict(extra="allow")


def page_model(item: Any, name: str, **extra: Any) -> type[BaseModel]:
    """Return the model of a page of a list."""
    items: Any = _typed(item)
    return model_with_fields(name, "One page.", {"items": list[items], "cursor": str | None, **extra})  # type: ignore[no-any-return]


Memory: Any = model_from_dataclass(Record, "Memory")
ReceiptRecord: Any = model_from_dataclass(Receipt, "ReceiptRecord")
Header: Any = model_from_dataclass(CommitHeader, "CommitHeader")
Details: Any = model_from_dataclass(CommitDetails)
ReasonModel: Any = model_from_dataclass(Reason)
Principal: Any = model_from_dataclass(Actor, "Principal")


def model_with_fields(name: str, doc: str, *parts: Mapping[str, Any], base: type[BaseModel] | None = None) -> Any:
    """Return a model with fields from several mappings."""
    fields: dict[str, Any] = {field: (hint, ...) for part in parts for field, hint in part.items()}
    return create_model(name, __doc__=doc, __base__=base, **fields)


def extended_model(kind: type, name: str, doc: str, keys: tuple[Key, ...] = (), **extra: Any) -> Any:
    """Return the model of a class with a shape in ``results``, including its nested fields."""
    hints = typing.get_type_hints(kind)
    parts = {
        key.name: _typed(typing.get_type_hints(key.owner)[key.name] if key.kind is None else key.kind)
        for key in keys or SHAPES[kind]
    }
    nested = {key: hints[field] for key, field in NESTED_FIELDS.get(kind, {}).items() if key not in parts}
    model = model_with_fields(
        name, doc, parts | {key: _typed(extra.get(key, hint)) for key, hint in nested.items()} | extra
    )
    _models[kind] = model
    return model


Event: Any = extended_model(Step, "Event", "The change of one memory.")
Commit: Any = extended_model(
    CommitView,
    "Commit",
    "A commit of the journal; ``events`` is null unless requested.",
    events=list[Event] | None,
)
ProposalSchema: Any = extended_model(
    Proposal, "Proposal", "A proposal: its diff, proposer, reason, and the digest that an approval needs."
)
Reviewed: Any = model_with_fields(
    "Reviewed",
    "A proposal for its reviewer; ``shown`` has every character that would be stored.",
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
    "The outcome of a write; ``id`` and ``version`` are of the memory that was written, proposed or equal.",
    commit_header=Header | None,
    waiting=ProposalSchema | None,
)
_models |= dict.fromkeys((Duplicate, Quarantined, Refused), Written)
model_from_dataclass(Difference, changed=_typed(list[FieldChange]))
Failure: Any = model_with_fields(
    "Failure",
    "An error inside a response; ``status`` is the HTTP status of this error.",
    {"code": str, "detail": str, "status": int},
)
_RECEIPT_FIELDS = {"receipt": str, "receipt_record": ReceiptRecord}
Decision: Any = model_with_fields(
    "Decision",
    "The result for one of several proposals.",
    {"id": str, "ok": bool, "outcome": Written | None},
    {name: kind | None for name, kind in _RECEIPT_FIELDS.items()},
    {"error": Failure | None},
)
extended_model(
    FoundHit,
    "Hit",
    "One recalled memory; ``score`` and ``parts`` are rounded, ``exact_score`` and ``exact_parts`` are not.",
)
Recalled: Any = extended_model(Recall, "Recalled", "The result of a query, best first.")
Found: Any = model_with_fields(
    "Found", "A page of the result of a query, best first.", {"cursor": str | None}, base=Recalled
)
Certificate: Any = model_with_fields(
    "Certificate", "What was erased, what proves it, and what it cannot promise.", base=OpenModel
)
Destroyed: Any = model_with_fields(
    "Destroyed", "An applied erasure.", {"certificate": Certificate}, base=model_from_dataclass(Erased)
)
Commits: Any = model_with_fields(
    "Commits",
    "Visible commits, newest first.",
    # ``next_before`` is `before` of the next page; ``etag`` is `If-Match` of a rollback.
    {"items": list[Commit], "next_before": int | None, "etag": str},
)
RolledBack: Any = model_with_fields(
    "RolledBack",
    "The result of a rollback or of its dry run; ``etag`` is that of the current head.",
    {"dry_run": bool, "etag": str},
    base=model_from_dataclass(Rollback),
)
BlockState: Any = model_with_fields(
    "BlockState", "A core block in numbers.", {"tokens": int, "budget": int, "id": str | None, "version": int | None}
)
CoreBlock: Any = model_with_fields(
    "CoreBlock",
    "A core block. Without a memory, it is a document outside the store, whose text is not repeated here.",
    {"key": str, "text": str | None, "memory": Memory | None},
    base=BlockState,
)
Core: Any = model_with_fields(
    "Core",
    "Core memory visible from the caller's scope.",
    # Blocks in their order in a context, and core memories without the key of a block.
    {"head": str, "scope": str, "blocks": list[CoreBlock], "items": list[Memory]},
    {"withheld": list[str], "notes": list[str]},
)
Rejected: Any = model_with_fields(
    "Rejected", "A proposal that was rejected.", {"id": str, "state": Literal["rejected"], **_RECEIPT_FIELDS}
)
Reopened: Any = model_with_fields(
    "Reopened", "A proposal that is pending again.", {"id": str, "state": Literal["pending"], **_RECEIPT_FIELDS}
)
Approved: Any
RejectedMany: Any
Approved, RejectedMany = (
    model_with_fields(name, "The result of each, in order.", {"results": list[Decision], word: int, "failed": int})
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
    # Last use since this server started.
    used_at=Instant | None,
)
IssuedToken: Any = model_with_fields(
    "IssuedToken", "A new token with its secret, which is shown only once.", {"token": TokenState, "secret": str}
)
Revoked: Any = model_with_fields("Revoked", "A revoked token.", {"id": str, **_RECEIPT_FIELDS})
Rebuilt: Any = model_with_fields("Rebuilt", "The number of rebuilt records.", {"records": int, "head": str})
Reindexed: Any = model_with_fields("Reindexed", "The number of reindexed memories.", {"indexed": int})
Outcomes: Any = model_with_fields(
    "Outcomes",
    "Outcomes of several memories: with ``each`` one for each item, with ``atomic`` one for all ``count`` items.",
    {"mode": str, "count": int, "outcomes": list[Written]},
)
Forgotten: Any = model_with_fields(
    "Forgotten",
    "The outcome for the existing memories, and the ids of missing ones.",
    {"outcome": Written | None, "missing": list[str]},
)


_nothing = Annotated[None, Field(description="Null: fewer than two memories were given.")]
Merged: Any = model_with_fields("Merged", "Nothing was merged: a merge needs two memories.", {"outcome": _nothing})
NOTHING_MERGED = {
    "model": Written | Merged,
    "description": "An equal memory existed already, or there was nothing to merge.",
}
Memories = page_model(Memory, "Memories", head=str, total=int | None, withheld=list[str], notes=list[str])


AnyReceipt: Any = model_with_fields(
    "AnyReceipt",
    "The record of one decision; its further keys depend on `kind`. That of a context has an `explanation`.",
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
    "Counts, sizes, the queue and the use of budgets; only the owner sees ``path``.",
    {"path": str | None, "tenant": str, "scope": str, "actor": str, "actor_record": Principal, "now": Instant},
    # ``etag`` is `If-Match` of a rollback.
    {"head": str, "etag": str, "policy": str, "enabled": bool, "capture": bool, "recall": bool},
    {"embedder": str | None, "by_tier": dict[str, int], "by_status": dict[str, int], "live": int, "total": int},
    {"commits": int, "quarantine": Quarantine, "blocks": dict[str, BlockState]},
    base=OpenModel,
)


_STATUS_TEXT = {
    200: "Done; for a write: an equal memory existed already.",
    201: "Created; for a write: committed.",
    202: "Quarantined for review.",
}
#: OpenAPI links to next requests, by operation.
_LINKS: Mapping[str, Mapping[str, str]] = load_toml(__package__, "links.toml")


def problems_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of problem statuses for the ``responses`` of a route."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {status: {"description": "A problem.", "content": {MEDIA_TYPE: {"schema": schema}}} for status in statuses}


def documented_answers(
    operation: str, status: int, answers: Mapping[int, Any], problems: tuple[int, ...]
) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of all statuses of a route with a token.

    ``answers`` maps statuses to models or complete documentation; links belong to ``status``.
    """
    documented: dict[int | str, dict[str, Any]] = {
        code: dict(answer) if isinstance(answer, dict) else {"model": answer, "description": _STATUS_TEXT[code]}
        for code, answer in answers.items()
    }
    if operation in _LINKS:
        documented[status]["links"] = {name: _link(*words.split()) for name, words in _LINKS[operation].items()}
    # Always document 422: otherwise the framework documents a body that is never sent.
    return documented | problems_of(*sorted({400, 401, 403, 421, 422, 429, 503, *problems} - documented.keys()))


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
