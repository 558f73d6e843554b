"""The parameters and the body of a request: their types, how they are checked, and how OpenAPI describes them.

* Unknown fields are refused. In a body, a value of another JSON type is refused, never converted.
* Limits that a gate checks (lengths, ranges) are documented in the schema and checked by the gate. So a refusal has
  reasons and a receipt on every surface.
* An omitted field differs from null: omitted leaves a field unchanged, null empties it.
* In a query, a number is decimal and a boolean is ``true`` or ``false``.
* A problem lists the first error of each parameter and field. It never repeats a value.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from keepward.api import OPERATIONS
from keepward.core import change
from keepward.core.value import MAX_DEPTH
from keepward.http.requests import StrictRequest, invalid_input, unknown_input_message
from keepward.http.schemas import SCHEMAS, Field, NamedObject, Schema, named_object, schema_of
from keepward.mcp.tool import describe_type
from keepward.operations import REQUIRED, Operation
from keepward.types import (
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

#: ``msgspec`` names of JSON Schema keywords.
_META_NAMES = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
}


# --- types that are checked


@cache
def checked_type(kind: Any) -> Any:
    """Return the type that ``msgspec`` checks, with the limits that no gate checks."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [note.schema for note in parts[1:] if isinstance(note, Limit) and not isinstance(note, GateLimit)]
        words = {_META_NAMES[word]: value for schema in limits for word, value in schema.items()}
        if "pattern" in words:
            # In Python, ``$`` also matches before a final line break.
            words["pattern"] = re.sub(r"\$$", r"\\Z", words["pattern"])
        return Annotated[checked_type(parts[0]), msgspec.Meta(**words)] if words else checked_type(parts[0])
    if origin in (Union, types.UnionType):
        return Union[tuple(map(checked_type, parts))]  # noqa: UP007  known when it runs
    if origin is list:
        return list[checked_type(parts[0])]  # type: ignore[misc]
    # The fields of an object are checked one by one.
    return dict if isinstance(kind, type) and issubclass(kind, NamedObject) else kind


def _takes_text(kind: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Annotated, list):
        return _takes_text(parts[0])
    return kind is str or origin is Literal or any(map(_takes_text, parts))


def _items_at(kind: Any, depth: int) -> Any:
    """Return the type of the items of a list, so many lists deep."""
    origin, parts = get_origin(kind), get_args(kind)
    if not depth:
        return kind
    if origin is list:
        return _items_at(parts[0], depth - 1)
    inside = parts[:1] if origin is Annotated else [part for part in parts if part is not type(None)]
    return _items_at(inside[0], depth) if len(inside) == 1 else kind


#: Errors: the path of a value, such as ``["body", "changes", 0]``, and a sentence each.
Errors = list[tuple[list[Any], str]]


def _read_value(kind: Any, value: Any, path: list[Any], errors: Errors, *, text: bool = False) -> Any:
    """Return a JSON value, or with ``text`` the text of an address or header, as a value of a type."""
    kinds = _objects_in(kind)
    try:
        if text and not _takes_text(kind):
            # JSON may be null or have blanks around a value; an address omits the one and refuses the other.
            usable = value != "null" and value == value.strip() and value.count("[") + value.count("{") <= MAX_DEPTH
            return msgspec.json.decode(value if usable else "", type=checked_type(kind))
        if isinstance(value, float) and value.is_integer():
            # In JSON, 3.0 is an integer.
            value = int(value)
        read = msgspec.convert(value, checked_type(kind))
    except msgspec.DecodeError as exc:
        # Other messages repeat the value.
        message, _, index = str(exc).partition(" - at `$")
        steps = re.findall(r"[0-9]+", index)
        if not message.startswith("Expected"):
            wrong = _items_at(kind, len(steps))
            message = f"must be {describe_type(_as_text(schema_of(wrong)) if text else schema_of(wrong))}"
        errors.append(([*path, *steps], message))
        return None
    if not kinds:
        return read
    return [read_object(kinds, item, [*path, number], errors) for number, item in enumerate(value)]


def read_object(kinds: list[type[NamedObject]], value: Any, path: list[Any], errors: Errors) -> dict[str, Any]:
    """Return the sent fields of an object; its ``op`` says which of several kinds it is of."""
    if not isinstance(value, dict):
        errors.append((path, "must be an object"))
        return {}
    if len(kinds) > 1:
        by_op = {get_args(each.fields["op"].kind)[0]: each for each in kinds}
        op = value.get("op")
        if not isinstance(op, str) or op not in by_op:
            needed = "is required; it selects the type of the change; use" if op is None else "must be"
            errors.append(([*path, "op"], f"{needed} one of {', '.join(by_op)}"))
            return {}
        kinds = [by_op[op]]
    fields, given = kinds[0].fields, {}
    unknown = next((name for name in value if name not in fields), None)
    if unknown is not None and not kinds[0].is_open:
        errors.append((path, unknown_input_message("field", unknown, fields)))
    for name, field in fields.items():
        if name in value:
            given[name] = _read_value(field.kind, value[name], [*path, name], errors)
        elif field.default is REQUIRED:
            errors.append(([*path, name], "is required"))
    return given


def _objects_in(kind: Any) -> list[type[NamedObject]]:
    """Return the named objects of which a list has items."""
    if get_origin(kind) is Annotated:
        return _objects_in(get_args(kind)[0])
    items = get_args(kind) if get_origin(kind) is list else ()
    kinds = [part for item in items for part in (get_args(item) or (item,))]
    return [each for each in kinds if isinstance(each, type) and issubclass(each, NamedObject)]


# --- the changes of a proposal

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


#: Changes of a proposal by ``op``: name and description of the object, and the class of the change.
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
    change.Move: {"tier": TierName, "scope": Scope, "key": ShortText | None},
}
_NEW_MEMORY: Mapping[str, Any] = {
    name: Field(each.kind, each.default) for name, each in OPERATIONS["remember"].arguments.items() if name != "reason"
}


def _change_object(word: str) -> Any:
    name, doc, makes = CHANGES[word]
    if makes is None:
        about = "Id of the new memory, for later changes of the proposal. Default: a new id."
        new_id = Annotated[str, Limit(about, pattern=NEW_ID_PATTERN)] | None
        fields: dict[str, Any] = {**_NEW_MEMORY, "id": Field(new_id, None)}
    else:
        kinds = {**FIELDS, **_NARROWED_TYPES.get(makes, {})}
        fields = {
            each.name: Field(kinds[each.name], REQUIRED if each.required else each.default)
            for each in msgspec.structs.fields(makes)
        }
    return named_object(name, doc, further=False, op=Field(Literal[word]), **fields)


# --- bodies


def _list_of(kind: Any, most: int) -> Any:
    return Annotated[list[kind], Limit(minItems=1, maxItems=most)]


_approval = named_object(
    "Approval",
    "One proposal and the digest that you saw.",
    further=False,
    id=Id,
    digest=Field(Digest | None, None),
)
_message = named_object(
    "TalkMessage",
    "One message in the format of chat APIs; other fields are ignored.",
    further=True,
    role=Literal["user", "assistant", "system", "developer", "tool", "function"],
    content=Field(str | list[str | dict[str, Any]] | None, None),
    name=Field(str | None, None),
    id=Field(Annotated[str, Limit(maxLength=200)] | None, None),
    timestamp=Field(str | int | float | None, None),
)
#: The outcome of an item reports a refusal by a gate, so the schema has only the limits that refuse the request.
_item = named_object(
    "OneOfMany",
    "One of several new memories; the gates check each separately.",
    further=False,
    **{name: field._replace(judged=name in {"scope", "ttl", "occurred_at"}) for name, field in _NEW_MEMORY.items()},
)
_op: Any = Union[tuple(map(_change_object, CHANGES))]  # noqa: UP007  known when it runs
#: Types of nested parameters, which the registry does not define.
_NESTED_TYPES: Mapping[str, Mapping[str, Any]] = {
    "propose": {"changes": _list_of(_op, MAX_ITEMS)},
    "approve_many": {"items": _list_of(_approval, MAX_DECISIONS)},
    "remember_many": {"items": _list_of(_item, MAX_ITEMS)},
    "add": {"messages": _list_of(_message, MAX_ITEMS)},
}
#: Paths whose body is a file.
_FILES = ("/memory/blobs", "/memory/import", "/memory/restore-export")


def _exactly_one(word: str, *names: str) -> Schema:
    """Return the schema of an object with one of these fields, not null; `ids[]` is a list."""
    lists = {"type": "array", "minItems": 1}
    ways = {name.removesuffix("[]"): lists if name.endswith("[]") else {"type": "string"} for name in names}
    return {word: [{"required": [name], "properties": {name: schema}} for name, schema in ways.items()]}


#: Further parts of the schema of a body, by operation.
_FURTHER_SCHEMAS: Mapping[str, Schema] = {
    **dict.fromkeys(
        ("plan_contain", "contain"), _exactly_one("oneOf", "source", "actor", "session", "commit", "memory")
    ),
    "feedback": _exactly_one("anyOf", "used[]", "ignored[]"),
}


@cache
def body_of(operation: Operation) -> type[NamedObject] | None:
    """Return the object that is the body of an operation; None without a body."""
    asked = [each for wire, each in operation.arguments.items() if f"{{{wire}}}" not in operation.path]
    if not asked or operation.http_method in {"GET", "DELETE"} or operation.path.startswith(_FILES):
        return None
    name = operation.name.title().replace("_", "") + "Request"
    kinds = _NESTED_TYPES.get(operation.name) or _NARROWED_TYPES.get(operation.makes, {})
    fields: dict[str, Any] = {each.wire: Field(kinds.get(each.wire, each.kind), each.default) for each in asked}
    if operation.name == "propose":
        fields["mode"] = Field(Literal["atomic"], "atomic")
    made: type[NamedObject] = named_object(name, f"Parameters of `{operation.name}`.", further=False, **fields)
    SCHEMAS[name] |= _FURTHER_SCHEMAS.get(operation.name, {})
    return made


# --- all inputs of an operation


class Parameter(NamedTuple):
    """A parameter in a path, a query or a header."""

    #: ``path``, ``query`` or ``header``.
    location: str
    field: Field
    doc: str = ""

    def described(self, name: str) -> Schema:
        """Return the parameter as OpenAPI describes it."""
        schema = self.field.schema if self.location == "query" else schema_of(self.field.kind)
        needed = self.field.default is REQUIRED
        doc = {"description": self.doc} if self.doc else {}
        return {"name": name, "in": self.location, "required": needed, "schema": _as_text(schema), **doc}


def _as_text(schema: Schema) -> Schema:
    """Return the schema of a value in an address or header: never null, and a number that may be a text is one."""
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if any(each.get("type") == "string" for each in options):
        options = [each for each in options if each.get("type") != "integer"]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **_as_text(options[0])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The parameters and the body of an operation."""

    parameters: Mapping[str, Parameter]
    body: type[NamedObject] | None

    @property
    def query(self) -> Mapping[str, bool]:
        """The parameters of the query, and whether each may be repeated."""
        return {name: is_list(each.field.kind) for name, each in self.parameters.items() if each.location == "query"}

    @property
    def fields(self) -> Mapping[str, Field]:
        """The fields of the body."""
        return self.body.fields if self.body is not None else {}

    @property
    def needs_body(self) -> bool:
        return any(each.default is REQUIRED for each in self.fields.values())

    def read(self, request: StrictRequest) -> dict[str, Any]:
        """Return the parameters, with their defaults, and the sent fields of the body.

        Raises:
            Problem: a parameter or field is not usable.
        """
        given: dict[str, Any] = {}
        errors: Errors = []
        for name, each in self.parameters.items():
            sent, default = _sent(request, name, each), each.field.default
            if sent is not None:
                given[name] = _read_value(
                    each.field.kind, sent, [each.location, name], errors, text=isinstance(sent, str)
                )
            elif default is REQUIRED:
                errors.append(([each.location, name], "is required"))
            elif default is not None:
                given[name] = [] if default == () else default
        body = _expand_single_edit(request.parsed) if "changes" in self.fields else request.parsed
        if self.body is not None and (body is not None or self.needs_body):
            given |= read_object([self.body], body, ["body"], errors)
        if errors:
            raise invalid_input([(".".join(map(str, path)), message) for path, message in errors])
        return given


def _sent(request: StrictRequest, name: str, parameter: Parameter) -> str | list[str] | None:
    if parameter.location == "path":
        return str(request.path_params[name])
    if parameter.location == "header":
        return request.headers.get(name)
    if is_list(parameter.field.kind):
        return request.query_params.getlist(name) or None
    return request.query_params.get(name)


def is_list(kind: Any) -> bool:
    """Return whether a type accepts several values."""
    return get_origin(kind) is list or (get_origin(kind) is not Literal and any(map(is_list, get_args(kind))))


def inputs_of(operation: Operation, kinds: Mapping[str, Any], http_only: Mapping[str, Parameter]) -> Inputs:
    """Return the inputs of an operation. ``kinds`` replaces types of parameters; None if it is not sent there."""
    body, parameters = body_of(operation), {}
    for wire, argument in operation.arguments.items():
        kind = kinds.get(wire, argument.kind)
        doc = argument.doc if wire not in kinds else next((note.doc for note in getattr(kind, "__metadata__", ())), "")
        if f"{{{wire}}}" in operation.path:
            parameters[wire] = Parameter("path", Field(kind), doc)
        elif body is None and kind is not None:
            parameters[wire] = Parameter("query", Field(kind, argument.default), doc)
    # Required parameters first.
    ordered = sorted(parameters.items(), key=lambda item: item[1].field.default is not REQUIRED)
    return Inputs(parameters={**dict(ordered), **http_only}, body=body)
