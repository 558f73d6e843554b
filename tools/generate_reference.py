"""Build what docs/reference has from the code: the end of each generated page, and openapi.json.

    python tools/generate_reference.py FOLDER     write the complete pages and openapi.json into a folder

MkDocs runs this file as a hook, so the site has them and no commit does. The sentences come from the help of the
command line, from the `#:` comments on the fields of settings and policy, and from the OpenAPI document. The keys of
`--json` come from what commands print in the golden files.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec

from keepward.cli.command import COMMON_OPTIONS, EXIT_CODES
from keepward.cli.main import PROGRAM, PROGRAM_DESCRIPTION, command_tree
from keepward.core.policy import EthicsRule, Policy
from keepward.settings import PATH_VARIABLES, SETTING_VARIABLES, SWITCH_VARIABLES, ServerSettings, Settings

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "cli.jsonl"
#: The fields of each type of an answer, each with its type.
TYPES = json.loads((ROOT / "tests" / "golden" / "types.json").read_text("utf-8"))
#: What the object of `--json` holds, of commands that the golden session does not call; a test compares it.
JSON_KEYS = {
    "add": "facts[] notes[] session turns[]",
    "branch": "",
    "drill": "breached checks[] fired inconclusive ok path",
    "hook": "",
    "open": "console opened",
    "serve": "console live mcp notes[] open_reads path token_file url waiting",
    "shadow": "added calls errors[] failed median_milliseconds median_tokens memories[] most_tokens",
    "store": "blobs place store_id tenants[]",
}
#: What one element holds of lists that are empty in the golden session.
ELEMENTS = [
    ("`checks[]` of drill", "`defence name status title`"),
    ("`faults[]` of verify, adopt", "`check detail row`"),
    ("`token` of connect", "`id name scope state`"),
]


def _answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what commands of the golden session print with `--json`, each by its name; errors are left out."""
    for line in GOLDEN.read_text("utf-8").splitlines():
        called, ran = json.loads(line)
        if "error" not in ran["json"]:
            yield called.split(" ")[1], _spelt_out(ran["json"])


def _spelt_out(value: Any) -> Any:
    """Return the keys of an object that the golden file names by its type, and further ones."""
    if isinstance(value, list):
        return [_spelt_out(each) for each in value]
    if not isinstance(value, dict):
        return value
    of_type = {name: [] if kind.startswith("[") else {} for name, kind in TYPES.get(value.get("is", ""), {}).items()}
    return of_type | {name: _spelt_out(each) for name, each in value.items() if name != "is"}


def _keys(value: dict[str, Any]) -> str:
    return " ".join(f"{name}[]" if isinstance(each, list) else name for name, each in value.items())


def _json_line(name: str) -> Iterator[str]:
    """Yield the line on what a command prints with `--json`, where it prints an object."""
    found = list(dict.fromkeys(_keys(each) for command, each in _answers() if command == name))
    if not found and name not in JSON_KEYS:
        raise SystemExit(
            f"what does `{name} --json` print? Run it in a session of tests/surfaces/golden_sessions.py, "
            "or name its keys in JSON_KEYS of tools/generate_reference.py"
        )
    found = found or [JSON_KEYS[name]]
    if found[0]:
        yield f"`--json`: `{found[0]}`{' and more' if len(found) > 1 else ''}"


def _elements() -> list[tuple[str, str]]:
    """Return what the elements of lists in these objects hold, and the commands that print such lists."""
    found: dict[tuple[str, str], list[str]] = {}
    memory = next(answer.keys() for command, answer in _answers() if command == "get")
    for command, answer in _answers():
        for name, value in answer.items():
            listed = value if isinstance(value, list) else [value] if name == "plan" else []
            keys = dict.fromkeys(key for each in listed if isinstance(each, dict) for key in each)
            if keys and command != "demo":
                word = f"`{name}[]`" if isinstance(value, list) else f"`{name}`"
                held = "a memory, as `get` shows it" if keys.keys() == memory else f"`{' '.join(keys)}`"
                found.setdefault((word, held), []).append(command)
    return sorted(
        [*ELEMENTS, *((f"{name} of {', '.join(dict.fromkeys(of))}", held) for (name, held), of in found.items())]
    )


def cli_part() -> str:
    """Return the options, exit codes and commands of the command line."""
    root: Any = command_tree()
    context = click.Context(root, info_name=PROGRAM)
    lines = [*_folded(PROGRAM_DESCRIPTION), "", "## Options of every command", ""]
    lines += ["They may stand before the command or after it; the nearer one wins.", ""]
    lines += _table(("option", "meaning"), (_row(each, context) for each in root.params if each.name in COMMON_OPTIONS))
    lines += ["", "## Exit codes", ""]
    lines += _table(("code", "meaning"), ((str(code), meaning) for code, meaning in EXIT_CODES.items()))
    lines += ["", "## `--json`", ""]
    lines += ["One object on stdout and nothing else; talk and progress go to stderr. Keys are added, never renamed."]
    lines += ['An error is `{"error": {"code", "message"}}`, with the message on stderr too.', ""]
    lines += _table(("element of", "holds"), _elements())
    for section, commands in root.sections.items():
        lines += ["", f"## {section}"]
        for name in commands:
            lines += ["", *_command(name, root.get_command(context, name), context)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, parent: Any) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    own = [each for each in command.params if each.name not in COMMON_OPTIONS]
    yield f"### {name}"
    yield ""
    usage = " ".join(each.metavar or each.name for each in own if each.param_type_name == "argument")
    yield f"`{PROGRAM} {name}{' ' + usage if usage else ''}{' [OPTIONS]' if len(own) > usage.count(' ') + 1 else ''}`"
    yield ""
    yield from _folded(inspect.cleandoc(command.help))
    rows = [_row(each, context) for each in own]
    if rows:
        yield ""
        yield from _table(("argument or option", "meaning"), rows)
    yield ""
    yield from _json_line(name)


def _row(param: Any, context: Any) -> tuple[str, str]:
    names, told = param.get_help_record(context) or ("", "")
    if param.param_type_name == "argument":
        names = param.metavar or param.name
    return f"`{names}`", " ".join(told.split())


def settings_part() -> str:
    """Return the tables of settings."""
    said = comments(inspect.getsource(Settings))
    lines = ["## At the top of the file", ""]
    defaults = {each.name: each.default for each in msgspec.structs.fields(Settings)}
    rows = [
        (f"`{name}`", f"`{variable}`", f"`{defaults[name]}`" if defaults[name] else "none", said[name])
        for name, variable in SETTING_VARIABLES.items()
    ]
    lines += _table(("name", "variable", "default", "meaning"), rows)
    lines += ["", "## Variables alone", ""]
    lines += _table(("variable", "meaning"), ((f"`{name}`", text) for name, text in PATH_VARIABLES.items()))
    lines += ["", "## Under `[policy]`", ""]
    lines += ['Durations are text such as `"24h"` or `"30d"`, or a number of seconds. A table changes only the']
    lines += ["entries it names. Every policy has a version, the hash of its content, which each receipt names.", ""]
    about, plain = comments(inspect.getsource(Policy)), Policy().as_dict()
    lines += _table(("name", "default", "meaning"), (_setting(name, value, about) for name, value in plain.items()))
    lines += ["", "Three switches can be turned by the environment as well:"]
    lines += [f"{', '.join(f'`{variable}`' for variable in SWITCH_VARIABLES.values())}.", ""]
    lines += ["Each rule of `[[policy.memory_ethics]]` takes:", ""]
    rules = {
        "name": "Its name, as it stands in receipts.",
        **comments(inspect.getsource(EthicsRule)),
        "action": "`quarantine`, the default, or `refuse`.",
    }
    lines += _table(("name", "meaning"), ((f"`{name}`", rules[name]) for name in EthicsRule.__struct_fields__))
    lines += ["", "## Under `[server]`", "", "What `keepward serve` takes where its options name nothing else.", ""]
    about = comments(inspect.getsource(ServerSettings))
    plain = {each.name: each.default for each in msgspec.structs.fields(ServerSettings)}
    lines += _table(
        ("name", "default", "meaning"), (_server_setting(name, value, about) for name, value in plain.items())
    )
    return "\n".join(lines) + "\n"


def _setting(name: str, value: Any, about: dict[str, str]) -> tuple[str, str, str]:
    if isinstance(value, dict):
        shown = ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    elif isinstance(value, list):
        shown = ", ".join(map(str, value)) or "none"
    else:
        shown = _plain(value)
    return f"`{name}`", shown, about[name]


def _server_setting(name: str, value: Any, about: dict[str, str]) -> tuple[str, str, str]:
    shown = "none" if value in (None, ()) else _plain(value)
    return f"`{name}`", shown, about[name]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # Shares are at most 1 and no duration is so short: a larger number with a point is one of seconds.
    if isinstance(value, float) and value > 1:
        size, unit = next((size, unit) for size, unit in ((86_400, "d"), (3_600, "h"), (1, "s")) if value % size == 0)
        return f"{value / size:.0f}{unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def comments(source: str) -> dict[str, str]:
    """Return the `#:` comment that stands before each field of a class; a field without one shares the last."""
    found: dict[str, str] = {}
    said: list[str] = []
    fresh = False
    for line in source.splitlines():
        text = line.strip()
        if text.startswith("#:"):
            said = [*(said if fresh else []), text.removeprefix("#:").strip()]
            fresh = True
        elif match := re.match(r"    (\w+): ", line):
            if said:
                found[match[1]] = " ".join(said)
            fresh = False
    return found


def _folded(text: str) -> list[str]:
    return [line.rstrip() for line in inspect.cleandoc(text).splitlines()]


def _table(heads: tuple[str, ...], rows: Any) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


@cache
def described() -> dict[str, Any]:
    """Return the OpenAPI document of the server."""

    from keepward import Actor, Memory
    from keepward.http import create_app

    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"embedder": None, "config_dir": Path(folder)}
        with Memory.open(":memory:", actor=Actor.operator(), **options) as memory:
            return dict(create_app(memory).openapi())


RIGHTS_SAID = {
    "read": "any token",
    "propose": "a token that may propose",
    "approve": "a reviewer or the owner",
    "erase": "the owner, with the right to erase",
    "owner": "the owner",
}
SECTIONS_HTTP = {
    "server": "The server itself",
    "read": "Reading",
    "write": "Writing",
    "review": "Review",
    "journal": "The journal and rollback",
    "browse": "Browsing",
    "inquiry": "Inquiry and containment",
    "erase": "Erasing and accepting a store",
    "blobs": "Blobs",
    "carry": "Export and import",
    "events": "Events",
    "upkeep": "Learning and upkeep",
    "tokens": "Tokens",
    "other": "More",
}
#: Answers that any call of a kind may give, told once above the tables.
USUAL = {"400", "401", "403", "404", "409", "413", "415", "421", "422", "429", "500", "503"}


def http_part() -> str:
    """Return the HTTP routes."""
    api = described()
    lines = ["[openapi.json](openapi.json) describes every field."]
    for tag, title in SECTIONS_HTTP.items():
        found = [
            _operation(api, path, method, each)
            for path, operations in api["paths"].items()
            for method, each in operations.items()
            if each["tags"][0] == tag
        ]
        lines += ["", f"## {title}"] if found else []
        for each in found:
            lines += ["", *each]
    return "\n".join(lines) + "\n"


def _operation(api: dict[str, Any], path: str, method: str, each: dict[str, Any]) -> Iterator[str]:
    from keepward.http.routes import RIGHTS

    yield f"### {method.upper()} {path}"
    yield ""
    yield from each["description"].strip().splitlines()
    yield ""
    rows = []
    if each["tags"][0] != "server":
        rows.append(("who", RIGHTS_SAID[RIGHTS[each["operationId"]]]))
    for place, word in (("query", "query"), ("header", "headers")):
        named = [
            f"`{each['name']}`{'' if each.get('required') else '*'}"
            for each in each.get("parameters", ())
            # A reference is to the names of a handle, which every address takes.
            if each.get("in") == place
        ]
        if named:
            rows.append((word, " ".join(named)))
    if "requestBody" in each:
        for kind, content in each["requestBody"]["content"].items():
            rows.append(("body", _fields_of(api, content["schema"]) or f"`{kind}`"))
    for status, answer in each["responses"].items():
        if status in USUAL and status != "422":
            continue
        for kind, content in answer.get("content", {}).items():
            if "problem" in kind:
                if status not in USUAL:
                    rows.append((status, "a problem"))
            else:
                shape = _fields_of(api, content.get("schema", {}))
                rows.append((status, shape if kind == "application/json" and shape else f"`{kind}`"))
        if not answer.get("content"):
            rows.append((status, answer["description"].rstrip(".").lower()))
    yield from _table(("", ""), rows)


def _fields_of(api: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the fields of an object: `name`, with a star where it may be left out."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if options:
        return " or ".join(filter(None, (_fields_of(api, each) for each in options)))
    if "$ref" in schema:
        return _fields_of(api, api["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if schema.get("title") in ("Memory", "Written"):
        return f"a {schema['title']}".replace("a Memory", "a memory").replace("a Written", "an outcome")
    needed = schema.get("required", ())
    # An answer always has all of its fields.
    given = schema.get("additionalProperties") is not False
    return " ".join(f"`{name}`{'' if given or name in needed else '*'}" for name in schema.get("properties", {}))


def mcp_part() -> str:
    """Return the tools, resources and prompts of every profile."""
    from keepward.mcp.profiles import CORE, PROFILE_NAMES, PROMPTS, TEMPLATES, tool_set

    profiles = [tool_set(name) for name in PROFILE_NAMES]
    rows = [
        (
            f"`{each.name}`",
            each.about,
            ", ".join(f"`{tool.name}`" for tool in each.tools),
        )
        for each in profiles
    ]
    lines = _table(("profile", "for", "tools"), rows)
    lines += ["", "## Tools"]
    tools = {tool.name: tool for each in profiles for tool in each.tools}
    for tool in tools.values():
        hints = {"reads": tool.reads, "destructive": tool.destroys}
        found = [name for name, each in hints.items() if each] or ["adds"]
        lines += ["", f"### {tool.name}", "", f"{tool.about.rstrip('.')}. ({', '.join(found)})", ""]
        takes = tool.input_schema
        if takes["properties"]:
            needs = takes.get("required", ())
            rows = [
                (f"`{name}`", _schema(each), _needed(name in needs, each)) for name, each in takes["properties"].items()
            ]
            lines += _table(("argument", "type", "meaning"), rows)
    lines += ["", "## Resources", ""]
    lines += _table(
        ("address", "type", "holds"), ((f"`{e.uri}`", e.mime_type, e.description) for e in (CORE, *TEMPLATES))
    )
    lines += ["", "## Prompts", ""]
    rows = [
        (
            f"`{each.name}`",
            ", ".join(
                f"`{name}`{'' if name in each.input_schema.get('required', ()) else '?'}"
                for name in each.input_schema["properties"]
            )
            or "none",
            each.about,
        )
        for each in PROMPTS
    ]
    lines += _table(("prompt", "arguments", "does"), rows)
    return "\n".join(lines) + "\n"


def _schema(schema: dict[str, Any]) -> str:
    if schema.get("type") == "array":
        inner = schema["items"]
        named = ", ".join(inner.get("properties", {}))
        return f"list of objects with {named}" if named else f"list of {_schema(inner)}"
    if "enum" in schema:
        return ", ".join(schema["enum"])
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" {low} to {high}" if low is not None and high is not None else f" from {low}" if low is not None else ""
    kinds = [each["type"] for each in schema.get("anyOf", (schema,))]
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return " or ".join(names.get(kind, kind) for kind in kinds) + bounds


def _needed(needed: bool, schema: dict[str, Any]) -> str:
    return " ".join(each for each in ("Needed." if needed else "", schema.get("description", "")) if each)


#: What generates the end of each page.
PARTS = {"cli.md": cli_part, "settings.md": settings_part, "mcp.md": mcp_part, "http.md": http_part}


def complete_page(name: str) -> str:
    """Return a complete page."""
    return (ROOT / "docs" / "reference" / name).read_text("utf-8") + "\n" + PARTS[name]()


def openapi_json() -> str:
    """Return the OpenAPI document as text."""
    return json.dumps(described(), indent=1, ensure_ascii=False) + "\n"


def on_files(files: Any, config: Any) -> None:
    """Add openapi.json to the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/openapi.json", content=openapi_json()))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append the generated part of a page."""
    folder, _, name = page.file.src_uri.rpartition("/")
    return f"{markdown}\n{PARTS[name]()}" if folder == "reference" and name in PARTS else markdown


def main(folder: Path) -> None:
    """Write the complete pages and openapi.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        (folder / name).write_text(complete_page(name), "utf-8")
    (folder / "openapi.json").write_text(openapi_json(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
