"""Tools: typed functions of a handle, with a name, a description and a schema for models.

Invariants
(1) A tool knows no transport and imports no SDK.
(2) A tool that fails raises a `KeepwardError`; the outcome of a write is data, never an error.
(3) The signature of the function defines the schema and the check. An optional argument counts as missing if it is
    null, an empty text or list, "null" or "None", because models write these. For the same reason a text that can only
    mean one number, boolean, list or object counts as that: "5" as 5, and "work" as ["work"].
(4) An error about an argument names it and its type; it never repeats the value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, NotRequired, Required, TypeAlias, TypedDict, get_args, get_type_hints

import msgspec

from keepward.core.foreign_words import value_here
from keepward.core.value import suggestion, unknown_field_message
from keepward.errors import InvalidInput
from keepward.handles import LocalHandle

#: Maximum characters of a text, and items of a list, in a call.
MAX_LENGTH = 20_000
MAX_ITEMS = 1_000
#: Values that models write for nothing, and arguments in which these are ordinary text.
_EMPTY_VALUES = frozenset({"", "null", "None", "none", "undefined"})
_FREE_TEXT_ARGUMENTS = frozenset({"text", "reason", "old", "new"})
#: All JSON parsers read integers up to this one exactly.
_MAX_EXACT_INTEGER = 2**53
_SEPARATOR = re.compile(r"[,;\n]")
#: The argument at the end of a message of msgspec; the value before it may imitate one.
_PATH = re.compile(r"`\$\.(\w+)[^`]*`$")

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool."""

    #: The structured content.
    data: dict[str, Any]
    #: The same as text.
    text: str
    #: Further sentences, each a block of its own.
    notes: tuple[str, ...] = ()


class Tool:
    """A function that models call by its name."""

    def __init__(self, run: Callable[..., ToolAnswer], *, reads: bool, destroys: bool) -> None:
        self.name, self.run = run.__name__, run
        #: Description for models.
        self.about = " ".join(inspect.cleandoc(run.__doc__ or "").split())
        #: Whether it only reads, and whether it retires or overwrites a memory.
        self.reads, self.destroys = reads, destroys

    @cached_property
    def _arguments(self) -> Any:
        """The parameters after the handle, and those of ``**fields``, as a TypedDict."""
        hints, found = get_type_hints(self.run, include_extras=True), dict[str, Any]()
        for name, param in list(inspect.signature(self.run).parameters.items())[1:]:
            if param.kind is param.VAR_KEYWORD:
                found |= get_type_hints(get_args(hints[name])[0], include_extras=True)
            else:
                found[name] = (Required if param.default is param.empty else NotRequired)[hints[name]]
        return TypedDict(self.name, found, total=False)  # type: ignore[operator]

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments, in the order of their declaration."""
        parts = msgspec.json.schema_components([self._arguments], ref_template="{name}")[1]
        own = parts[self.name]
        properties = {name: _inline_types(own["properties"][name], parts) for name in get_type_hints(self._arguments)}
        needed = {"required": own["required"]} if own.get("required") else {}
        return {"type": "object", "properties": properties, **needed, "additionalProperties": False}

    def call(self, memory: LocalHandle, args: Mapping[str, Any] | None) -> ToolAnswer:
        return self.run(memory, **self.checked_arguments(args))

    def checked_arguments(self, args: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of a call without those that count as missing; see (3)."""
        properties, needed = self.input_schema["properties"], self.input_schema.get("required", ())
        unknown = next((key for key in args or () if key not in properties), None)
        if unknown is not None:
            raise InvalidInput(f"{self.name}: {unknown_field_message('argument', unknown, properties)}")
        given = {
            key: _read_text(value, properties[key].get("type"))
            for key, value in (args or {}).items()
            if value is not None and (key in needed or not _is_left_out(key, value))
        }
        if missing := [key for key in needed if key not in given]:
            about = properties[missing[0]].get("description", "")
            raise InvalidInput(f"{self.name} needs `{missing[0]}`" + (f": {about.rstrip('.')}" if about else ""))
        for key, value in given.items():
            check_size(value, f"`{key}`")
        try:
            converted: dict[str, Any] = msgspec.convert(given, self._arguments, strict=False)
        except msgspec.ValidationError as fault:
            # The message of the error may repeat the value.
            path = _PATH.search(str(fault))
            if path is None:
                raise InvalidInput(f"{self.name}: an argument has a wrong type") from None
            schema = properties[path[1]]
            several = schema.get("type") == "array" and isinstance(given[path[1]], str)
            here = value_here(path[1], given[path[1]])
            near = f"{given[path[1]]} is here {here}" if here else suggestion(given[path[1]], schema.get("enum", ()))
            hint = 'write ["one", "two"]' if several else near.rstrip()
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


def tool(*, reads: bool = False, destroys: bool = False) -> Callable[[Callable[..., ToolAnswer]], Tool]:
    """Make a tool of a function: its name is the tool's name, its docstring the description for models.

    Its first parameter is the handle, the others are the arguments. The description of an argument is in its type.
    Operations describe theirs in more words than the limit of tokens allows.
    """
    return lambda run: Tool(run, reads=reads, destroys=destroys)


def _inline_types(schema: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument, with its named types inlined."""
    if "$ref" in schema:
        return {"enum": parts[schema["$ref"]]["enum"]}
    return {**schema, "items": _inline_types(schema["items"], parts)} if "items" in schema else schema


def describe_type(schema: Mapping[str, Any]) -> str:
    """Return the type of an argument in words."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "title" in schema:
        return str(schema["title"])
    if "anyOf" in schema:
        # The words of a title come last, as they may have a comma.
        return " or ".join(map(describe_type, sorted(schema["anyOf"], key=lambda each: "title" in each)))
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = (
        f" from {low:,} to {high:,}" if low is not None and high is not None else "" if low is None else f" from {low}"
    )
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


def _read_text(value: Any, kind: Any) -> Any:
    """Return what a text means if its argument is a list or an object, or without the blanks around a number."""
    if not isinstance(value, str) or kind in {"string", None}:
        return value
    text = value.strip()
    if kind not in {"array", "object"}:
        return text
    try:
        read = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        # A separator may part several items, or belong to one.
        return [text] if kind == "array" and not text.startswith("[") and not _SEPARATOR.search(text) else value
    return [text] if kind == "array" and isinstance(read, int | float) else read


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
