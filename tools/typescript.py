"""Write what the TypeScript client has from the code: schemas of arguments and answers, and a method of each operation.

    python tools/typescript.py FOLDER     write schemas.json and operations.ts into a folder

`make typescript` does it, and openapi-typescript then makes `schema.ts` of the schemas. Both results are committed; a
test compares them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from generate_reference import described

from keepward.core.principals import SOURCES, Trust
from keepward.http.inputs import arguments_of, schema_of_struct
from keepward.http.routes import CALLED_BY_NAME, LIBRARY
from keepward.http.schemas import SCHEMAS
from keepward.operations import REQUIRED, Operation

_BEGIN = "#/components/schemas/"
#: Operations that read, and return each thing once.
_ONCE = frozenset({"notices"})
#: Sentences of Python, as TypeScript has them.
_WORDS = {r"``": "`", r"\bNone\b": "null", r"\bTrue\b": "true", r"\bFalse\b": "false"}


def camel(name: str) -> str:
    """Return a name of Python as TypeScript writes it: `list_memories` is `listMemories`."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def arguments_name(operation: Operation) -> str:
    """Return the name of the type of all arguments of an operation."""
    return operation.name.title().replace("_", "") + "Arguments"


def schemas() -> dict[str, Any]:
    """Return an OpenAPI document of the types alone: those of the server, and the arguments of each operation."""
    found = described()["components"]["schemas"]
    arguments = {}
    for name in CALLED_BY_NAME:
        schema = json.loads(json.dumps(schema_of_struct(arguments_of(LIBRARY[name]))))
        schema["description"] = f"Arguments of `{camel(name)}`."
        if "where" in schema["properties"]:
            # The client turns an object into text.
            text = schema["properties"]["where"]
            schema["properties"]["where"] = {
                "description": text.pop("description"),
                "anyOf": [text, {"type": "object", "additionalProperties": True}],
            }
        arguments[arguments_name(LIBRARY[name])] = schema
    known = {**SCHEMAS, **found}
    # What this process has described besides depends on what ran in it.
    named = list(arguments) + sorted(references(described()["paths"]) | references(arguments))
    every: dict[str, Any] = {}
    while named:
        name = named.pop()
        if name not in every:
            every[name] = arguments.get(name) or known[name]
            named += references(every[name])
    return {
        "openapi": "3.1.0",
        "info": {"title": "Keepward", "version": "1"},
        "paths": {},
        "components": {"schemas": dict(sorted(every.items()))},
    }


def references(value: Any) -> set[str]:
    """Return the names of the schemas that a value refers to."""
    if isinstance(value, list):
        return set[str]().union(*map(references, value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"].removeprefix(_BEGIN)} if str(value.get("$ref", "")).startswith(_BEGIN) else set[str]()
    return own.union(*map(references, value.values()))


def schema_text() -> str:
    """Return that document as JSON."""
    return json.dumps(schemas(), indent=1, sort_keys=True)


def answers() -> dict[str, dict[str, Any]]:
    """Return the schema of the answer of each operation."""
    found = {}
    for path in described()["paths"].values():
        for each in path.values():
            name = each["operationId"]
            if name in LIBRARY and (content := each["responses"][str(LIBRARY[name].status)].get("content")):
                found[name] = next(iter(content.values()))["schema"]
    return found


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema as a type."""
    if "$ref" in schema:
        return f'Schemas["{schema["$ref"].removeprefix(_BEGIN)}"]'
    if "anyOf" in schema:
        return " | ".join(map(type_of, schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return f"Array<{type_of(schema['items'])}>"
        case "integer":
            return "number"
        case "object" | None:
            return "{ [name: string]: unknown }"
        case kind:
            return str(kind)


def facts(operation: Operation) -> str:
    """Return what a client has to know of an operation: whether it may be repeated, and where its result is."""
    sent = "keyed" if operation.is_one_write else "once" if operation.changes or operation.name in _ONCE else "repeats"
    return f'{{ sent: "{sent}"{f", answer: {json.dumps(key)}" if (key := listed(operation)) else ""} }}'


def listed(operation: Operation) -> str | None:
    """Return the key of the list that an answer consists of; None if the answer is the result."""
    keys = operation.answer.split()
    return keys[0] if len(keys) == 1 and get_origin(operation.result) is list else None


def method(operation: Operation, answer: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the method of an operation: arguments by position as in Python, and the rest as an object."""
    of = f'Schemas["{arguments_name(operation)}"]'
    known = schema_of_struct(arguments_of(operation))["properties"]
    given = operation.signature.parameters.values()
    placed = [each for each in given if each.kind is Parameter.POSITIONAL_OR_KEYWORD and each.name in known]
    rest = [name for name in known if name not in {each.name for each in placed}]
    needed = {each.name for each in operation.arguments.values() if each.default is REQUIRED}
    takes = [f'{camel(each.name)}{"" if each.name in needed else "?"}: {of}["{each.name}"]' for each in placed]
    sent = [f"{each.name}: {camel(each.name)}" if "_" in each.name else each.name for each in placed]
    if rest:
        names = " | ".join(f'"{each.name}"' for each in placed)
        kind = f"Omit<{of}, {names}>" if placed else of
        takes.append(f"options: {kind}" if needed.intersection(rest) else f"options: {kind} = {{}}")
        sent.append("...options")
    result = type_of(answer)
    if key := listed(operation):
        result = f'{result}["{key}"]'
    elif NoneType in get_args(operation.result):
        result += " | null"
    doc = operation.doc.split("\n\n")[0].replace("\n", " ")
    for pattern, word in _WORDS.items():
        doc = re.sub(pattern, word, doc)
    doc = re.sub(r"`(\w+)`", lambda found: f"`{camel(found[1])}`" if found[1] in LIBRARY else found[0], doc)
    yield f"  /** {doc} */"
    yield f"  {camel(operation.name)}({', '.join(takes)}): Promise<{result}> {{"
    yield (
        f'    return this.call("{operation.name}", {{ {", ".join(sent)} }});'
        if sent
        else (f'    return this.call("{operation.name}", {{}});')
    )
    yield "  }"


def operations() -> str:
    """Return the module with a method of each operation, and the hash of the schemas that `schema.ts` was made of."""
    shown = answers()
    trusted = [name for name, source in SOURCES.items() if source.trust >= Trust.AGENT]
    lines = [
        "// Made by `make typescript` from src/keepward/api.py: do not edit.",
        f"// schemas: {sha256(schema_text().encode()).hexdigest()}",
        'import type { components } from "./schema.js";',
        "",
        "/** The types of the HTTP API, by name. */",
        'export type Schemas = components["schemas"];',
        "",
        "/** How often a call may be sent, and the key of its answer whose value is the result. */",
        "export interface CallFacts {",
        "  /** `keyed`: again, under its idempotency key; `repeats`: again; `once`: again only after a 429. */",
        '  sent: "keyed" | "repeats" | "once";',
        "  answer?: string;",
        "}",
        "",
        "/** Every operation that `POST /memory/call/{operation}` takes. */",
        "export const CALLS = {",
        *(f"  {name}: {facts(LIBRARY[name])}," for name in CALLED_BY_NAME),
        "} satisfies Record<string, CallFacts>;",
        "",
        "export type CallName = keyof typeof CALLS;",
        "",
        "/** The sources of what people and agents wrote, and not pages, tools and documents. */",
        f"export const PEOPLE_AND_AGENTS = {json.dumps(trusted)} as const;",
        "",
        "/** The operations of a memory, each with the name, arguments and result that it has in Python. */",
        "export abstract class Operations {",
        "  /** Send an operation with its arguments by name, and return its result. */",
        "  protected abstract call<T>(operation: CallName, given: object): Promise<T>;",
    ]
    for name in CALLED_BY_NAME:
        lines += ["", *method(LIBRARY[name], shown[name])]
    return "\n".join([*lines, "}"]) + "\n"


def main() -> None:
    """Write both files."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schemas.json").write_text(schema_text(), "utf-8")
    (folder / "operations.ts").write_text(operations(), "utf-8")


if __name__ == "__main__":
    main()
