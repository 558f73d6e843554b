"""Request models: pydantic models made from the parameters of operations.

* Unknown fields are refused. In a body, a value of another JSON type is refused, never converted.
* Limits that a gate checks (lengths, ranges) are documented in the schema and checked by the gate. So a refusal has
  reasons and a receipt on every surface.
* An omitted field differs from null: omitted leaves a field unchanged, null empties it.
* In a query, a number is decimal and a boolean is ``true`` or ``false``.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from keepward.api import OPERATIONS
from keepward.core import change
from keepward.core.value import unknown_field_message
from keepward.operations import REQUIRED, Argument, Operation
from keepward.types import (
    AS_OF_PATTERN,
    FIELDS,
    MAX_DECISIONS,
    MAX_ITEMS,
    NEW_ID_PATTERN,
    Digest,
    GateLimit,
    Id,
    Limit,
    Scope,
    ShortText,
    TierName,
)

#: Pydantic names of JSON Schema keywords.
_PYDANTIC_NAMES = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
    "allow_inf_nan": "allow_inf_nan",
}
_DIGITS = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,32})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_MOMENT = re.compile(r"[0-9A-Za-z][0-9A-Za-z:.+-]*", re.ASCII)
#: The type of an omitted parameter; it cannot be sent.
Absent = SkipJsonSchema[None]


def _integral(value: Any) -> Any:
    # In JSON, 3.0 is an integer.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parse_matching(pattern: re.Pattern[str], read: Callable[[str], Any], what: str) -> BeforeValidator:
    """Return the validator of a query value that must match a pattern."""

    def validate(value: str) -> Any:
        if not pattern.fullmatch(value):
            raise ValueError(f"must be {what}")
        return read(value)

    return BeforeValidator(validate)


def _moment(value: str) -> str:
    if not _MOMENT.fullmatch(value):
        raise ValueError("must be a commit's number or id, the name of a head, or an ISO 8601 instant")
    return value


_BODY_VALIDATORS: Mapping[Any, Any] = {int: BeforeValidator(_integral)}
_QUERY_VALIDATORS: Mapping[Any, Any] = {
    int: _parse_matching(_DIGITS, int, "a whole number"),
    float: _parse_matching(_NUMBER, float, "a number"),
    bool: _parse_matching(re.compile("true|false"), lambda text: text == "true", "true or false"),
}


def pydantic_type(kind: Any, *, query: bool = False, described: bool = True, judged: bool = True) -> Any:
    """Return the pydantic type of a parameter with its limits.

    ``judged`` says whether the schema contains limits that a gate checks.
    """
    inside = partial(pydantic_type, query=query, described=described, judged=judged)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        inner = inside(parts[0])
        base, *readers = get_args(inner) if parts[0] in (int, float, bool) and inner is not parts[0] else (inner,)
        notes = [note for note in parts[1:] if isinstance(note, Limit)]
        fields = [_field(note, described=described, judged=judged) for note in notes]
        if query and any(note.schema.get("pattern") == AS_OF_PATTERN for note in notes):
            readers.append(AfterValidator(_moment))
        # A validator must follow its bounds.
        return Annotated[(base, *fields, *readers)] if fields or readers else base
    if origin in (Union, types.UnionType):
        bare = [_bare(part) for part in parts]
        if float in bare:
            # Keep the number as written, so that a fraction is not converted to an integer.
            parts_here = [part if part in (int, float) else inside(part) for part in parts]
        elif query and int in bare and str in bare:
            # In a query, a number is text.
            parts_here = [inside(parts[bare.index(str)])]
        else:
            empty = Absent if query else None
            parts_here = [empty if part is type(None) else inside(part) for part in parts]
        return Union[tuple(parts_here)]  # noqa: UP007  known when it runs
    if origin is list:
        return list[inside(parts[0])]  # type: ignore[misc]
    reader = (_QUERY_VALIDATORS if query else _BODY_VALIDATORS).get(kind)
    return kind if reader is None else Annotated[kind, reader]


@cache
def accepts_as_of(kind: Any) -> bool:
    """Return whether a type accepts a commit or a head, not only an instant."""
    notes = kind.__metadata__ if get_origin(kind) is Annotated else ()
    here = any(isinstance(note, Limit) and note.schema.get("pattern") == AS_OF_PATTERN for note in notes)
    return here or any(accepts_as_of(part) for part in get_args(kind) if get_origin(part) in (Annotated, Union))


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _field(note: Limit, *, described: bool, judged: bool) -> Any:
    doc = (note.doc or None) if described else None
    if isinstance(note, GateLimit):
        return Field(description=doc, json_schema_extra=(dict(note.schema) if judged else {}) or None)
    return Field(description=doc, **{_PYDANTIC_NAMES[word]: value for word, value in note.schema.items()})


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        """Report an unknown field with the nearest known one."""
        if isinstance(value, dict) and cls.model_config.get("extra") == "forbid":
            wrong = next((name for name in value if name not in cls.model_fields), None)
            if wrong is not None:
                raise PydanticCustomError(
                    "unknown_field", "{said}", {"said": unknown_field_message("field", wrong, cls.model_fields)}
                )
        return value

    def sent_fields(self) -> dict[str, Any]:
        """Return the sent fields as JSON values."""
        return self.model_dump(exclude_unset=True)


def body_model(
    name: str, doc: str, asked: Iterable[Argument], kinds: Mapping[str, Any] | None = None, **config: Any
) -> type[Body]:
    """Return the model of a body with these arguments; ``kinds`` replaces the types of some."""
    fields: dict[str, Any] = {}
    for each in asked:
        kind = (kinds or {}).get(each.wire) or pydantic_type(each.kind)
        bare = _bare(each.kind)
        if each.default is REQUIRED:
            fields[each.wire] = (kind, ...)
        elif get_origin(bare) is list:
            fields[each.wire] = (kind, Field(default_factory=list))
        elif type(None) in get_args(bare):
            fields[each.wire] = (kind, None)
        else:
            fields[each.wire] = (kind, "" if each.default is change.UNSET else each.default)
    base = type("Body", (Body,), {"model_config": config}) if config else Body
    reads = name == "ProposeRequest"
    readers: dict[str, Any] = {"_one_edit": model_validator(mode="before")(_expand_single_edit)} if reads else {}
    made: type[Body] = create_model(
        name, __base__=base, __doc__=doc, __module__=__name__, __validators__=readers, **fields
    )
    return made


#: Fields of an edit with a ``target``, with their names in a change.
_SINGLE_EDIT_FIELDS = {"content": "text", "confidence": "confidence", "provenance": "source"}


def _expand_single_edit(value: Any) -> Any:
    """Return an edit of one ``target``, such as ``core:mission``, as a proposal of one change."""
    if not isinstance(value, dict) or "target" not in value or "changes" in value:
        return value
    rest = dict(value)
    tier, _, key = str(rest.pop("target")).partition(":")
    word = rest.pop("op", "replace" if "content" in rest else "delete")
    if word == "delete":
        return {**rest, "changes": [{"op": "retire", "id": key}]}
    change = {name: rest.pop(given) for given, name in _SINGLE_EDIT_FIELDS.items() if given in rest}
    return {**rest, "changes": [{"op": "insert", "tier": tier, **({"key": key} if key else {}), **change}]}


def _remove_defaults(schema: dict[str, Any]) -> None:
    """Remove defaults from a schema in which an omitted field means unchanged."""
    for each in schema.get("properties", {}).values():
        each.pop("default", None)


def _nothing_left_out(schema: dict[str, Any]) -> None:
    """Document that `without` is empty by default."""
    schema["properties"]["without"]["default"] = []


def _exactly_one_schema(word: str, *names: str) -> dict[str, Any]:
    """Return the schema of an object with one of these fields, not null; `ids[]` is a list."""
    lists = {"type": "array", "minItems": 1}
    ways = {name.removesuffix("[]"): lists if name.endswith("[]") else {"type": "string"} for name in names}
    return {word: [{"required": [name], "properties": {name: schema}} for name, schema in ways.items()]}


def _memory_arguments() -> list[Argument]:
    return [each for name, each in OPERATIONS["remember"].arguments.items() if name != "reason"]


#: Changes of a proposal by ``op``: name and description of the model, and the class of the change.
CHANGES: Mapping[str, tuple[str, str, Any]] = {
    "insert": ("InsertOp", "Insert a new memory.", None),
    "replace": ("ReplaceOp", "Give a memory new text or fields.", change.Replace),
    "append": ("AppendOp", "Add text to a memory.", change.Append),
    "supersede": ("SupersedeOp", "Replace a memory by another.", change.Supersede),
    "move": ("MoveOp", "Give a memory another tier, scope or key.", change.Move),
    "promote": ("PromoteOp", "Make a memory permanent, with its final text.", change.Promote),
    "retire": ("RetireOp", "Retire a memory; it can be restored.", change.Retire),
    "archive": ("ArchiveOp", "Archive a memory; it can be restored.", change.Archive),
    "restore": ("RestoreOp", "Make an inactive memory active again.", change.Restore),
    "reinforce": ("ReinforceOp", "Confirm a memory.", change.Reinforce),
}


#: Types that differ from those of a new memory: some fields do not accept null here.
_NARROWED_TYPES: Mapping[Any, Mapping[str, Any]] = {
    change.Replace: {"consent": bool},
    change.Append: {"consent": bool},
    change.Move: {
        "tier": pydantic_type(TierName),
        "scope": pydantic_type(Scope),
        "key": pydantic_type(ShortText) | None,
    },
}


def _change_model(word: str) -> type[Body]:
    name, doc, makes = CHANGES[word]
    asked = _memory_arguments() if makes is None else [_argument(each) for each in msgspec.structs.fields(makes)]
    asked.insert(2 if word == "append" else 1, Argument("op", "op", Literal[word], REQUIRED, ""))
    if makes is None:
        doc = "Id of the new memory, for later changes of the proposal. Default: a new id."
        asked.append(Argument("id", "id", Annotated[str, Limit(doc, pattern=NEW_ID_PATTERN)] | None, None, doc))
    config = {"json_schema_extra": _remove_defaults} if word in {"replace", "move"} else {}
    return body_model(name, doc, asked, _NARROWED_TYPES.get(makes), **config)


def _argument(field: msgspec.structs.FieldInfo) -> Argument:
    return Argument(field.name, field.name, FIELDS[field.name], REQUIRED if field.required else field.default, "")


Op: Any = Union[tuple(_change_model(word) for word in CHANGES)]  # noqa: UP007  made when it runs
Ops: Any = Annotated[list[Annotated[Op, Field(discriminator="op")]], Field(min_length=1, max_length=MAX_ITEMS)]


class Approval(Body):
    """One proposal and the digest that you saw."""

    id: pydantic_type(Id)  # type: ignore[valid-type]
    digest: pydantic_type(Digest) | None = None  # type: ignore[valid-type]


class TalkMessage(Body):
    """One message in the format of chat APIs; other fields are ignored."""

    model_config = ConfigDict(extra="allow", strict=True)

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: str | list[str | dict[str, Any]] | None = None
    name: str | None = None
    id: Annotated[str, Field(max_length=200)] | None = None
    timestamp: str | int | float | None = None


_ITEM_DOC = "One of several new memories; the gates check each separately."
#: The outcome of an item reports a refusal by a gate, so the schema has only the limits that refuse the request.
_ITEM_TYPES = {
    each.wire: pydantic_type(each.kind, judged=each.wire in {"scope", "ttl", "occurred_at"})
    for each in _memory_arguments()
}
OneOfMany = body_model("OneOfMany", _ITEM_DOC, _memory_arguments(), _ITEM_TYPES)
#: Types of nested parameters, which the registry does not define.
_NESTED_TYPES: Mapping[str, Mapping[str, Any]] = {
    "propose": {"changes": Ops},
    "approve_many": {"items": Annotated[list[Approval], Field(min_length=1, max_length=MAX_DECISIONS)]},
    "remember_many": {"items": Annotated[list[OneOfMany], Field(min_length=1, max_length=MAX_ITEMS)]},  # type: ignore[valid-type]
    "add": {"messages": Annotated[list[TalkMessage], Field(min_length=1, max_length=MAX_ITEMS)]},
}
#: Paths whose body is a file.
_FILES = ("/memory/blobs", "/memory/import", "/memory/restore-export")
#: Changes of the schema of a body, by operation.
_SCHEMA_CHANGES: Mapping[str, Callable[[dict[str, Any]], None] | dict[str, Any]] = {
    **dict.fromkeys(
        ("plan_contain", "contain"), _exactly_one_schema("oneOf", "source", "actor", "session", "commit", "memory")
    ),
    "context": _nothing_left_out,
    **dict.fromkeys(("amend", "revise", "move"), _remove_defaults),
    "feedback": _exactly_one_schema("anyOf", "used[]", "ignored[]"),
}


def body_of(operation: Operation) -> type[Body] | None:
    """Return the body model of an operation; None without a body."""
    asked = [each for wire, each in operation.arguments.items() if f"{{{wire}}}" not in operation.path]
    if (
        not asked
        or operation.http_method in {"GET", "DELETE"}
        or operation.path.startswith(_FILES)
        or operation.name == "approve"
    ):
        # The digest of an approval is in `If-Match`.
        return None
    name, changed = operation.name.title().replace("_", "") + "Request", _SCHEMA_CHANGES.get(operation.name)
    kinds = _NESTED_TYPES.get(operation.name) or _NARROWED_TYPES.get(operation.makes)
    if operation.name == "propose":
        asked.append(Argument("mode", "mode", Literal["atomic"], "atomic", ""))
    config = {"json_schema_extra": changed} if changed else {}
    return body_model(name, f"Parameters of `{operation.name}`.", asked, kinds, **config)
