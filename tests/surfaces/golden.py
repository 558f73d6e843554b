"""Golden files: what users see, frozen under `tests/golden`, and compared without naming a module of the package.

A file is written anew with ``KEEPWARD_GOLDEN=rewrite pytest tests/surfaces/test_golden.py``; its difference is then
what a reviewer reads. It changes only where a decision under `docs/adr` names the change.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, is_typeddict

import click
import msgspec

from support.openapi import described

FOLDER = Path(__file__).resolve().parents[1] / "golden"
_REWRITE = os.environ.get("KEEPWARD_GOLDEN") == "rewrite"
#: What imports frameworks and names nothing that a signature of the library names.
_SURFACES = frozenset({"__main__", "cli", "http", "integrations", "mcp"})
#: Of a JSON schema, what a golden file has besides types.
_LIMITS = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
]
#: An object may have keys besides this many fields of a type.
_MANY = 5
#: Types with a field ``outcome`` that is an object.
_WITH_OUTCOMES = frozenset({"DecisionResult", "Forgetting", "Forgotten", "Run"})
#: What differs between two runs on a screen, and the sign that takes its place.
_VARIABLE = {
    r"kw_\w+": "<secret>",
    r"\b[0-9a-f]{8}-[0-9a-f]{4}(?![\w-])": "<short id>",
    r"test_\w+-[0-9a-f]{8}\b": "<project>",
    r"\d+ kB": "<size>",
}
_IDENTIFIER = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|sha256:[0-9a-f]+")


def compare(name: str, found: Any) -> None:
    """Hold a text, a JSON value or, by the name of the file, a line of JSON an element against its golden file."""
    if isinstance(found, str):
        text = found
    elif name.endswith(".jsonl"):
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in found)
    else:
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    path = FOLDER / name
    if _REWRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    before = path.read_text("utf-8")
    if text != before:
        rows = [_rows(each, name) for each in (before, text)]
        changed = "\n".join(islice(unified_diff(*rows, "before", "now", lineterm="", n=2), 60))
        raise AssertionError(f"tests/golden/{name} is not what it was:\n{changed}")


def _rows(text: str, name: str) -> list[str]:
    """Return the lines of a golden file as a person compares them."""
    lines = text.split("\n")
    if not name.endswith(".jsonl"):
        return lines
    return [row for line in lines if line for row in json.dumps(json.loads(line), indent=1).split("\n")]


def structure(value: Any, *, typed: bool = True) -> Any:
    """Return the keys of a value, recursively, with the JSON type in place of each value.

    If ``typed``, an object with the fields of a type of ``types.json`` is named by it, ``{"is": "Record"}``; further
    keys follow.
    """
    if isinstance(value, dict):
        name, fields = _type_of(value) if typed else ("", ())
        more = {
            _IDENTIFIER.sub("<id>", key): structure(each, typed=typed)
            for key, each in sorted(value.items())
            if key not in fields
        }
        return {"is": name, **more} if name else more
    if isinstance(value, list):
        parts = [structure(each, typed=typed) for each in value]
        kinds = {json.dumps(part): part for part in parts}
        return [kinds[each] for each in sorted(kinds)]
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return names[type(value)]


def types(api: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the fields of each object of an OpenAPI document, each with its type."""
    return {
        name: {field: _schema(of) for field, of in each["properties"].items()}
        for name, each in api["components"]["schemas"].items()
        if "properties" in each
    }


def _type_of(value: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Return the type with the most fields that an object has, and these fields; an empty name if there is no one."""
    keys = value.keys()
    fitting = [
        (name, fields)
        for name, fields in _fields_of_types().items()
        if fields <= keys and (len(fields) >= _MANY or (fields == keys and len(fields) > 1))
        # Outcomes have the same fields; the key ``outcome`` names the one.
        if "outcome" not in fields or str(value["outcome"]).title() == name or name in _WITH_OUTCOMES
    ]
    most = max((len(fields) for _, fields in fitting), default=0)
    best = [each for each in fitting if len(each[1]) == most]
    return best[0] if len(best) == 1 else ("", frozenset())


@cache
def _fields_of_types() -> dict[str, frozenset[str]]:
    found = {name: frozenset(fields) for name, fields in types(described()).items()}
    return {name: fields for name, fields in sorted(found.items()) if not name.endswith("Request")}


def aliased(text: str) -> str:
    """Return a text with every id and hash replaced by a number, in the order in which they first appear."""
    seen: dict[str, str] = {}
    return _IDENTIFIER.sub(lambda match: seen.setdefault(match[0], f"<{len(seen) + 1}>"), text)


def plain_screens(text: str, folder: Path) -> str:
    """Return what commands printed, with the same sign in each run for each path, size and secret."""
    text = text.replace(str(folder), "<folder>").replace(sys.executable, "<python>")
    for pattern, sign in _VARIABLE.items():
        text = re.sub(pattern, sign, text)
    return aliased(text)


def operations(memory: type, names: Iterable[str], api: Mapping[str, Any]) -> str:
    """Return a line for each operation in Python, and for each one of an OpenAPI document."""
    python = [f"{name}{_member(memory, name)}" for name in names]
    http = [
        f"{each['operationId']}: {method.upper()} {path} {_takes(each, api)} -> {_answers(each)}"
        for path, methods in api["paths"].items()
        for method, each in methods.items()
    ]
    return "\n".join(["# Python", *python, "", "# HTTP", *http, ""])


def _takes(operation: Mapping[str, Any], api: Mapping[str, Any]) -> str:
    shared = api["components"]["parameters"]
    given = [shared[_referred(each)] if "$ref" in each else each for each in operation.get("parameters", ())]
    takes = [f"{each['in']} {_field(each['name'], each['schema'], each['required'])}" for each in given]
    body = operation.get("requestBody")
    return f"({', '.join([*takes, *([f'body {_contents(body)}'] if body else [])])})"


def _answers(operation: Mapping[str, Any]) -> str:
    return ", ".join(f"{status} {_contents(each)}".rstrip() for status, each in operation["responses"].items())


def _contents(body: Mapping[str, Any]) -> str:
    """Return the schema of JSON, or another media type; a problem has the same schema everywhere."""
    kinds = {kind: each for kind, each in body.get("content", {}).items() if kind != "application/problem+json"}
    return " or ".join(_schema(each["schema"]) if kind == "application/json" else kind for kind, each in kinds.items())


def _field(name: str, schema: Mapping[str, Any], required: bool) -> str:
    default = f" = {json.dumps(schema['default'])}" if "default" in schema else ""
    return f"{name}{'' if required or default else '?'}: {_schema(schema)}{default}"


def _referred(schema: Mapping[str, Any]) -> str:
    return str(schema["$ref"].rpartition("/")[2])


def _schema(schema: Mapping[str, Any]) -> str:
    """Return a JSON schema as a type: `string | null`, `[Memory] maxItems=64`, `{id: string, tags?: [string]}`."""
    limits = "".join(f" {name}={schema[name]}" for name in _LIMITS if name in schema)
    if "$ref" in schema:
        return _referred(schema)
    if "properties" in schema:
        needed = schema.get("required", ())
        fields = [_field(name, each, name in needed) for name, each in schema["properties"].items()]
        return f"{{{', '.join(fields)}}}{limits}"
    if union := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(map(_schema, union))
    if values := schema.get("enum"):
        return " | ".join(map(str, values))
    if "items" in schema:
        return f"[{_schema(schema['items'])}]{limits}"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"{{string: {_schema(values)}}}{limits}"
    return f"{schema.get('format') or schema.get('type', 'any')}{limits}"


def usage(command: click.Context) -> str:
    """Return what a command takes as a line: `approve ID... [--digest HEX] [--limit N = 50]`."""
    shared = [each.name for each in command.parent.command.params] if command.parent else []
    own = [each for each in command.command.params if each.name not in shared]
    return " ".join([str(command.info_name), *(_taken(each, command) for each in own)])


def _taken(param: click.Parameter, command: click.Context) -> str:
    record = param.get_help_record(command) if isinstance(param, click.Option) else None
    name = record[0] if record else (param.metavar or param.human_readable_name).strip("[].")
    default = f" = {param.default}" if param.default and isinstance(param.default, str | int | float) else ""
    repeated = "..." if param.nargs == -1 or getattr(param, "multiple", False) else ""
    return f"{name}{repeated}" if param.required else f"[{name}{default}]{repeated}"


def library(package: Any, operations: Iterable[str]) -> dict[str, Any]:
    """Return every public name of a package with its signatures, fields, members and codes, free of module paths.

    What a signature names and the package does not export, such as the result of a verb, is described as well. The
    operations of the handles have a golden file of their own.
    """
    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    modules = [importlib.import_module(each) for each in names if each.split(".")[1] not in _SURFACES]
    classes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    known = {each.__name__: each for each in classes if _is_named(each, package.__name__)}
    found = {name: _described(getattr(package, name)) for name in package.__all__ if name != "__version__"}
    methods = [each["methods"] for each in found.values() if "methods" in each]
    handles = [each for each in methods if set(operations) <= set(each)]
    calls = {name: each.pop(name) for each in handles for name in operations}
    named: dict[str, Any] = {}
    while fresh := (_names({**found, **named, **calls}) & known.keys()) - found.keys() - named.keys():
        named |= {name: _described(known[name]) for name in fresh}
    return {"exported": found, "named": dict(sorted(named.items()))}


def _is_named(value: type, package: str) -> bool:
    """Whether a class is a result, a table of arguments, a protocol or a choice that signatures name."""
    if str(value.__module__).partition(".")[0] != package or hasattr(value, "model_fields"):
        return False
    told = hasattr(value, "to_dict") or is_typeddict(value) or getattr(value, "_is_protocol", False)
    return told or issubclass(value, enum.Enum) or value.__name__.startswith("Async")


def _names(described: Any) -> set[str]:
    return set(re.findall(r"\b[A-Z]\w+", json.dumps(described)))


def _described(value: Any) -> Any:
    if not isinstance(value, type):
        return _plain(str(value))
    if issubclass(value, enum.Enum):
        return {each.name: each.value for each in value}
    if issubclass(value, Exception):
        bases = [base.__name__ for base in value.__mro__[1:] if base.__module__.startswith("keepward")]
        return {"code": getattr(value, "code", None), "bases": bases}
    if is_typeddict(value):
        return {"keys": {name: _plain(each) for name, each in value.__annotations__.items()}}
    ours = {name for each in value.__mro__ if each.__module__.startswith("keepward") for name in vars(each)}
    members = {name: _member(value, name) for name in sorted(ours) if not name.startswith("_")}
    if not _has_fields(value):
        return {"methods": members}
    return {"fields": _fields(value), "methods": {name: text for name, text in members.items() if text}}


def _member(owner: type, name: str) -> str:
    member = inspect.getattr_static(owner, name)
    notes = next((each for base in owner.__mro__ if (each := vars(base).get("__annotations__", {}).get(name))), "")
    if str(notes).startswith("ClassVar["):
        # A value that all instances share reads as a property does.
        return f"property -> {_plain(notes[9:-1])}"
    if isinstance(member, property):
        return f"property -> {_plain(inspect.signature(member.fget).return_annotation)}"
    kind = f"{type(member).__name__} " if isinstance(member, classmethod | staticmethod) else ""
    function = getattr(member, "__func__", member)
    if not callable(function):
        # What every instance has alike is read as a property is.
        constant = re.fullmatch(r"ClassVar\[(.*)\]", str(_annotation(owner, name)))
        return f"property -> {_plain(constant[1])}" if constant and _has_fields(owner) else ""
    waits = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{kind}{waits}{_plain(str(inspect.signature(function)))}"


def _annotation(owner: type, name: str) -> Any:
    return next(
        (each.__annotations__[name] for each in owner.__mro__ if name in vars(each).get("__annotations__", {})), ""
    )


def _fields(owner: Any) -> dict[str, str]:
    if dataclasses.is_dataclass(owner):
        found, missing = dataclasses.fields(owner), dataclasses.MISSING
    else:
        found, missing = msgspec.structs.fields(owner), msgspec.NODEFAULT

    def default(field: Any) -> str:
        if field.default is not missing:
            return f" = {field.default!r}"
        return "" if field.default_factory is missing else f" = {field.default_factory()!r}"

    return {each.name: _plain(f"{_annotation_of(owner, each.name)}{default(each)}") for each in found}


def _annotation_of(owner: type, name: str) -> Any:
    return next(found for each in owner.__mro__ if (found := vars(each).get("__annotations__", {}).get(name)))


def _has_fields(value: type) -> bool:
    return dataclasses.is_dataclass(value) or issubclass(value, msgspec.Struct)


def _plain(text: Any) -> str:
    """Return an annotation or signature without module paths, quotes of forward references and addresses."""
    shown = text.__name__ if isinstance(text, type) else getattr(text, "__forward_arg__", str(text))
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", shown).replace("'", "")
