"""Tools as data: a function of a handle, and what a model reads of it.

Invariants
(1) A tool is a function of a handle and of checked arguments; it knows no transport and imports no SDK.
(2) What a tool cannot do is raised as a `KeepwardError`; what became of a write is data and never an error.
(3) Arguments fit their schema: known names, right types, numbers that are numbers, well-formed text. For an argument
    that is not needed null, an empty text or list, "null" and "None" count as left out: models write them.
(4) A sentence about a wrong argument names it and what it takes; it never repeats a value that was sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from keepward.core.value import meant, no_such
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.memory import Memory

Schema = dict[str, Any]
Schemas = Mapping[str, Schema]
#: Most characters of a text and items of a list that a call may carry.
LONGEST = 20_000
MOST = 1_000
#: What models write for nothing. In these arguments it is a text like any other.
_NOTHING = frozenset({"", "null", "None", "none", "undefined"})
_WORDS = frozenset({"text", "reason", "old", "new"})
#: Up to here every whole number is one that JSON's readers agree on.
_EXACT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool gives back."""

    #: The structured content, as the tool's output schema has it.
    data: dict[str, Any]
    #: The same for a reader.
    text: str
    #: Sentences that go with it, each a block of its own.
    notes: tuple[str, ...] = ()


#: Takes a handle and checked arguments.
Run = Callable[..., Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    title: str
    #: What a model reads about it.
    about: str
    run: Run
    input_schema: Schema
    output_schema: Schema
    #: Whether it changes nothing that anybody remembers.
    reads: bool
    #: Whether it takes something out of memory or overwrites it.
    destroys: bool
    #: Whether a second call with the same arguments changes nothing more.
    repeatable: bool

    def call(self, memory: Memory, given: Mapping[str, Any] | None) -> Answer:
        return self.run(memory, self.checked(given))

    def checked(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of a call without those left out; see (3)."""
        return _object(self.input_schema, dict(given or {}), self.name)

    def as_dict(self) -> dict[str, Any]:
        """Return the tool as the protocol writes it down."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": {
                "readOnlyHint": self.reads,
                "destructiveHint": self.destroys,
                "idempotentHint": self.reads or self.repeatable,
                "openWorldHint": False,
            },
        }


def tool(
    title: str,
    *,
    takes: Schemas | None = None,
    needs: Sequence[str] = (),
    gives: Schemas,
    always: Sequence[str] | None = None,
    reads: bool = False,
    destroys: bool = False,
    repeatable: bool = False,
) -> Callable[[Run], Tool]:
    """Make a tool of a function: its name is the tool's, its docstring what a model reads.

    ``takes`` are its arguments by name, of which those in ``needs`` have to be given; ``gives`` are the keys of the
    structured content, of which those in ``always``, all of them by default, are always there.
    """

    def made(run: Run) -> Tool:
        return Tool(
            name=run.__name__,
            title=title,
            about=" ".join(inspect.cleandoc(run.__doc__ or "").split()),
            run=run,
            input_schema=obj(takes or {}, needs, closed=True),
            output_schema=obj(gives, tuple(gives) if always is None else always),
            reads=reads,
            destroys=destroys,
            repeatable=repeatable,
        )

    return made


def obj(properties: Schemas, required: Sequence[str] = (), *, closed: bool = False) -> Schema:
    """Return the schema of an object; a closed one refuses other keys."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return schema | ({"additionalProperties": False} if closed else {})


def _of(kind: str, about: str = "", **limits: Any) -> Schema:
    return {"type": kind, **limits} | ({"description": about} if about else {})


#: Schemas by type: what is said of the value, then limits in words of JSON Schema.
text, number, whole, yes_no, anything = (
    partial(_of, kind) for kind in ("string", "number", "integer", "boolean", "object")
)


def items(of: Schema, about: str = "") -> Schema:
    return _of("array", about, items=of)


def texts(about: str = "", **limits: Any) -> Schema:
    return items(text(**limits), about)


def _object(schema: Schema, value: Any, name: str) -> dict[str, Any]:
    properties: dict[str, Schema] = schema["properties"]
    named = ", ".join(f"`{key}`" for key in properties)
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is an object with {named}")
    if not value.keys() <= properties.keys():
        wrong = next(key for key in value if key not in properties)
        raise InvalidInput(f"{name}: {no_such('argument', wrong, properties)}")
    needed = schema.get("required", ())
    given = {
        key: value[key]
        for key in properties
        if value.get(key) is not None and (key in needed or not _is_left_out(key, value[key]))
    }
    for key in needed:
        if key not in given:
            about = properties[key].get("description", "")
            raise InvalidInput(
                f"{name} needs `{key}`" + (f": {about[0].lower()}{about[1:].rstrip('.')}" if about else "")
            )
    return {key: _value(properties[key], each, f"`{key}`") for key, each in given.items()}


def _is_left_out(name: str, value: Any) -> bool:
    """Whether a model wrote an empty value for an argument that it does not need; see (3)."""
    if name in _WORDS:
        return False
    if isinstance(value, list):
        return all(isinstance(each, str) and _is_left_out(name, each) for each in value)
    return isinstance(value, str) and value.strip() in _NOTHING


def _value(schema: Schema, value: Any, name: str) -> Any:
    match schema.get("type"):
        case "string":
            return _text(schema, value, name)
        case "integer" | "number":
            return _number(schema, value, name)
        case None:
            return _text(schema, value, name) if isinstance(value, str) else _number(schema, value, name)
        case "boolean":
            if not isinstance(value, bool):
                raise InvalidInput(f"{name} is true or false")
            return value
        case "array":
            if not isinstance(value, list):
                raise InvalidInput(f"{name} is a list")
            if len(value) > MOST:
                raise InvalidInput(f"{name} has at most {MOST} items; send the rest in another call")
            return [_value(schema["items"], each, f"each of {name}") for each in value]
        case _ if "properties" in schema:
            return _object(schema, value, name)
        case _ if not isinstance(value, Mapping):
            raise InvalidInput(f"{name} is an object")
        case _:
            return dict(value)


def _text(schema: Schema, value: Any, name: str) -> str:
    options = schema.get("enum")
    if options and value not in options:
        guess = meant(value, options)
        raise InvalidInput(f"{name} is one of {', '.join(options)}" + (f"; {guess.rstrip()}" if guess else ""))
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is a text")
    if len(value) > LONGEST:
        raise InvalidInput(f"{name} has at most {LONGEST} characters; shorten it or split it")
    return well_formed(value, name)


def well_formed(value: str, name: str) -> str:
    """Return a text, which holds neither half of a character nor NUL."""
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidInput(f"{name} holds what is no character; send well-formed Unicode")
    return value


def _number(schema: Schema, value: Any, name: str) -> int | float:
    low, high = schema.get("minimum", -_EXACT), schema.get("maximum", _EXACT)
    is_whole = schema.get("type") == "integer"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Neither infinity nor what is no number lies between the two.
    if not (is_number and low <= value <= high) or (is_whole and value != int(value)):
        what = "a whole number" if is_whole else "a number"
        if "minimum" in schema:
            what += f" from {low} to {high}" if "maximum" in schema else f" of at least {low}"
        raise InvalidInput(f"{name} is {what}")
    return int(value) if is_whole else value
