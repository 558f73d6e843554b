"""Tools as data: a function of a handle, and what a model reads of it.

Invariants
(1) A tool is a function of a handle and of checked arguments; it knows no transport and imports no SDK.
(2) What a tool cannot do is raised as a `KeepwardError`; the outcome of a write is data and never an error.
(3) The types of the arguments are the schema and the check. An optional argument that is null, an empty text or list,
    "null" or "None" counts as left out: models write them.
(4) A sentence about a wrong argument names it and what it takes; it never repeats a value that was sent.
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

#: Most characters of a text and items of a list that a call may contain.
MAX_LENGTH = 20_000
MAX_ITEMS = 1_000
#: What models write for nothing. In these arguments it is a text like any other.
_EMPTY_VALUES = frozenset({"", "null", "None", "none", "undefined"})
_FREE_TEXT_ARGUMENTS = frozenset({"text", "reason", "old", "new"})
#: Up to here every whole number is one that JSON's readers agree on.
_MAX_EXACT_INTEGER = 2**53
_PATH = re.compile(r" - at `\$\.(\w+)")

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class NoArguments(TypedDict):
    """The arguments of a tool that takes none."""


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gives back."""

    #: The structured content.
    data: dict[str, Any]
    #: The same for a reader.
    text: str
    #: Sentences that go with it, each a block of its own.
    notes: tuple[str, ...] = ()


#: Takes a handle and checked arguments.
ToolFunction = Callable[..., ToolAnswer]


class Tool:
    """A function of a handle and of arguments of a type, which models call by its name."""

    def __init__(self, run: ToolFunction, arguments: Any, *, reads: bool, destroys: bool) -> None:
        self.name, self.run = run.__name__, run
        #: What a model reads about it.
        self.about = " ".join(inspect.cleandoc(run.__doc__ or "").split())
        #: Whether it changes no memory, and whether it retires or overwrites one.
        self.reads, self.destroys = reads, destroys
        self._arguments = arguments

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments, in the order in which they are declared."""
        parts = msgspec.json.schema_components([self._arguments], ref_template="{name}")[1]
        own = parts[self._arguments.__name__]
        properties = {name: _inline_types(own["properties"][name], parts) for name in get_type_hints(self._arguments)}
        needed = {"required": own["required"]} if own.get("required") else {}
        return {"type": "object", "properties": properties, **needed, "additionalProperties": False}

    def call(self, memory: Memory, args: Mapping[str, Any] | None) -> ToolAnswer:
        return self.run(memory, self.checked(args))

    def checked(self, args: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of a call without those left out; see (3)."""
        properties, needed = self.input_schema["properties"], self.input_schema.get("required", ())
        unknown = next((key for key in args or () if key not in properties), None)
        if unknown is not None:
            raise InvalidInput(f"{self.name}: {unknown_field_message('argument', unknown, properties)}")
        asked = {
            key: _to_integer(value)
            for key, value in (args or {}).items()
            if value is not None and (key in needed or not _is_left_out(key, value))
        }
        if missing := [key for key in needed if key not in asked]:
            about = properties[missing[0]].get("description", "")
            raise InvalidInput(f"{self.name} needs `{missing[0]}`" + (f": {about.rstrip('.')}" if about else ""))
        for key, value in asked.items():
            check_size(value, f"`{key}`")
        try:
            found: dict[str, Any] = msgspec.convert(asked, self._arguments)
        except msgspec.ValidationError as fault:
            # The words of the error may repeat the value.
            path = _PATH.search(str(fault))
            if path is None:
                raise InvalidInput(f"{self.name}: an argument has a wrong type") from None
            schema = properties[path[1]]
            guess = suggestion(asked[path[1]], schema.get("enum", ()))
            raise InvalidInput(
                "; ".join(filter(None, (f"`{path[1]}` is {describe_type(schema)}", guess.rstrip())))
            ) from None
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the tool as the protocol writes it."""
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
    """Make a tool of a function: its name is the tool's, its docstring what a model reads.

    ``arguments`` is a TypedDict. The function is given those of a call as a dictionary.
    """
    return lambda run: Tool(run, arguments, reads=reads, destroys=destroys)


def _inline_types(schema: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument, with named types in it written out."""
    if "$ref" in schema:
        return {"enum": parts[schema["$ref"]]["enum"]}
    return {**schema, "items": _inline_types(schema["items"], parts)} if "items" in schema else schema


def describe_type(schema: Mapping[str, Any]) -> str:
    """Return in words what an argument takes."""
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
            names = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
            return names.get(str(kind), "an object") + bounds


def _to_integer(value: Any) -> Any:
    """Return a whole number that was written with a point as such."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INTEGER else value


def _is_left_out(name: str, value: Any) -> bool:
    """Whether a model wrote an empty value for an argument that it does not need; see (3)."""
    if name in _FREE_TEXT_ARGUMENTS:
        return False
    if isinstance(value, list):
        return all(isinstance(each, str) and _is_left_out(name, each) for each in value)
    return isinstance(value, str) and value.strip() in _EMPTY_VALUES


def check_size(value: Any, name: str) -> None:
    """Make sure that texts in a value are well-formed, and that texts, lists and whole numbers are not too long.

    Raises:
        InvalidInput: they are not.
    """
    if isinstance(value, str):
        if len(value) > MAX_LENGTH:
            raise InvalidInput(f"{name} has at most {MAX_LENGTH} characters; shorten it or split it")
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise InvalidInput(f"{name} contains what is no character; send well-formed Unicode")
    elif isinstance(value, int):
        if abs(value) > _MAX_EXACT_INTEGER:
            raise InvalidInput(f"{name} has at most 16 digits")
    elif isinstance(value, list):
        if len(value) > MAX_ITEMS:
            raise InvalidInput(f"{name} has at most {MAX_ITEMS} items; send the rest in another call")
        for each in value:
            check_size(each, name)
