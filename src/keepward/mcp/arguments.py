"""Arguments of a tool call: checked against the tool's schema, with one plain sentence for what is wrong.

Invariants
(1) What comes out fits the schema: known names, right types, numbers that are numbers, well-formed text.
(2) A sentence names the argument and what it takes; it never repeats what was sent, name or value.
(3) null counts as left out: models write it for an argument that they do not need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from keepward.errors import InvalidInput
from keepward.mcp.spec import Schema, Tool
from keepward.model.value import meant

#: Most characters of a text and items of a list that a call may carry.
LONGEST = 20_000
MOST = 1_000
#: Up to here every whole number is one that JSON's readers agree on.
_EXACT = 2**53


def checked(tool: Tool, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a call without those left out.

    Raises:
        InvalidInput: one does not fit; the sentence says what to do.
    """
    return _object(tool.input_schema, dict(given or {}), tool.name)


def _object(schema: Schema, value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is an object with {_named(schema)}")
    properties: dict[str, Schema] = schema["properties"]
    if not value.keys() <= properties.keys():
        takes = f"takes {_named(schema)}" if properties else "takes no arguments"
        guess = next((found for key in value if key not in properties and (found := meant(key, properties))), "")
        raise InvalidInput(f"{name} {takes}; {guess}leave out anything else")
    given = {key: value[key] for key in properties if value.get(key) is not None}
    for key in schema.get("required", ()):
        if key not in given:
            told = properties[key].get("description", "")
            raise InvalidInput(f"{name} needs `{key}`" + (f": {told[0].lower()}{told[1:].rstrip('.')}" if told else ""))
    return {key: _value(properties[key], each, f"`{key}`") for key, each in given.items()}


def _value(schema: Schema, value: Any, name: str) -> Any:
    match schema.get("type"):
        case None:
            return _text(schema, value, name) if isinstance(value, str) else _number(schema, value, name)
        case "string":
            return _text(schema, value, name)
        case "integer" | "number":
            return _number(schema, value, name)
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
        case _ if "properties" not in schema:
            if not isinstance(value, Mapping):
                raise InvalidInput(f"{name} is an object")
            return dict(value)
        case _:
            return _object(schema, value, name)


def _text(schema: Schema, value: Any, name: str) -> str:
    options = schema.get("enum")
    if options and value not in options:
        guess = meant(value, options)
        raise InvalidInput(f"{name} is one of {', '.join(options)}" + (f"; {guess.rstrip()}" if guess else ""))
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is a text")
    if len(value) > LONGEST:
        raise InvalidInput(f"{name} has at most {LONGEST} characters; shorten it or split it")
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidInput(f"{name} holds what is no character; send well-formed Unicode")
    return value


def _number(schema: Schema, value: Any, name: str) -> int | float:
    low, high = schema.get("minimum"), schema.get("maximum")
    what = "a whole number" if schema.get("type") == "integer" else "a number"
    if low is not None and high is not None:
        what += f" from {low} to {high}"
    elif low is not None:
        what += f" of at least {low}"
    usable = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if not usable or isinstance(value, bool) or abs(value) > _EXACT:
        raise InvalidInput(f"{name} is {what}")
    wrong_kind = schema.get("type") == "integer" and value != int(value)
    if wrong_kind or (low is not None and value < low) or (high is not None and value > high):
        raise InvalidInput(f"{name} is {what}")
    return int(value) if schema.get("type") == "integer" else value


def _named(schema: Schema) -> str:
    return ", ".join(f"`{key}`" for key in schema["properties"])
