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
from keepward.core.patterns import table
from keepward.core.plain import SHAPES, FieldChange, Key, keys_of
from keepward.core.proposal import Committed, Duplicate, Quarantined, Refused, Shown, Waiting
from keepward.core.query import Hit as FoundHit
from keepward.core.query import Recall
from keepward.core.trust import Actor, Token, Trust
from keepward.core.value import Data
from keepward.http.reading import MEDIA_TYPE
from keepward.results import BESIDE, VERSION, WHOLE

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_PLAIN: dict[Any, Any] = {
    datetime: Instant,
    timedelta: str,
    bytes: Annotated[str, Field(description="Hex digits.", json_schema_extra={"pattern": "^([0-9a-f]{2})*$"})],
    Trust: Literal[tuple(each.label for each in Trust)],
    Any: Any,
}
_models: dict[type, type[BaseModel]] = {}


def mirror(kind: type[Data], name: str | None = None, **more: Any) -> type[BaseModel]:
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
            model = mirror(whole)
            fields[each] = (str | None if optional else str, ...)
            fields[each + BESIDE[whole]] = (model | None if optional else model, ...)
        else:
            fields[each] = (_typed(hint), ...)
    fields |= {field: (hint, ...) for field, hint in more.items()}
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
            _models[hint] = model(hint.__name__, inspect.getdoc(hint) or "", typing.get_type_hints(hint))
        return _models[hint]
    if isinstance(hint, type) and issubclass(hint, Data):
        return mirror(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_typed(part) for part in parts)]  # noqa: UP007  parts are known when it runs
    if isinstance(origin, type) and issubclass(origin, tuple | list | frozenset):
        # In an order of their own: typing remembers unions of the same parts in the order that came first.
        kinds: Any = tuple(sorted({_typed(part) for part in parts if part is not Ellipsis}, key=str))
        return list[Union[kinds]]  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _typed(parts[1])]  # type: ignore[misc]
    return hint


class Open(BaseModel):
    """What may have further fields."""

    model_config = ConfigDict(extra="allow")


def page(item: Any, name: str, **more: Any) -> type[BaseModel]:
    """Return the model of one page of a list."""
    items: Any = _typed(item)
    return model(name, "One page.", {"items": list[items], "cursor": str | None, **more})  # type: ignore[no-any-return]


Memory: Any = mirror(Record, "Memory")
ReceiptRecord: Any = mirror(Receipt, "ReceiptRecord")
Header: Any = mirror(CommitHeader, "CommitHeader")
Details: Any = mirror(CommitDetails)
Why: Any = mirror(Reason)
Principal: Any = mirror(Actor, "Principal")


def model(name: str, doc: str, *parts: Mapping[str, Any], base: type[BaseModel] | None = None) -> Any:
    """Return a model of fields from several places."""
    asked: dict[str, Any] = {field: (hint, ...) for part in parts for field, hint in part.items()}
    return create_model(name, __doc__=doc, __base__=base, **asked)


def shape(kind: type, name: str, doc: str, keys: tuple[Key, ...] = (), **more: Any) -> Any:
    """Return the model of what has a shape of its own, and of what ``results`` puts beside it."""
    hints = typing.get_type_hints(kind)
    parts = {
        each.name: _typed(typing.get_type_hints(each.owner)[each.name] if each.kind is None else each.kind)
        for each in keys or SHAPES[kind]
    }
    beside = {key: hints[field] for key, field in WHOLE.get(kind, {}).items() if key not in parts}
    made = model(name, doc, parts | {key: _typed(more.get(key, hint)) for key, hint in beside.items()} | more)
    _models[kind] = made
    return made


Event: Any = shape(Step, "Event", "What was done to one memory.")
Commit: Any = shape(
    CommitView,
    "Commit",
    "A commit of the journal; ``events`` is null where it was not asked for.",
    events=list[Event] | None,
)
Proposal: Any = shape(
    Waiting, "Proposal", "A proposal: its diff, who made it and why, and the digest that an approval is bound to."
)
Reviewed: Any = model(
    "Reviewed",
    "A proposal as its reviewer needs it; ``shown`` has every character that would be stored.",
    {"shown": list[mirror(Shown)]},  # type: ignore[misc]
    base=Proposal,
)
Proposals: Any = model(
    "Proposals",
    "One page of the review queue, oldest first; `counts` is by proposer, gate, tier and operation.",
    {"items": list[Reviewed], "offset": int, "total": int, "next_offset": int | None},
    {"counts": dict[str, dict[str, int]], "oldest_at": Instant | None},
)
MemoryVersion: Any = shape(Version, "MemoryVersion", "One version of a memory and the commit that made it.", VERSION)
Written: Any = shape(
    Committed,
    "Written",
    "What became of a write; ``id`` and ``version`` are of the memory written, proposed, or found to be the same.",
    commit_header=Header | None,
    waiting=Proposal | None,
)
_models |= dict.fromkeys((Duplicate, Quarantined, Refused), Written)
mirror(Difference, changed=_typed(list[FieldChange]))
Failure: Any = model(
    "Failure",
    "An error that is part of an answer; ``status`` is what it would have been by itself.",
    {"code": str, "detail": str, "status": int},
)
_ONE = {"receipt": str, "receipt_record": ReceiptRecord}
Decision: Any = model(
    "Decision",
    "What became of one proposal of many.",
    {"id": str, "ok": bool, "outcome": Written | None},
    {name: kind | None for name, kind in _ONE.items()},
    {"error": Failure | None},
)
shape(FoundHit, "Hit", "One recalled memory; ``score`` and ``parts`` are rounded, the exact ones stand beside.")
Recalled: Any = shape(Recall, "Recalled", "The answer to a query, best first.")
Found: Any = model("Found", "A page of the answer to a query, best first.", {"cursor": str | None}, base=Recalled)
Certificate: Any = model("Certificate", "What was erased, what proves it, and what it cannot promise.", base=Open)
Destroyed: Any = model(
    "Destroyed", "An erasure that was carried out.", {"certificate": Certificate}, base=mirror(Erased)
)
Commits: Any = model(
    "Commits",
    "Commits within reach, newest first.",
    # The number is for `before`, to go on; the tag of the head for the `If-Match` of a rollback.
    {"items": list[Commit], "next_before": int | None, "etag": str},
)
RolledBack: Any = model(
    "RolledBack",
    "What a rollback did, or would do; ``etag`` is of the head now.",
    {"dry_run": bool, "etag": str},
    base=mirror(Rollback),
)
BlockState: Any = model(
    "BlockState", "A core block in numbers.", {"tokens": int, "budget": int, "id": str | None, "version": int | None}
)
CoreBlock: Any = model(
    "CoreBlock",
    "A core block; a text without a memory is a document's, kept outside the store and not repeated here.",
    {"key": str, "text": str | None, "memory": Memory | None},
    base=BlockState,
)
Core: Any = model(
    "Core",
    "Core memory as the caller's scope sees it.",
    # Blocks in the order in which they are compiled, and what else is in the core tier, under no block's key.
    {"head": str, "scope": str, "blocks": list[CoreBlock], "items": list[Memory]},
    {"withheld": list[str], "notes": list[str]},
)
Rejected: Any = model("Rejected", "A proposal that was rejected.", {"id": str, "state": Literal["rejected"], **_ONE})
Reopened: Any = model("Reopened", "A proposal that waits again.", {"id": str, "state": Literal["pending"], **_ONE})
Approved: Any
RejectedMany: Any
Approved, RejectedMany = (
    model(name, "What became of each, in the order given.", {"results": list[Decision], word: int, "failed": int})
    for name, word in (("Approved", "approved"), ("RejectedMany", "rejected"))
)
TokenState: Any = shape(
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
IssuedToken: Any = model(
    "IssuedToken", "A new token, and its secret: the only time that it is shown.", {"token": TokenState, "secret": str}
)
Revoked: Any = model("Revoked", "A token that holds no more.", {"id": str, **_ONE})
Rebuilt: Any = model("Rebuilt", "How many records were computed anew.", {"records": int, "head": str})
Reindexed: Any = model("Reindexed", "How many memories got terms and vectors anew.", {"indexed": int})
Outcomes: Any = model(
    "Outcomes",
    "What became of many memories: with ``each`` one outcome an item, with ``atomic`` one for all ``count`` items.",
    {"mode": str, "count": int, "outcomes": list[Written]},
)
Forgotten: Any = model(
    "Forgotten",
    "What became of those that are there, and the names of those that are not.",
    {"outcome": Written | None, "missing": list[str]},
)


_nothing = Annotated[None, Field(description="Null: fewer than two memories were named.")]
Merged: Any = model("Merged", "Nothing was merged: it takes two memories.", {"outcome": _nothing})
NOTHING_MERGED = {
    "model": Written | Merged,
    "description": "The same was there already, or there was nothing to merge.",
}
Memories = page(Memory, "Memories", head=str, total=int | None, withheld=list[str], notes=list[str])


AnyReceipt: Any = model(
    "AnyReceipt",
    "The record of one decision; each kind of it holds facts of its own. A context's has an `explanation`.",
    {"id": str, "tenant": str, "kind": str, "at": Instant, "actor": str, "policy": str, "head": str},
    {"reasons": list[Why]},
    base=create_model("Explained", __base__=Open, explanation=(_typed(Explanation | None), None)),
)


Quarantine: Any = model(
    "Quarantine",
    "The review queue in numbers.",
    {"depth": int, "oldest_at": str | None, "oldest_age_seconds": int | None, "stuck": int, "expired": int},
)


Status: Any = model(
    "Status",
    "Counts, sizes, the queue and the use of budgets; ``path`` is the owner's alone to see.",
    {"path": str | None, "tenant": str, "scope": str, "actor": str, "actor_record": Principal, "now": Instant},
    # The tag is for the `If-Match` of a rollback.
    {"head": str, "etag": str, "policy": str, "enabled": bool, "capture": bool, "recall": bool},
    {"embedder": str | None, "by_tier": dict[str, int], "by_status": dict[str, int], "live": int, "total": int},
    {"commits": int, "quarantine": Quarantine, "blocks": dict[str, BlockState]},
    base=Open,
)


_SAID = {
    200: "Done; of a write: the same was there already.",
    201: "Made; of a write: committed.",
    202: "Held for review.",
}
#: What a caller may do next, by operation.
_LINKS: Mapping[str, Mapping[str, str]] = table(__package__, "links.toml")


def problems_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of statuses that are problems, for ``responses`` of a route."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {each: {"description": "A problem.", "content": {MEDIA_TYPE: {"schema": schema}}} for each in statuses}


def answered(
    operation: str, status: int, answers: Mapping[int, Any], problems: tuple[int, ...]
) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of every status that a route which takes a token answers.

    ``answers`` has models, or the whole documentation, by status; links hang on ``status``.
    """
    found: dict[int | str, dict[str, Any]] = {
        code: dict(each) if isinstance(each, dict) else {"model": each, "description": _SAID[code]}
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
