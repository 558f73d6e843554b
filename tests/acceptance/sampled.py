"""Calls made up from the description of the API: for each operation what fits it, with names taken from a pool.

A value is drawn so that the call gets past the reading of its parts, as far as that can be told from the description;
what it means is left to the server. The same seed gives the same calls.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call, without a credential."""

    operation: str
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.query, doseq=True)}" if self.query else self.path


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation as the description has it."""

    name: str
    method: str
    path: str
    told: Mapping[str, Any]
    #: Whether it is answered without a credential.
    public: bool


def operations(api: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield every operation, in the order in which the description has them."""
    for path, methods in api["paths"].items():
        for method, told in methods.items():
            public = told.get("security", api["security"]) == []
            yield Operation(name=told["operationId"], method=method.upper(), path=path, told=told, public=public)


class Sampler:
    """Makes calls up. ``pool`` holds names and texts by what they stand for; ``any`` is for whatever else."""

    def __init__(self, api: Mapping[str, Any], pool: Mapping[str, Sequence[str]], seed: int) -> None:
        self._api, self._pool, self._dice = api, pool, random.Random(seed)

    def call(self, operation: Operation, *, optional: float = 0.5) -> Call:
        """Return a call of an operation; each part that may be left out is given with this probability."""
        path, query, headers = operation.path, {}, {}
        for each in operation.told.get("parameters", ()):
            if "$ref" in each:
                # The names of a user, an agent and a project: a handle of its own.
                continue
            name, place = each["name"], each["in"]
            if place != "path" and not each.get("required") and self._dice.random() > optional:
                continue
            value = self._value(each["schema"], f"{operation.name}.{name}", optional)
            if place == "path":
                path = path.replace("{" + name + "}", quote(str(value), safe=""))
            elif place == "query":
                query[name] = str(value).lower() if isinstance(value, bool) else value
            else:
                headers[name] = str(value)
        body = None
        for kind, content in operation.told.get("requestBody", {}).get("content", {}).items():
            value = self._value(content["schema"], "body", optional)
            body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
            headers["Content-Type"] = kind
            break
        return Call(
            operation=operation.name, method=operation.method, path=path, query=query, headers=headers, body=body
        )

    def one_of(self, name: str) -> str:
        """Return something of the pool."""
        return self._dice.choice(self._own(name) or list(self._pool["any"]))

    def _own(self, name: str) -> list[str]:
        """Return what stands for a name: of one operation if there is something, else of all."""
        return list(self._pool.get(name) or self._pool.get(name.rpartition(".")[2], ()))

    def _value(self, schema: Mapping[str, Any], name: str, optional: float) -> Any:
        if "$ref" in schema:
            return self._value(self._api["components"]["schemas"][schema["$ref"].rpartition("/")[2]], name, optional)
        for union in ("anyOf", "oneOf"):
            if union in schema and "properties" not in schema:
                options = [each for each in schema[union] if each.get("type") != "null"]
                return self._value(self._dice.choice(options), name, optional)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._dice.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                return self._object(schema, optional)
            case "array":
                least = schema.get("minItems", 0)
                count = max(least, self._dice.randint(0, 3))
                return [self._value(schema.get("items", {}), name, optional) for _ in range(count)]
            case "integer":
                low, high = int(schema.get("minimum", 0)), int(min(schema.get("maximum", 100), 100))
                return self._dice.randint(low, max(low, high))
            case "number":
                return round(self._dice.uniform(schema.get("minimum", 0), min(schema.get("maximum", 1), 1)), 3)
            case "boolean":
                return self._dice.random() < 0.5
            case "string":
                return self._text(schema, name)
        return self.one_of(name)

    def _object(self, schema: Mapping[str, Any], optional: float) -> dict[str, Any]:
        known = schema.get("properties", {})
        needed = set(schema.get("required", ()))
        for union in ("anyOf", "oneOf"):
            if union in schema:
                needed |= set(self._dice.choice(schema[union])["required"])
        ways = {each for one in schema.get("oneOf", ()) for each in one["required"]}
        chosen = [
            name
            for name in known
            if name in needed or (name not in ways and self._dice.random() < optional)
        ]  # fmt: skip
        made = {name: self._value(known[name], name, optional) for name in chosen}
        if not known:
            made = {self.one_of("any"): self.one_of("any")}
        return made

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        pattern = schema.get("pattern", "")
        least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
        for known in (self._own(name), self._pool["any"]):
            fits = [each for each in known if re.search(pattern, each) and least <= len(each) <= most]
            if fits:
                return self._dice.choice(fits)
        return ""
