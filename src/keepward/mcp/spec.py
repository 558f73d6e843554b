"""Tools as data: what a tool is called, takes, gives and does.

Invariants
(1) A tool is a function of a handle and of checked arguments; it knows no transport and imports no SDK.
(2) What a tool cannot do is raised as a `KeepwardError`; what became of a write is data and never an error.
(3) Schemas refuse arguments that they do not name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.proposal import Waiting

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a tool gives back."""

    #: The structured content, as the tool's output schema has it.
    data: dict[str, Any]
    #: The same for a reader.
    text: str
    #: Sentences that go with it, each a block of its own.
    notes: tuple[str, ...] = ()
    #: The proposal that waits for a person, where one does.
    held: Waiting | None = None


Run = Callable[["Memory", Mapping[str, Any]], Given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    title: str
    #: What a model reads about it.
    about: str
    run: Run
    #: Arguments by name, as JSON schemas; those in ``needs`` have to be given.
    takes: Mapping[str, Schema] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    #: Keys of the structured content, and those that are always there.
    gives: Mapping[str, Schema] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    #: Whether it changes nothing that anybody remembers.
    reads: bool = False
    #: Whether it takes something out of memory or overwrites it.
    destroys: bool = False
    #: Whether a second call with the same arguments changes nothing more.
    repeatable: bool = False

    @property
    def input_schema(self) -> Schema:
        """The JSON schema of the arguments."""
        return obj(self.takes, self.needs, closed=True)

    @property
    def output_schema(self) -> Schema:
        """The JSON schema of the structured content."""
        return obj(self.gives, self.always)

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


def obj(properties: Mapping[str, Schema], required: tuple[str, ...] = (), *, closed: bool = False) -> Schema:
    """Return the schema of an object; a closed one refuses other keys."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    if closed:
        schema["additionalProperties"] = False
    return schema


def text(about: str = "", *, options: tuple[str, ...] = ()) -> Schema:
    """Return the schema of a text, of one of some words where options are given."""
    schema: Schema = {"type": "string"}
    if options:
        schema["enum"] = list(options)
    return _about(schema, about)


def texts(about: str = "", *, options: tuple[str, ...] = ()) -> Schema:
    """Return the schema of a list of texts."""
    return _about({"type": "array", "items": text(options=options)}, about)


def number(about: str = "", *, low: float | None = None, high: float | None = None) -> Schema:
    """Return the schema of a number."""
    return _about(_bounds({"type": "number"}, low, high), about)


def whole(about: str = "", *, low: int | None = None, high: int | None = None) -> Schema:
    """Return the schema of a whole number."""
    return _about(_bounds({"type": "integer"}, low, high), about)


def yes_no(about: str = "") -> Schema:
    """Return the schema of a yes or no."""
    return _about({"type": "boolean"}, about)


def anything(about: str = "") -> Schema:
    """Return the schema of an object with any keys."""
    return _about({"type": "object"}, about)


def span(about: str = "") -> Schema:
    """Return the schema of a span of time: text such as ``30d``, or seconds."""
    return _about({"anyOf": [{"type": "string"}, {"type": "number"}]}, about)


def items(of: Schema, about: str = "") -> Schema:
    """Return the schema of a list."""
    return _about({"type": "array", "items": of}, about)


def _bounds(schema: Schema, low: float | None, high: float | None) -> Schema:
    bounds = {"minimum": low, "maximum": high}
    return schema | {name: value for name, value in bounds.items() if value is not None}


def _about(schema: Schema, about: str) -> Schema:
    return schema | ({"description": about} if about else {})
