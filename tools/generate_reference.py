"""Write the pages of docs/reference, and openapi.json, from the code that they describe.

    python tools/generate_reference.py            write them
    python tools/generate_reference.py --check    exit 1 if they are out of date

The sentences come from the command line's own help, from the `#:` comments on the fields of settings and
policy, and from the OpenAPI description of the server, so a page cannot tell of what is not there, nor leave
out what is.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from keepward import config
from keepward.cli.command import COMMON, EXIT_CODES
from keepward.cli.main import ABOUT, PROGRAM, command_tree
from keepward.config import ENVIRONMENT, PLACES, SWITCHES, Settings
from keepward.model import policy as policy_module
from keepward.model.policy import EthicsRule, Policy

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTICE = "<!-- Written by tools/generate_reference.py; do not edit. -->"
WRITE = "outcome id version commit proposal receipt reasons[] redacted[] tier kind key expires_at memories[] next"
RECORD = (
    "id version tier kind text scope key subject category tags content_type blob metadata source trust heard "
    "evidence derived_from confidence importance sensitivity stability access status superseded_by author session "
    "speaker job aliases created_at updated_at occurred_at expires_at sliding_ms reinforced_at base_confidence "
    "base_importance uses last_used "
    "children"
)
#: What the object of `--json` holds at its top; a test compares it with what comes out.
JSON_KEYS = {
    "init": "path created schema_version head tenant policy settings owner_token",
    "demo": "path ok steps[] next[]",
    "status": "path tenant scope actor head policy enabled capture recall embedder counter by_status by_tier by_kind "
    "by_scope by_content_type by_source by_trust live total events commits bloat quarantine capacity stuck_drafts "
    "blocks schema_version settings",
    "remember": WRITE,
    "add": "session turns[] facts[] notes[]",
    "hook": "",
    "serve": "path url console mcp token_file live waiting open_reads notes[]",
    "revise": WRITE,
    "forget": WRITE,
    "supersede": WRITE,
    "archive": WRITE,
    "restore": WRITE,
    "blob": "ref bytes media_type active path next",
    "recall": "used[] notes[] head now hits[] excluded[] reranker withheld[] floor best below calibration "
    "candidates receipt",
    "feedback": "number receipt actor trust at used[] ignored[]",
    "train": "version serving feedback held_out learned fused cosine gain why from_agents commit receipt",
    "context": "text context_id receipt tokens head used[] notes[] kept sections[] excluded[] withheld[] "
    "floor best below",
    "replay": "receipt text same unchanged[] missing[]",
    "list": "memories[] count withheld[] notes[]",
    "identity": "version text tokens budget current obstacle edited editions[]",
    "get": RECORD,
    "history": "id versions[]",
    "pending": "proposals[] count",
    "approve": "results[] approved failed",
    "amend": WRITE,
    "reject": "results[] rejected failed",
    "reopen": "results[] reopened failed",
    "log": "commits[] next_before",
    "show": "id seq at kind actor reason receipt policy session proposal approved_by undoes[] hash prev changes[] "
    "events[]",
    "diff": "from to differences[] count",
    "receipt": "id tenant kind at actor policy head reasons[]",
    "rollback": "applied already dry_run commit receipt undone[] targets[] conflicts[] dependents[] reasons[]",
    "impact": "by direct[] derived[] contexts[] waiting[] damaged[]",
    "contain": "applied digest items[] impact commit receipt",
    "blame": "id version fields[]",
    "bisect": "commit compiled events[] next[]",
    "context-diff": "first second same items[] inputs",
    "contradictions": "items[] total compared withheld[] notes[]",
    "drill": "ok path fired breached inconclusive checks[]",
    "erase": "applied plan commit receipt certificate lifted[]",
    "backup": "path bytes heads listed blobs faulty[]",
    "restore-backup": "path store_id separate heads erased revoked warning blobs faulty[]",
    "key": "action path store_id entries tombstones",
    "config": "file digest named loosens[] accepted",
    "move": "place tenants[] store_id blobs",
    "rescue": "path store_id of whole sealed tenants[] blobs lost_blobs[] not_carried",
    "adopt": "applied digest foreign heads live waiting erased core[] tokens[] faults[] warning",
    "verify": "ok checked first_fault faults[] notes[]",
    "rebuild": "rebuilt head",
    "reindex": "reindexed",
    "jobs": "jobs[] count",
    "token": "id name rights can[] tenant scope state created_by created_at expires_at revoked_at",
    "doctor": "ok checks[]",
    "export": "path lines head tenant weights lost_weights[]",
    "restore-export": "applied digest tenant head versions live core[] blobs weights notes[]",
    "import": "format total committed duplicates quarantined refused failed[] refusals[] tenants[] notes[] "
    "reference facts dry_run",
    "version": "version python sqlite",
    "mcp": "profile tools[] resources[] prompts[]",
    "connect": "client path action dry_run diff backup command[] token ended hooks next",
}
#: These hold more, by what they tell of.
OPEN = ("status", "receipt", "token", "identity")
#: What one element of a list holds.
ELEMENTS = {
    "reasons[]": "gate code detail",
    "hits[]": "rank id text score parts tier kind key scope trust source confidence importance version tags "
    "content_type blob speaker occurred_at created_at why weak",
    "sections[]": "name tokens items",
    "excluded[] of context": "id version reason code",
    "versions[]": "version op commit seq at actor approved_by reason receipt before after changed",
    "proposals[]": "id state proposer reason reasons diff base base_version digest created_at expires_at decided_by "
    "decision decided_at shown",
    "tokens[] of token list": "id name rights can tenant scope state created_by created_at expires_at revoked_at",
    "jobs[]": "name does schedule due due_at last_at last_outcome last_receipt running_until",
    "runs[] of jobs run": "job outcome why counts reasons commits proposals started_at ended_at receipt",
    "commits[]": "id seq at kind actor reason receipt policy session proposal approved_by undoes hash prev changes",
    "targets[], differences[]": "id before after changed",
    "conflicts[]": "memory seq commit",
    "faults[]": "check row detail",
    "checks[]": "name ok detail remedy",
    "checks[] of drill": "name title status defence",
    "plan of erase": "digest reason targets derived quoting versions commit_details receipts proposals documents",
    "token of connect": "id state name scope",
    "contexts[]": "receipt at actor purpose items",
    "fields[]": "field value version commit seq at op actor source approved_by reason",
    "items[] of context-diff": "id change section before after commit why",
}


def cli_page() -> str:
    """Return the page on the command line."""
    root: Any = command_tree()
    context = click.Context(root, info_name=PROGRAM)
    lines = ["# The command line", "", NOTICE, "", *_folded(ABOUT), "", "## Options of every command", ""]
    lines += ["They may stand before the command or after it; the nearer one wins.", ""]
    lines += _table(("option", "meaning"), (_row(each, context) for each in root.params if each.name in COMMON))
    lines += ["", "## Exit codes", ""]
    lines += _table(("code", "meaning"), ((str(code), meaning) for code, meaning in EXIT_CODES.items()))
    lines += ["", "## `--json`", ""]
    lines += ["One object on stdout and nothing else; talk and progress go to stderr. Keys are added, never renamed."]
    lines += ['An error is `{"error": {"code", "message"}}`, with the message on stderr too.', ""]
    lines += _table(("element of", "holds"), ((f"`{name}`", f"`{keys}`") for name, keys in ELEMENTS.items()))
    for section, commands in root.sections.items():
        lines += ["", f"## {section}"]
        for name in commands:
            lines += ["", *_command(name, root.get_command(context, name), context)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, parent: Any) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    own = [each for each in command.params if each.name not in COMMON]
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
    if JSON_KEYS[name]:
        yield f"`--json`: `{JSON_KEYS[name]}`{' and more' if name in OPEN else ''}"


def _row(param: Any, context: Any) -> tuple[str, str]:
    names, told = param.get_help_record(context) or ("", "")
    if param.param_type_name == "argument":
        names = param.metavar or param.name
    return f"`{names}`", " ".join(told.split())


def settings_page() -> str:
    """Return the page on settings."""
    said = comments(inspect.getsource(config.Settings))
    lines = ["# Settings", "", NOTICE, ""]
    lines += [f"`{config.FILE_NAME}` beside the store, or the file named by `--config` or `KEEPWARD_CONFIG`. The"]
    lines += ["command line beats the environment, the environment beats the file, the file beats the default. An"]
    lines += ["unknown name or a wrong value is an error that names the key.", "", "## At the top of the file", ""]
    defaults = {each.name: each.default for each in dataclasses.fields(Settings)}
    rows = [
        (f"`{name}`", f"`{variable}`", f"`{defaults[name]}`" if defaults[name] else "none", said[name])
        for name, variable in ENVIRONMENT.items()
    ]
    lines += _table(("name", "variable", "default", "meaning"), rows)
    lines += ["", "## Variables alone", ""]
    lines += _table(("variable", "meaning"), ((f"`{name}`", text) for name, text in PLACES.items()))
    lines += ["", "## Under `[policy]`", ""]
    lines += ['Durations are text such as `"24h"` or `"30d"`, or a number of seconds. A table changes only the']
    lines += ["entries it names. Every policy has a version, the hash of its content, which each receipt names.", ""]
    about, plain = comments(inspect.getsource(policy_module.Policy)), Policy().as_dict()
    lines += _table(("name", "default", "meaning"), (_setting(name, value, about) for name, value in plain.items()))
    lines += ["", "Three switches can be turned by the environment as well:"]
    lines += [f"{', '.join(f'`{variable}`' for variable in SWITCHES.values())}.", ""]
    lines += ["Each rule of `[[policy.memory_ethics]]` takes:", ""]
    rules = {
        "name": "Its name, as it stands in receipts.",
        **comments(inspect.getsource(policy_module.EthicsRule)),
        "action": "`quarantine`, the default, or `refuse`.",
    }
    fields = [each.name for each in dataclasses.fields(EthicsRule)]
    lines += _table(("name", "meaning"), ((f"`{name}`", rules[name]) for name in fields))
    lines += ["", "## Under `[server]`", "", "What `keepward serve` takes where its options name nothing else.", ""]
    about = comments(inspect.getsource(config.ServerSettings))
    plain = {each.name: each.default for each in dataclasses.fields(config.ServerSettings)}
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


def described() -> dict[str, Any]:
    """Return the OpenAPI description of the server."""
    import tempfile

    from keepward import Actor, Memory
    from keepward.http import create_app

    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"embedder": None, "config_dir": Path(folder)}
        with Memory.open(":memory:", actor=Actor.operator(), **options) as memory:
            return dict(create_app(memory).openapi())


def openapi_page() -> str:
    """Return the OpenAPI description as a file."""
    return json.dumps(described(), indent=1, ensure_ascii=False) + "\n"


HTTP = """Start it with `keepward serve`. [How to](../http.md) has the credentials, the limits and the list of problems;
`GET /openapi.json` describes every field, and so does [openapi.json](openapi.json).

Every call under `/memory` takes a token as `Authorization: Bearer kw_...`, or a session of the page, and acts at the
token's tenant and scope; `Keepward-Tenant` and `Keepward-Scope` move it as far as the token reaches. A body is JSON
as `application/json`. A changing `POST` may carry an `Idempotency-Key`.

| a write answers | when |
| --- | --- |
| 201 | it is committed |
| 202 | it is held for review; `proposal` is what to approve |
| 200 | the same was remembered already; it was confirmed |
| 422 | a gate refused it, with `reasons` and a receipt; nothing was stored |

Any call may answer 400, 401, 403, 421 and 503, one that changes something 429, one with a body 413, 415 and 422; the
tables name what else there is. Every error is `application/problem+json` with a stable `code`. What is marked with a
star may be left out. Lists are `items` and a `cursor` for the next page, null at the end; all pages are read from the
state of the first. Where an answer names a `commit` or a `receipt` by id, `commit_header` and `receipt_record` hold
the whole of it."""
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
    "drafts": "Drafts",
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
}
#: Answers that any call of a kind may give, told once above the tables.
USUAL = {"400", "401", "403", "413", "415", "421", "422", "429", "503"}


def http_page() -> str:
    """Return the page on the HTTP routes."""
    api = described()
    lines = ["# The HTTP API", "", NOTICE, "", HTTP]
    for tag, title in SECTIONS_HTTP.items():
        lines += ["", f"## {title}"]
        for path, operations in api["paths"].items():
            for method, each in operations.items():
                if each["tags"][0] == tag:
                    lines += ["", *_operation(api, path, method, each)]
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
            if each["in"] == place
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


def mcp_page() -> str:
    """Return the page on the Model Context Protocol: tools, resources and prompts of every profile."""
    from keepward.mcp.profiles import CORE, NAMES, PROMPTS, TEMPLATES, profile

    profiles = [profile(name) for name in NAMES]
    lines = ["# The Model Context Protocol", "", NOTICE, ""]
    lines += [
        "`keepward mcp --profile NAME` on stdio, `/mcp` inside `keepward serve`. How to connect: [mcp](../mcp.md).",
        "",
    ]
    rows = [
        (
            f"`{each.name}`",
            each.about,
            ", ".join(f"`{tool.name}`" for tool in each.tools),
            "yes" if each.documents else "no",
        )
        for each in profiles
    ]
    lines += _table(("profile", "for", "tools", "resources and prompts"), rows)
    lines += ["", "## Tools"]
    tools = {tool.name: tool for each in profiles for tool in each.tools}
    for tool in tools.values():
        hints = {"reads": tool.reads, "destructive": tool.destroys, "idempotent": tool.reads or tool.repeatable}
        found = [name for name, each in hints.items() if each] or ["adds"]
        lines += ["", f"### {tool.name}", "", f"{tool.about.rstrip('.')}. ({', '.join(found)})", ""]
        takes, gives = tool.input_schema, tool.output_schema
        if takes["properties"]:
            needs = takes.get("required", ())
            rows = [
                (f"`{name}`", _schema(each), _needed(name in needs, each)) for name, each in takes["properties"].items()
            ]
            lines += [*_table(("argument", "type", "meaning"), rows), ""]
        keys = ", ".join(f"`{name}`" + ("" if name in gives["required"] else "?") for name in gives["properties"])
        lines += [f"Structured content: {keys}."]
    lines += ["", "## Resources", ""]
    lines += _table(
        ("address", "type", "holds"), ((f"`{e.uri}`", e.mime_type, e.description) for e in (CORE, *TEMPLATES))
    )
    lines += ["", "## Prompts", ""]
    rows = [
        (
            f"`{each.name}`",
            ", ".join(f"`{a.name}`{'' if a.required else '?'}" for a in each.arguments) or "none",
            each.description,
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


PAGES = {
    "cli.md": cli_page,
    "settings.md": settings_page,
    "mcp.md": mcp_page,
    "http.md": http_page,
    "openapi.json": openapi_page,
}


def main() -> int:
    """Write the pages, or with `--check` compare them; return the exit code."""
    stale = [
        name
        for name, page in PAGES.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text("utf-8") != page()
    ]
    if "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(PAGES[name](), "utf-8")
    print(f"wrote {', '.join(stale)}" if stale else "up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
