"""Tools: functions of a handle and of checked arguments, with a name, a description and a schema for models.

Invariants
(1) A tool knows no transport and imports no SDK.
(2) A tool that fails raises a `KeepwardError`; the outcome of a write is data, never an error.
(3) The types of the arguments define the schema and the check. An optional argument counts as missing if it is null, an
    empty text or list, "null" or "None", because models write these. For the same reason a text that can only mean one
    number, boolean, list or object counts as that: "5" as 5, and "work" as ["work"].
(4) An error about an argument names it and its type; it never repeats the value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, get_type_hints

import msgspec

from keepward.core.value import suggestion, unknown_field_message
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.memory import Memory

#: Maximum characters of a text, and items of a list, in a call.
MAX_LENGTH = 20_000
MAX_ITEMS = 1_000
#: Values that models write for nothing, and arguments in which these are ordinary text.
_EMPTY_VALUES = frozenset({"", "null", "None", "none", "undefined"})
_FREE_TEXT_ARGUMENTS = frozenset({"text", "reason", "old", "new"})
#: All JSON parsers read integers up to this one exactly.
_MAX_EXACT_INTEGER = 2**53
#: Types of arguments that models also write as a text.
_TYPES_AS_TEXT: Mapping[str, Any] = {
    "integer": int | float,
    "number": int | float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_SEPARATOR = re.compile(r"[,;\n]")
_PATH = re.compile(r" - at `\$\.(\w+)")

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class NoArguments(TypedDict):
    """The arguments of a tool that takes none."""


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool."""

    #: The structured content.
    data: dict[str, Any]
    #: The same as text.
    text: str
    #: Further sentences, each a block of its own.
    notes: tuple[str, ...] = ()


#: A function of a handle and of checked arguments.
ToolFunction = Callable[..., ToolAnswer]


class Tool:
    """A function that models call by its name, with the type of its arguments."""

    def __init__(self, run: ToolFunction, arguments: Any, *, reads: bool, destroys: bool) -> None:
        self.name, self.run = run.__name__, run
        #: Description for models.
        self.about = " ".join(inspect.cleandoc(run.__doc__ or "").split())
        #: Whether it only reads, and whether it retires or overwrites a memory.
        self.reads, self.destroys = reads, destroys
        self._arguments = arguments

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments, in the order of their declaration."""
        parts = msgspec.json.schema_components([self._arguments], ref_template="{name}")[1]
        own = parts[self._arguments.__name__]
        properties = {name: _inline_types(own["properties"][name], parts) for name in get_type_hints(self._arguments)}
        needed = {"required": own["required"]} if own.get("required") else {}
        return {"type": "object", "properties": properties, **needed, "additionalProperties": False}

    def call(self, memory: Memory, args: Mapping[str, Any] | None) -> ToolAnswer:
        return self.run(memory, self.checked_arguments(args))

    def checked_arguments(self, args: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of a call without those that count as missing; see (3)."""
        properties, needed = self.input_schema["properties"], self.input_schema.get("required", ())
        unknown = next((key for key in args or () if key not in properties), None)
        if unknown is not None:
            raise InvalidInput(f"{self.name}: {unknown_field_message('argument', unknown, properties)}")
        given = {
            key: _to_declared_type(value, properties[key])
            for key, value in (args or {}).items()
            if value is not None and (key in needed or not _is_left_out(key, value))
        }
        if missing := [key for key in needed if key not in given]:
            about = properties[missing[0]].get("description", "")
            raise InvalidInput(f"{self.name} needs `{missing[0]}`" + (f": {about.rstrip('.')}" if about else ""))
        for key, value in given.items():
            check_size(value, f"`{key}`")
        try:
            converted: dict[str, Any] = msgspec.convert(given, self._arguments)
        except msgspec.ValidationError as fault:
            # The message of the error may repeat the value.
            path = _PATH.search(str(fault))
            if path is None:
                raise InvalidInput(f"{self.name}: an argument has a wrong type") from None
            schema = properties[path[1]]
            several = schema.get("type") == "array" and isinstance(given[path[1]], str)
            hint = 'write ["one", "two"]' if several else suggestion(given[path[1]], schema.get("enum", ())).rstrip()
            raise InvalidInput("; ".join(filter(None, (f"`{path[1]}` is {describe_type(schema)}", hint)))) from None
        return converted

    def as_dict(self) -> dict[str, Any]:
        """Return the tool as an object of the protocol."""
        hints = {"readOnlyHint": True} if self.reads else {"readOnlyHint": False, "destructiveHint": self.destroys}
        return {
            "name": self.name,
            "description": self.about,
            "inputSchema": self.input_schema,
            "annotations": {**hints, "openWorldHint": False},
        }


def tool(
    arguments: Any = NoArguments, *, reads: bool = False, destroys: bool = False
) -> Callable[[ToolFunction], Tool]:
    """Make a tool of a function: its name is the tool's name, its docstring the description for models.

    ``arguments`` is a TypedDict; the function gets the arguments of a call as such a dictionary.
    """
    return lambda run: Tool(run, arguments, reads=reads, destroys=destroys)


def _inline_types(schema: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument, with its named types inlined."""
    if "$ref" in schema:
        return {"enum": parts[schema["$ref"]]["enum"]}
    return {**schema, "items": _inline_types(schema["items"], parts)} if "items" in schema else schema


def describe_type(schema: Mapping[str, Any]) -> str:
    """Return the type of an argument in words."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "anyOf" in schema:
        return " or ".join(map(describe_type, schema["anyOf"]))
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" from {low} to {high}" if low is not None and high is not None else "" if low is None else f" from {low}"
    match schema.get("type"):
        case "array":
            return f"a list, each item {describe_type(schema['items'])}"
        case kind:
            names = {
                "string": "a text",
                "integer": "a whole number",
                "number": "a number",
                "boolean": "true or false",
                "null": "null",
            }
            return names.get(str(kind), "an object") + bounds


def _to_declared_type(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value in the type of its argument if it can only mean one value of it; else the value itself."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INTEGER:
        return int(value)
    kind = str(schema.get("type"))
    if not isinstance(value, str) or kind not in _TYPES_AS_TEXT or len(value) > MAX_LENGTH:
        return value
    text = value.strip()
    try:
        read = msgspec.json.decode(text.lower() if kind == "boolean" else text)
    except (msgspec.DecodeError, RecursionError):
        # A separator may part several items, or belong to one.
        return [text] if kind == "array" and not text.startswith("[") and not _SEPARATOR.search(text) else value
    if kind == "array" and isinstance(read, int | float):
        return [text]
    fits = isinstance(read, _TYPES_AS_TEXT[kind]) and isinstance(read, bool) is (kind == "boolean")
    return _to_declared_type(read, schema) if fits else value


def _is_left_out(name: str, value: Any) -> bool:
    """Whether a value of an optional argument counts as missing; see (3)."""
    if name in _FREE_TEXT_ARGUMENTS:
        return False
    if isinstance(value, list):
        return all(isinstance(item, str) and _is_left_out(name, item) for item in value)
    return isinstance(value, str) and value.strip() in _EMPTY_VALUES


def check_size(value: Any, name: str) -> None:
    """Check that texts in a value are well-formed, and that texts, lists and integers are not too long.

    Raises:
        InvalidInput: a text is malformed or a value is too long.
    """
    if isinstance(value, str):
        if len(value) > MAX_LENGTH:
            raise InvalidInput(f"{name} has at most {MAX_LENGTH} characters; shorten it or split it")
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise InvalidInput(f"{name} contains an invalid character; send well-formed Unicode")
    elif isinstance(value, int):
        if abs(value) > _MAX_EXACT_INTEGER:
            raise InvalidInput(f"{name} has at most 16 digits")
    elif isinstance(value, list):
        if len(value) > MAX_ITEMS:
            raise InvalidInput(f"{name} has at most {MAX_ITEMS} items; send the rest in another call")
        for item in value:
            check_size(item, name)
