"""JSON schemas of the OpenAPI document: of any type, and of the named objects of responses.

* ``schema_of`` describes a type. The class of a result is described by the tables of ``core.results``, which also build
  the response. A test compares each response with its schema.
* ``named_object`` makes an object with a name in ``SCHEMAS``, which are the schemas of the document.
* Objects of responses allow further keys, because keys may be added.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from msgspec import Meta

from keepward.core.commit import Commit as CommitHeader
from keepward.core.commit import Reason, Receipt, Step
from keepward.core.compiled import Explanation
from keepward.core.journal import CommitView, Difference, Erased, Rollback, Version
from keepward.core.memory import Record
from keepward.core.principals import Actor, Token, TokenState, Trust
from keepward.core.proposal import Committed, Duplicate, Proposal, ProposedStep, Quarantined, Refused
from keepward.core.query import Hit as FoundHit
from keepward.core.query import Recall
from keepward.core.results import NESTED_FIELDS, SHAPES, VERSION_SHAPE, FieldChange, Key, expanded_fields, keys_of
from keepward.core.value import Data
from keepward.operations import REQUIRED
from keepward.settings import EffectiveSetting

Schema = dict[str, Any]
#: The named schemas of the document.
SCHEMAS: dict[str, Schema] = {}
_REFERENCE = "#/components/schemas/"
_INSTANT = {"type": "string", "format": "date-time"}
_HEX = {"type": "string", "description": "Hex digits.", "pattern": "^([0-9a-f]{2})*$"}
_PLAIN: Mapping[Any, Schema] = {
    Any: {},
    None: {"type": "null"},
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    datetime: _INSTANT,
    timedelta: {"type": "number"},
    bytes: _HEX,
    Trust: {"type": "string", "enum": [trust.label for trust in Trust]},
}
#: The named object of a class.
_objects: dict[type, Any] = {}


class Field(NamedTuple):
    """A field of a named object."""

    kind: Any
    #: ``REQUIRED`` if it has none.
    default: Any = REQUIRED

    @property
    def schema(self) -> Schema:
        schema = schema_of(self.kind)
        usual = [] if self.default == () else self.default
        return (
            schema
            if usual is REQUIRED or not isinstance(usual, str | int | float | list)
            else {**schema, "default": usual}
        )


class NamedObject:
    """The base of all named objects; each is a class, so that a type hint can contain it."""

    fields: Mapping[str, Field]
    #: Whether unknown fields are allowed.
    is_open: bool


def named_object(
    name: str, doc: str, base: Any = None, /, *, of: type | None = None, further: bool | None = None, **fields: Any
) -> Any:
    """Return a new named object. ``base`` gives it further fields; ``of`` is the class that it describes.

    ``further`` says whether the schema allows unknown fields; None leaves that open.
    """
    all_fields = dict(getattr(base, "fields", {}))
    all_fields |= {key: kind if isinstance(kind, Field) else Field(kind) for key, kind in fields.items()}
    made = type(name, (NamedObject,), {"__doc__": doc, "fields": all_fields, "is_open": further is not False})
    _objects[made] = _objects[of or made] = made
    SCHEMAS[name] = {
        "title": name,
        "description": doc,
        "type": "object",
        "properties": {key: field.schema for key, field in all_fields.items()},
        "required": [key for key, field in all_fields.items() if field.default is REQUIRED],
        **({} if further is None else {"additionalProperties": further}),
    }
    return made


def schema_of(kind: Any) -> Schema:
    """Return the JSON schema of a type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return schema_of(parts[0]) | {"description": parts[1].description}
    if origin in (Union, types.UnionType):
        return _one_of([schema_of(part) for part in parts])
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if typing.is_typeddict(kind) or kind in _objects:
        return {"$ref": _REFERENCE + (_objects.get(kind) or _object_of(kind)).__name__}
    holder = origin or kind
    if issubclass(holder, list | tuple | frozenset):
        return {"type": "array", "items": _one_of([schema_of(part) for part in parts if part is not Ellipsis])}
    if issubclass(holder, Mapping):
        return {"type": "object", "additionalProperties": (schema_of(parts[1]) if parts else {}) or True}
    if issubclass(kind, Enum):
        return {"type": "string", "enum": [member.value for member in kind]}
    return {"$ref": _REFERENCE + (_objects.get(kind) or _object_of(kind)).__name__}


def _one_of(options: list[Schema]) -> Schema:
    options = [option for number, option in enumerate(options) if option not in options[:number]]
    return {"anyOf": options} if len(options) > 1 else {} if not options else options[0]


def _object_of(kind: Any, name: str = "", doc: str = "", /, shape: tuple[Key, ...] = (), **fields: Any) -> Any:
    """Return the named object of a class, as ``results.to_json`` returns it; ``fields`` are added or replaced."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found: dict[str, Any] = {}
    if not issubclass(kind, Data):
        found = hints
    elif shape := shape or SHAPES.get(kind, ()):
        for key in shape:
            found[key.name] = typing.get_type_hints(key.owner)[key.name] if key.kind is None else key.kind
        found |= {key: hints[field] for key, field in NESTED_FIELDS.get(kind, {}).items() if key not in found}
    else:
        expanded = expanded_fields(kind)
        for field in kind.__struct_fields__:
            if field == "metadata_json":
                # Stored as text, returned as an object.
                found["metadata"] = dict[str, Any] | None
            elif field in expanded:
                # The id, and the complete value.
                found[field] = str | None if type(None) in get_args(hints[field]) else str
                found[expanded[field]] = hints[field]
            else:
                found[field] = hints[field]
    return named_object(name or kind.__name__, doc or inspect.getdoc(kind) or "", None, of=kind, **{**found, **fields})


def _all(kind: Any, names: str) -> dict[str, Any]:
    """Return fields of one type."""
    return dict.fromkeys(names.split(), kind)


def page_of(item: Any, name: str, **extra: Any) -> Any:
    """Return the object of a page of a list."""
    return named_object(name, "One page.", items=list[item], cursor=str | None, **extra)


Memory: Any = _object_of(Record, "Memory")
_object_of(Receipt, "ReceiptRecord")
_object_of(CommitHeader, "CommitHeader")
_object_of(Actor, "Principal")
_object_of(Step, "Event", "The change of one memory.")
Commit: Any = _object_of(
    CommitView,
    "Commit",
    "A commit of the journal; ``events`` is null unless requested.",
    events=list[Step] | None,
)
_object_of(Proposal, "Proposal", "A proposal: its diff, proposer, reason, and the digest that an approval needs.")
Reviewed: Any = named_object(
    "Reviewed",
    "A proposal for its reviewer; ``shown`` has every character that would be stored.",
    _objects[Proposal],
    shown=list[ProposedStep],
)
Proposals: Any = named_object(
    "Proposals",
    "One page of the review queue, oldest first; `counts` is by proposer, gate, tier and operation.",
    items=list[Reviewed],
    **_all(int, "offset total"),
    next_offset=int | None,
    counts=dict[str, dict[str, int]],
    oldest_at=datetime | None,
)
_object_of(Version, "MemoryVersion", "One version of a memory and the commit that made it.", shape=VERSION_SHAPE)
Written: Any = _object_of(
    Committed,
    "Written",
    "The outcome of a write; ``id`` and ``version`` are of the memory that was written, proposed or equal.",
    commit_header=CommitHeader | None,
    waiting=Proposal | None,
)
_objects |= dict.fromkeys((Duplicate, Quarantined, Refused), Written)
_object_of(Difference, changed=list[FieldChange])
_RECEIPT_FIELDS: Mapping[str, Any] = {"receipt": str, "receipt_record": Receipt}
Failure: Any = named_object(
    "Failure",
    "An error inside a response; ``status`` is the HTTP status of this error.",
    **_all(str, "code detail"),
    status=int,
)
Decision: Any = named_object(
    "Decision",
    "The result for one of several proposals.",
    id=str,
    ok=bool,
    outcome=Written | None,
    **{name: kind | None for name, kind in _RECEIPT_FIELDS.items()},
    error=Failure | None,
)
_object_of(
    FoundHit,
    "Hit",
    "One recalled memory; ``score`` and ``parts`` are rounded, ``exact_score`` and ``exact_parts`` are not.",
)
Found: Any = _object_of(Recall, "Found", "A page of the result of a query, best first.", cursor=str | None)
Certificate: Any = named_object(
    "Certificate", "What was erased, what proves it, and what it cannot promise.", further=True
)
Destroyed: Any = _object_of(Erased, "Destroyed", "An applied erasure.", certificate=Certificate)
Commits: Any = named_object(
    "Commits",
    # ``next_before`` is `before` of the next page.
    "Visible commits, newest first.",
    items=list[CommitView],
    next_before=int | None,
)
RolledBack: Any = _object_of(
    Rollback,
    "RolledBack",
    "The result of a rollback or of its dry run; ``etag`` is its digest in quotes, as `If-Match` takes it.",
    dry_run=bool,
    etag=str,
)
BlockState: Any = named_object(
    "BlockState", "A core block in numbers.", tokens=int, budget=int, id=str | None, version=int | None
)
CoreBlock: Any = named_object(
    "CoreBlock",
    "A core block. Without a memory, it is a document outside the store, whose text is not repeated here.",
    BlockState,
    key=str,
    text=str | None,
    memory=Record | None,
)
Core: Any = named_object(
    "Core",
    # Blocks in their order in a context, and core memories without the key of a block.
    "Core memory visible from the caller's scope.",
    **_all(str, "head scope"),
    **_all(list[str], "withheld notes"),
    blocks=list[CoreBlock],
    items=list[Record],
)
Rejected: Any = named_object(
    "Rejected", "A proposal that was rejected.", id=str, state=Literal["rejected"], **_RECEIPT_FIELDS
)
Reopened: Any = named_object(
    "Reopened", "A proposal that is pending again.", id=str, state=Literal["pending"], **_RECEIPT_FIELDS
)
Approved: Any = named_object(
    "Approved", "The result of each, in order.", results=list[Decision], approved=int, failed=int
)
RejectedMany: Any = named_object(
    "RejectedMany", "The result of each, in order.", results=list[Decision], rejected=int, failed=int
)
_object_of(
    Token,
    "TokenState",
    "What the store knows of a token; the token itself it does not know.",
    shape=(
        *keys_of(Token, "id name rights can tenant scope"),
        Key("state", str, TokenState),
        *keys_of(Token, "created_by made_with created_at expires_at revoked_at"),
    ),
    # Last use since this server started.
    used_at=datetime | None,
)
IssuedToken: Any = named_object(
    "IssuedToken", "A new token with its secret, which is shown only once.", token=Token, secret=str
)
Revoked: Any = named_object("Revoked", "A revoked token.", id=str, **_RECEIPT_FIELDS)
Rebuilt: Any = named_object("Rebuilt", "The number of rebuilt records.", records=int, head=str)
Reindexed: Any = named_object("Reindexed", "The number of reindexed memories.", indexed=int)
Outcomes: Any = named_object(
    "Outcomes",
    "Outcomes of several memories: with ``each`` one for each item, with ``atomic`` one for all ``count`` items.",
    mode=str,
    count=int,
    outcomes=list[Written],
)
Forgotten: Any = named_object(
    "Forgotten",
    "The outcome for the existing memories, and the ids of missing ones.",
    outcome=Written | None,
    missing=list[str],
)
Merged: Any = named_object(
    "Merged",
    "Nothing was merged: a merge needs two memories.",
    outcome=Annotated[None, Meta(description="Null: fewer than two memories were given.")],
)
Memories: Any = page_of(Record, "Memories", head=str, total=int | None, **_all(list[str], "withheld notes"))
AnyReceipt: Any = named_object(
    "AnyReceipt",
    "The record of one decision; its further keys depend on `kind`. That of a context has an `explanation`.",
    further=True,
    explanation=Field(Explanation | None, None),
    **dict.fromkeys(("id", "tenant", "kind", "actor", "policy", "head"), str),
    at=datetime,
    reasons=list[Reason],
)
Status: Any = named_object(
    "Status",
    "Counts, sizes, the queue and the use of budgets; only the owner sees ``path``.",
    further=True,
    **_all(str, "tenant scope actor head policy"),
    **_all(str | None, "path embedder"),
    **_all(bool, "enabled capture recall"),
    **_all(dict[str, int], "by_tier by_status"),
    **_all(int, "live total commits"),
    actor_record=Actor,
    now=datetime,
    quarantine=named_object(
        "Quarantine",
        "The review queue in numbers.",
        **_all(int, "depth stuck expired"),
        oldest_at=str | None,
        oldest_age_seconds=int | None,
    ),
    blocks=dict[str, BlockState],
)
_object_of(EffectiveSetting, "SettingInForce")
SettingsInForce: Any = named_object(
    "SettingsInForce",
    "The settings in force of a server.",
    file=named_object(
        "SettingsFile",
        # ``accepted``: all of it is in force; ``changed``: the file has changed, which takes effect after a restart.
        "The settings file read at the start of the server.",
        **_all(str, "path digest"),
        **_all(bool, "named accepted changed"),
        loosens=dict[str, str],
        withheld=list[str],
        accept_with=str | None,
    )
    | None,
    items=list[EffectiveSetting],
)
