"""What users see, held by the golden files of `tests/golden`; see `golden` for how one is written anew.

``KEEPWARD_GOLDEN=rewrite pytest tests/surfaces/test_golden.py`` rewrites them on purpose. A session here is a list of
calls on a fresh store: of the command line and of HTTP the keys and types of each answer are compared with its code,
of the journal every byte.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import click
import pytest
from golden_sessions import COMMANDS, JOURNAL, OF_THE_MACHINE, REQUESTS, SECRET, TOOLS
from http_fixtures import HttpTestServer, events_of, streamed
from mcp_made import opened, served, talk
from starlette.testclient import TestClient

import keepward
from golden import FOLDER, aliased, compare, library, operations, plain_screens, structure, types, usage
from keepward import Actor, Memory
from keepward.api import OPERATIONS
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.cli.main import command_tree
from keepward.interchange import plan_restore_export, restore_export, write_vault
from support.clock import SteppingClock
from support.openapi import described


class Ids:
    """Ids and salts that are the same in every run, each counted by itself."""

    def __init__(self) -> None:
        self.ids = self.salts = 0

    def new_id(self, now: datetime) -> str:
        self.ids += 1
        return str(UUID(int=(int(now.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | self.ids))

    def salt(self) -> bytes:
        self.salts += 1
        return hashlib.sha256(f"salt {self.salts}".encode()).digest()[:16]


def test_operations_keep_their_signatures():
    compare("operations.txt", operations(Memory, OPERATIONS, described()))


def test_types_keep_their_fields():
    compare("types.json", types(described()))


def test_the_library_has_the_names_and_signatures_that_it_had():
    compare("library.json", library(keepward, OPERATIONS))


@pytest.mark.parametrize("profile", ["default", "readonly", "blocks"])
def test_a_client_of_the_protocol_is_shown_what_it_was(tmp_path, profile):
    async def script(client: Any) -> dict[str, Any]:
        shown = {"instructions": client.instructions, "tools": (await client.list_tools()).tools}
        if client.server_capabilities.resources:
            shown["resources"] = (await client.list_resources()).resources
            shown["templates"] = (await client.list_resource_templates()).resource_templates
            shown["prompts"] = (await client.list_prompts()).prompts
        return shown

    with opened(tmp_path) as memory:
        shown = talk(served(memory.as_actor(Actor.agent("claude")), profile), script)
    lists = {name: each for name, each in shown.items() if name != "instructions"}
    plain = {
        name: [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in found]
        for name, found in lists.items()
    }
    compact = json.dumps(plain["tools"], separators=(",", ":"), ensure_ascii=False)
    compare(f"mcp/{profile}.json", {"instructions": shown["instructions"], "characters": len(compact), **plain})


@pytest.mark.parametrize("profile", TOOLS)
def test_the_tools_of_the_protocol_answer_as_they_did(tmp_path, profile):
    async def script(client: Any) -> list[Any]:
        found, known = [], dict[str, str]()
        for name, arguments in TOOLS[profile]:
            given = {key: known[each[1:-1]] if each in ("{id}", "{edits}") else each for key, each in arguments.items()}
            answer = await client.call_tool(name, given)
            data = answer.structured_content
            known = {key: each for key, each in (data or {}).items() if key in ("id", "edits") and each} | known
            text = [aliased(each.text) for each in answer.content]
            found.append(
                {
                    "call": [name, arguments],
                    "error": answer.is_error,
                    "text": text,
                    "data": structure(data, typed=False),
                }
            )
        return found

    with stood(tmp_path) as memory:
        found = talk(served(memory.as_actor(Actor.agent("claude")), profile), script)
    compare(f"mcp/{profile}_calls.json", found)


def test_every_command_takes_the_arguments_that_it_took():
    root = click.Context(command_tree(), info_name="keepward")
    named = {name: command_tree().get_command(root, name) for name in command_tree().paths}
    lines = [usage(click.Context(command, root, name)) for name, command in named.items()]
    compare("commands.txt", "\n".join([usage(root), *lines, ""]))


def test_every_command_prints_its_golden_keys_exit_code_and_screen(run, tmp_path, monkeypatch):
    (tmp_path / "agent.memory.yaml").write_text("tests: [{objective: Ana indentation, lacks: spaces}]")
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": "I like green tea"}]))
    monkeypatch.setenv("KEEPWARD_PASSPHRASE", "a harbour in the rain")
    clock = SteppingClock()
    monkeypatch.setattr("keepward.open.SystemClock", lambda: clock)
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="ann"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("KEEPWARD_GOLDEN", raising=False)
    print_result = CommandContext.print_result

    def print_both(call: CommandContext, result: CommandResult) -> int:
        print_result(replace(call, quiet=True), result)
        return print_result(replace(call, as_json=False), result)

    monkeypatch.setattr(CommandContext, "print_result", print_both)
    said: dict[str, Any] = {}
    found, screens = {}, []
    for line in COMMANDS.strip().splitlines():
        clock.move(minutes=1)
        name, _, command = line.partition("|")
        arguments = _arguments(command, said)
        ran = run(*arguments, "--json")
        printed, _, screen = ran.out.partition("\n")
        answer = said[name.strip()] = json.loads(printed)
        found[f"{name.strip()}: {command.strip()}"] = {"exit": ran.code, "json": structure(answer)}
        # An error is printed once, in one form.
        shown = replace(ran, out=screen) if "error" not in answer else run(*arguments)
        if name.strip() not in OF_THE_MACHINE:
            screens.append(f"$ keepward {command.strip()}\n{shown.out}{shown.err}")
    compare("cli.jsonl", found.items())
    compare("screens.txt", plain_screens("\n".join(screens), tmp_path))


def _arguments(command: str, said: dict[str, Any]) -> list[str]:
    """Split a command line into words, with values of earlier answers in the place of their names."""
    words = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', command)]
    return [_filled(word, said).replace("SECRET", SECRET) for word in words]


def _filled(value: Any, said: dict[str, Any]) -> Any:
    """Put values of earlier answers in the place of `{step.key.key}`, and headers in that of `{step#name}`."""

    def found(match: re.Match[str]) -> str:
        step, header, keys = match[1], match[2], match[3].split(".")[1:]
        inner = said[f"{step}#{header}"] if header else said[step]
        for key in keys:
            inner = inner[key]
        return str(inner)

    if isinstance(value, dict):
        return {key: _filled(each, said) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, said) for each in value]
    return re.sub(r"\{([\w-]+)(?:#(\w+))?((?:\.\w+)*)\}", found, value) if isinstance(value, str) else value


def test_every_route_answers_with_its_golden_keys_and_status(tmp_path):
    (tmp_path / "other").mkdir()
    world, other = HttpTestServer(tmp_path), HttpTestServer(tmp_path / "other")
    named = {"owner": world.owner, "agent": world.bearer(), "nobody": world.nobody, "other": other.owner}
    named["browser"] = world.nobody
    clients = {name: TestClient(each.app, each.base_url, headers=each.headers) for name, each in named.items()}
    said: dict[str, Any] = {}
    found, asked = {}, set[tuple[str, str]]()
    templates = {path: re.sub(r"\{\w+\}", "[^/]+", path) for path in world.api["paths"]}
    for step, who, call, *rest in REQUESTS:
        body, headers = (*rest, None, None)[:2]
        method, path = _filled(call, said).split(" ")
        given = {"json": _filled(body, said)} if isinstance(body, dict) else {"content": _filled(body, said)}
        answer = clients[who].request(method, path, headers=_filled(headers or {}, said), **given)
        is_json = "json" in answer.headers.get("content-type", "") and "ndjson" not in answer.headers["content-type"]
        said[step] = answer.json() if is_json else answer.text
        said |= {f"{step}#{name}": value for name, value in answer.headers.items()}
        rows = [] if is_json or not answer.text.startswith("{") else map(json.loads, answer.text.splitlines())
        found[f"{step}: {who} {call}"] = {
            "status": answer.status_code,
            "headers": sorted(answer.headers.keys()),
            "type": answer.headers.get("content-type"),
            "body": structure(said[step] if is_json else list(rows)) if step != "openapi" else {},
        }
        asked |= {(method, each) for each in templates if re.fullmatch(templates[each], path.partition("?")[0])}
        if step == "link":
            said[step]["code"] = said[step]["url"].partition("#code=")[2]
    streaming = streamed(world, "/memory/events?after=0", dict(world.owner.headers), lambda sent: b"event" in sent)
    found["events: owner GET /memory/events?after=0"] = [
        {"event": each["event"], "data": structure(each["data"])} for each in events_of(streaming[1])
    ]
    for each in (world, other):
        each.memory.close()
    compare("http.jsonl", found.items())
    routes = {(method.upper(), path) for path, each in world.api["paths"].items() for method in each}
    # operations.txt has the answer of an operation, and test_calls.py compares each answer with it.
    routes -= {(each.http_method, each.path) for each in OPERATIONS.values()}
    assert routes - asked == {("GET", "/memory/events")}


def test_the_same_session_writes_the_same_journal(tmp_path):
    with stood(tmp_path) as memory:
        made: list[str] = []
        for verb, given, fields in JOURNAL:
            values = {str(n): name for n, name in enumerate(made)}
            outcome = getattr(memory, verb)(*_filled(list(given), values), **_filled(fields, values))
            made.append(outcome.records[0].id)
        text = io.StringIO()
        write_vault(memory, text)
        compare("journal.jsonl", text.getvalue())
        compare("journal.json", sealed(memory))


def test_older_export_is_restored_with_its_head_and_bytes(tmp_path):
    with stood(tmp_path) as memory:
        restore_export(memory, FOLDER / "journal.jsonl", plan_restore_export(memory, FOLDER / "journal.jsonl").digest)
        compare("journal.json", sealed(memory))


def stood(folder: Path) -> Memory:
    """Open a new store in which time stands still and ids are counted."""
    options: dict[str, Any] = {"embedder": None, "config_dir": folder / "home", "clock": SteppingClock(), "ids": Ids()}
    return Memory.open(folder / "k.db", actor=Actor.operator("ann"), **options)


def sealed(memory: Memory) -> dict[str, Any]:
    """Return what a journal comes to: its head, each commit, a compiled context with its receipt, and its replay."""
    compiled = memory.at(scope="orion").context("When does Ana's project ship, and what does Bo like?")
    receipt = compiled.receipt.to_dict()
    return {
        "head": memory.head,
        "commits": [view.commit.hash.hex() for view in memory.log()],
        "ranked": [hit.memory.id for hit in memory.recall("what does Bo like to drink", floor=0.0)],
        "text": compiled.text,
        "context_id": compiled.context_id,
        "receipt": {name: each for name, each in receipt.items() if name != "id"},
        "replayed": memory.replay(compiled.receipt.id).same,
        "verified": memory.verify().ok,
    }
