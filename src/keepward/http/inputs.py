"""The parameters and the body of a request: structs made of the signatures in ``api.py``, which ``msgspec`` checks.

* Unknown fields are refused. In a body, a value of another JSON type is refused, never converted.
* Limits that a gate checks (lengths, ranges) are documented in the schema and checked by the gate. So a refusal has
  reasons and a receipt on every surface.
* An omitted field differs from null: omitted leaves a field unchanged, null empties it.
* A problem names the first wrong parameter or field. It never repeats a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from inspect import getdoc
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.json import schema_components

from keepward.api import OPERATIONS
from keepward.core import change
from keepward.http.requests import StrictRequest, invalid_input, unknown_input_message
from keepward.http.schemas import SCHEMAS, Schema
from keepward.mcp.tool import describe_type
from keepward.operations import REQUIRED, Operation, parts_of, without_none
from keepward.types import FIELDS, MAX_DECISIONS, MAX_ITEMS, NEW_ID_PATTERN, PARAMETERS, Digest, Id

_REFERENCE = "#/components/schemas/"
#: Name of the class of the parameters of an operation, which the document describes one by one.
_PARAMETERS = "Parameters"
#: Closed sets of names, in the order in which a person reads them; ``msgspec`` sorts the names of a schema.
_ORDER: dict[frozenset[str], list[str]] = {}


def _struct(name: str, doc: str, fields: Iterable[tuple[str, Any, Any]], **options: Any) -> type[Struct]:
    """Return a class of objects with these fields: each with its name, its type and its default in Python.

    A field that was not sent is ``UNSET``, which its conversion to JSON leaves out.
    """
    fields = list(fields)
    names = [get_args(part) for _, kind, _ in fields for part in parts_of(kind) if get_origin(part) is Literal]
    _ORDER.update((frozenset(each), list(each)) for each in names)
    made = [
        (name, kind) if default is REQUIRED else (name, _with_default(kind, default) | UnsetType, UNSET)
        for name, kind, default in fields
    ]
    options = {"forbid_unknown_fields": True, "kw_only": True, "frozen": True, **options}
    return defstruct(name, made, namespace={"__doc__": doc}, **options)


def _with_default(kind: Any, default: Any) -> Any:
    """Return a type whose schema has a default, if JSON has it and it is not null."""
    usual = [] if default == () else default
    return (
        Annotated[kind, Meta(extra_json_schema={"default": usual})]
        if isinstance(usual, str | int | float | list)
        else kind
    )


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
    fields = {name: rest.pop(given) for given, name in _SINGLE_EDIT_FIELDS.items() if given in rest}
    return {**rest, "changes": [{"op": "insert", "tier": tier, **({"key": key} if key else {}), **fields}]}


#: Name, type and default of each field of a new memory.
_NEW_MEMORY = [
    (name, each.kind, each.default) for name, each in OPERATIONS["remember"].arguments.items() if name != "reason"
]


def _change_object(word: str, makes: Any) -> type[Struct]:
    """Return the class of a change of a proposal; ``word`` is its ``op``."""
    kinds = {name: PARAMETERS.get(f"{word}.{name}", kind) for name, kind in FIELDS.items()}
    fields = [
        (each.name, kinds[each.name], REQUIRED if each.required else each.default)
        for each in msgspec.structs.fields(makes)
    ]
    if makes is change.Insert:
        about = "Id of the new memory, for later changes of the proposal. Default: a new id."
        new_id = Annotated[str, Meta(description=about, pattern=NEW_ID_PATTERN)] | None
        fields = [*_NEW_MEMORY, ("id", new_id, None)]
    return _struct(f"{makes.__name__}Op", getdoc(makes) or "", fields, tag_field="op", tag=word)


def _without(kind: Any, unwanted: Callable[[Meta], Any]) -> Any:
    """Return a type without some of its limits."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        notes = tuple(note for note in parts[1:] if not (isinstance(note, Meta) and unwanted(note)))
        inside = _without(parts[0], unwanted)
        return Annotated[(inside, *notes)] if notes else inside
    if origin in (Union, UnionType):
        return Union[tuple(_without(part, unwanted) for part in parts)]  # noqa: UP007  known when it runs
    return list[_without(parts[0], unwanted)] if origin is list else kind  # type: ignore[misc]


# --- bodies


def _list_of(kind: Any, most: int) -> Any:
    return Annotated[list[kind], Meta(min_length=1, max_length=most)]


class Approval(Struct, forbid_unknown_fields=True):
    """One proposal and the digest that you saw."""

    id: Id
    digest: Digest | UnsetType | None = UNSET


class TalkMessage(Struct):
    """One message in the format of chat APIs; other fields are ignored."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: str | list[str | dict[str, Any]] | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    id: Annotated[str, Meta(max_length=200)] | UnsetType | None = UNSET
    timestamp: str | int | float | UnsetType | None = UNSET


#: Fields of an item of many whose gate limits refuse the request. The outcome of the item reports any other refusal.
_CHECKED_IN_AN_ITEM = {"scope", "ttl", "occurred_at", "valid_from", "valid_until"}
_item = _struct(
    "OneOfMany",
    "One of several new memories; the gates check each separately.",
    [
        (name, kind if name in _CHECKED_IN_AN_ITEM else _without(kind, attrgetter("extra_json_schema")), default)
        for name, kind, default in _NEW_MEMORY
    ],
)
#: A change of a proposal. Only jobs and rollbacks make the two others.
_change: Any = Union[  # noqa: UP007  known when it runs
    tuple(
        _change_object(word, makes)
        for word, makes in change.CHANGE_BY_OPERATION.items()
        if makes not in (change.Expire, change.Revert)
    )
]
#: Types of nested parameters, which the registry does not define.
_NESTED_TYPES: Mapping[str, Mapping[str, Any]] = {
    "propose": {"changes": _list_of(_change, MAX_ITEMS)},
    "approve_many": {"items": _list_of(Approval, MAX_DECISIONS)},
    "remember_many": {"items": _list_of(_item, MAX_ITEMS)},
    "add": {"messages": _list_of(TalkMessage, MAX_ITEMS)},
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
def body_of(operation: Operation) -> type[Struct] | None:
    """Return the class of the bodies of an operation; None without a body."""
    asked = [each for wire, each in operation.arguments.items() if f"{{{wire}}}" not in operation.path]
    if not asked or operation.http_method in {"GET", "DELETE"} or operation.path.startswith(_FILES):
        return None
    name = operation.name.title().replace("_", "") + "Request"
    kinds = _NESTED_TYPES.get(operation.name, {})
    fields = [(each.wire, kinds.get(each.wire, each.kind), each.default) for each in asked]
    if operation.name == "propose":
        fields.append(("mode", Literal["atomic"], "atomic"))
    made = _struct(name, f"Parameters of `{operation.name}`.", fields)
    schema_of_struct(made).update(_FURTHER_SCHEMAS.get(operation.name, {}))
    return made


@cache
def arguments_of(operation: Operation) -> type[Struct]:
    """Return the class of all arguments of an operation, by their names in Python; it is not in the document."""
    kinds, in_query = _NESTED_TYPES.get(operation.name, {}), operation.http_method in {"GET", "DELETE"}
    fields = []
    for wire, each in operation.arguments.items():
        # What a path cannot contain, such as a slash, is an ordinary character here.
        kind = _without(kinds.get(wire, each.kind), lambda note: note.extra is not None and note.pattern)
        fields.append((wire, without_none(kind) if in_query else kind, each.default))
    return _struct(_PARAMETERS, "", fields, rename={wire: each.name for wire, each in operation.arguments.items()})


@cache
def schema_of_struct(kind: type[Struct]) -> Schema:
    """Return the schema of a class of objects, which is then one of the document."""
    described: dict[str, Schema] = _in_order(schema_components([kind], ref_template=_REFERENCE + "{name}")[1])
    SCHEMAS.update({name: each for name, each in described.items() if name != _PARAMETERS})
    return described[kind.__name__]


def _in_order(schema: Any) -> Any:
    """Return a schema with the names of closed sets in their order."""
    if isinstance(schema, list):
        return [_in_order(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _ORDER.get(frozenset(each), each) if name == "enum" else _in_order(each) for name, each in schema.items()
    }


# --- values that were sent


def read_object(kind: type[Struct], value: Any, locations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the sent fields of an object: of a body, or with ``locations`` of parameters, which are texts.

    Raises:
        Problem: the object does not have this class; it names the first wrong field, and never repeats a value.
    """
    try:
        return dict(msgspec.to_builtins(msgspec.convert(value, kind, strict=locations is None)))
    except msgspec.ValidationError as exc:
        path, sentence = _explain(str(exc), value, schema_of_struct(kind))
        if locations is not None and "got `str`" in sentence:
            sentence = f"must be {describe_type(schema_of_struct(kind)['properties'][path[0]])}"
        where = ["body", *path] if locations is None else [locations[path[0]], *path]
        raise invalid_input(".".join(where), sentence) from None


def _with_integers(value: Any) -> Any:
    """Return an object in which 3.0 is 3, as in JSON it is an integer; also in the objects of its lists."""
    if isinstance(value, list):
        return [_with_integers(item) if isinstance(item, dict) else item for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, dict):
        return value
    return {name: each if isinstance(each, dict) else _with_integers(each) for name, each in value.items()}


def _explain(message: str, value: Any, schema: Schema) -> tuple[list[str], str]:
    """Return the path of a wrong value, and a sentence about it, from a message of ``msgspec``.

    The path has only names of the schema, because a message may repeat what was sent.
    """
    is_unknown, path = message.startswith("Object contains"), list[str]()
    message, _, steps = message.rpartition(" - at `$") if " - at `$" in message else (message, "", "")
    for step in re.findall(r"[^.\[\]`]+", steps):
        inside = _chosen(schema, value)
        if is_unknown and _unknown_field(inside, value):
            # A message about an unknown field ends with a name of the caller's own.
            break
        is_item = isinstance(value, list) and step.isdecimal() and "items" in inside
        if not is_item and step not in inside.get("properties", ()):
            break
        path.append(step)
        schema, value = (inside["items"], value[int(step)]) if is_item else (inside["properties"][step], value[step])
    inside = _chosen(schema, value)
    if "discriminator" in inside and isinstance(value, dict):
        needed = "must be" if "op" in value else "is required; it selects the type of the change; use"
        return [*path, "op"], f"{needed} one of {', '.join(inside['discriminator']['mapping'])}"
    known = inside.get("properties", {})
    if message.startswith("Object missing"):
        return [*path, message.split("`")[1]], "is required"
    if is_unknown:
        return path, unknown_input_message("field", _unknown_field(inside, value) or "", known)
    if known or "discriminator" in inside:
        return path, "must be an object"
    # Other messages repeat the value, or show an operator instead of words.
    as_it_is = message.startswith("Expected") and not re.search("` [<>]=", message)
    return path, message if as_it_is else f"must be {describe_type(schema)}"


def _unknown_field(schema: Schema, value: Any) -> str | None:
    """Return the first field of an object that its schema does not have."""
    known = schema.get("properties", {})
    return next((name for name in value if name not in known), None) if known and isinstance(value, dict) else None


def _chosen(schema: Schema, value: Any) -> Schema:
    """Return the schema of an object or a list; of several kinds of objects that of its ``op``, if it is known."""
    if "$ref" in schema:
        return SCHEMAS[schema["$ref"].removeprefix(_REFERENCE)]
    if "discriminator" in schema:
        op = value.get("op") if isinstance(value, dict) else None
        known = schema["discriminator"]["mapping"].get(op) if isinstance(op, str) else None
        return schema if known is None else SCHEMAS[known.removeprefix(_REFERENCE)]
    return next((each for each in schema.get("anyOf", ()) if each.keys() & {"items", "properties"}), schema)


# --- all inputs of an operation


class Parameter(NamedTuple):
    """A parameter in a path, a query or a header."""

    #: ``path``, ``query`` or ``header``.
    location: str
    #: Its type, with limits and a description.
    kind: Any
    #: ``REQUIRED`` if it has none.
    default: Any = None


class Inputs:
    """The parameters and the body of an operation."""

    def __init__(self, parameters: Mapping[str, Parameter], body: type[Struct] | None = None) -> None:
        self.parameters, self.body = parameters, body

    @cached_property
    def _checked(self) -> type[Struct]:
        """The class of all parameters; the attribute of a header has no hyphens."""
        attributes = {name.lower().replace("-", "_"): name for name in self.parameters}
        fields = [
            (attribute, without_none(self.parameters[name].kind), self.parameters[name].default)
            for attribute, name in attributes.items()
        ]
        return _struct(_PARAMETERS, "", fields, rename=attributes)

    @cached_property
    def schemas(self) -> Mapping[str, Schema]:
        """The schemas of the parameters."""
        schemas: Mapping[str, Schema] = schema_of_struct(self._checked)["properties"]
        return schemas

    @property
    def query(self) -> Mapping[str, bool]:
        """The parameters of the query, and whether each may be repeated."""
        return {name: self._is_list(name) for name, each in self.parameters.items() if each.location == "query"}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the parameters."""
        return {
            name: [] if each.default == () else each.default
            for name, each in self.parameters.items()
            if each.default is not None and each.default is not REQUIRED
        }

    @cached_property
    def needs_body(self) -> bool:
        return self.body is not None and bool(schema_of_struct(self.body).get("required"))

    def described(self) -> list[Schema]:
        """Return the parameters as OpenAPI describes them, required ones first."""
        return sorted(map(self._described, self.parameters), key=lambda each: not each["required"])

    def _described(self, name: str) -> Schema:
        location, _, default = self.parameters[name]
        schema = dict(self.schemas[name])
        doc = {"description": schema.pop("description")} if "description" in schema else {}
        return {"name": name, "in": location, "required": default is REQUIRED, "schema": schema, **doc}

    def _is_list(self, name: str) -> bool:
        return self.schemas[name].get("type") == "array"

    def read(self, request: StrictRequest) -> dict[str, Any]:
        """Return the parameters, with their defaults, and the sent fields of the body.

        Raises:
            Problem: a parameter or field is not usable.
        """
        sent = {name: value for name in self.parameters if (value := self._sent(request, name)) is not None}
        locations = {name: each.location for name, each in self.parameters.items()}
        given = self.defaults | read_object(self._checked, sent, locations)
        body = request.parsed
        if self.body is None or (body is None and not self.needs_body):
            return given
        if "changes" in self.body.__struct_fields__:
            body = _expand_single_edit(body)
        return given | read_object(self.body, _with_integers(body))

    def _sent(self, request: StrictRequest, name: str) -> str | list[str] | None:
        location = self.parameters[name].location
        if location == "path":
            return str(request.path_params[name])
        if location == "header":
            return request.headers.get(name)
        return (request.query_params.getlist(name) or None) if self._is_list(name) else request.query_params.get(name)


def inputs_of(operation: Operation, kinds: Mapping[str, Any], http_only: Mapping[str, Parameter]) -> Inputs:
    """Return the inputs of an operation. ``kinds`` replaces types of parameters; None if it is not sent there."""
    body, parameters = body_of(operation), {}
    for wire, argument in operation.arguments.items():
        kind = kinds.get(wire, argument.kind)
        if f"{{{wire}}}" in operation.path:
            parameters[wire] = Parameter("path", kind, REQUIRED)
        elif body is None and kind is not None:
            parameters[wire] = Parameter("query", kind, argument.default)
    return Inputs({**parameters, **http_only}, body)
