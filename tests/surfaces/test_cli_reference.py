"""The reference pages: up to date, whole, and true."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from keepward.cli.main import command_tree
from keepward.drill.drill import drill

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = list(command_tree().places)
#: Arguments under which each command succeeds on the store of the fixtures.
ARGUMENTS = {
    "demo": ("--db", "demo.db", "--embedder", "hashed"),
    "serve": ("--port", "0"),
    "model": ("list",),
    "remember": ("Bo prefers spaces",),
    "add": ("chat.json",),
    "revise": ("{id}", "Ana prefers spaces", "--reason", "new"),
    "reinforce": ("{id}",),
    "block": ("mission",),
    "forget": ("{id}", "--reason", "old"),
    "supersede": ("{id}", "--by", "{other}", "--reason", "twice"),
    "archive": ("{id}", "--reason", "quiet"),
    "restore": ("{id}", "--reason", "again"),
    "blob": ("put", "chat.json"),
    "recall": ("tabs",),
    "feedback": ("{context}", "--used", "{id}"),
    "context": ("tabs",),
    "replay": ("{context}",),
    "get": ("{id}",),
    "history": ("{id}",),
    "approve": ("{proposal}",),
    "amend": ("{proposal}", "--tag", "seen"),
    "reject": ("{proposal}", "--reason", "no"),
    "reopen": ("{proposal}", "--reason", "no"),
    "show": ("1",),
    "diff": ("0", "1"),
    "receipt": ("{receipt}",),
    "rollback": ("{commit}",),
    "impact": ("--memory", "{id}"),
    "contain": ("--memory", "{id}"),
    "blame": ("{id}",),
    "bisect": ("tabs", "--contains", "tabs"),
    "context-diff": ("{context}", "{context}"),
    "export": ("vault.jsonl",),
    "erase": ("{id}",),
    "backup": ("copy.db",),
    "restore-backup": ("copy.db", "--to", "back.db"),
    "store": ("migrate", "--to", "moved.db"),
    "move": ("{id}", "--tier", "episodic", "--reason", "it happened"),
    "promote": ("{id}", "Ana prefers tabs", "--reason", "it lasts"),
    "merge": ("{id}", "{other}", "--reason", "twice"),
    "import": ("chat.json",),
    "key": ("export", "home.key"),
    "restore-export": ("vault.jsonl", "--db", "other.db"),
    "token": ("create", "--name", "claude", "--scope", "claude"),
    "mcp": ("--list",),
    "connect": ("claude", "--project", ".", "--remove", "--dry-run"),
}


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("generate_reference", ROOT / "tools" / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "settings.md"])
def test_a_reference_page_is_up_to_date(reference, name):
    assert (ROOT / "docs" / "reference" / name).read_text("utf-8") == reference.PAGES[name]()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_reference(name):
    assert f"\n### {name}\n" in (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")


@pytest.fixture(scope="module")
def drilled():
    """Run the drill once; each command that shows it shows these lines."""
    lines = []

    def once(*given, **options):
        if not lines:
            lines.extend(drill(*given, **options))
        return list(lines)

    return once


@pytest.fixture
def succeed(run, saved, held, drilled, tmp_path, monkeypatch):
    """Run a command under arguments with which it has something to tell; a server stops as soon as it has told it."""
    monkeypatch.setattr("keepward.http.server.Server.answer", lambda server, bound: None)
    monkeypatch.setattr("keepward.cli.agents._fresh_link", lambda options, token: f"{options.url}/#code=x")
    monkeypatch.setattr("webbrowser.open", lambda link: True)
    monkeypatch.setattr("keepward.drill.drill.drill", drilled)
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": "I like green tea"}]))
    monkeypatch.setenv("KEEPWARD_PASSPHRASE", "a harbour in the rain")
    known = {**saved, "proposal": held["proposal"], "context": ""}

    def call(name, *more):
        if name in {"replay", "context-diff", "feedback"}:
            known["context"] = run("context", "tabs", "--json").json["receipt"]
        if name == "restore-backup":
            run("backup", "copy.db")
        if name == "restore-export":
            run("export", "vault.jsonl")
        if name in {"supersede", "merge"}:
            known["other"] = run("remember", "Ana prefers spaces", "--tier", "archival", "--json").json["id"]
        if name == "restore":
            run("forget", saved["id"], "--reason", "old", "--as", "operator")
        return run(name, *(each.format(**known) for each in ARGUMENTS.get(name, ())), *more)

    return call


#: What prints for a program that called it, in that program's format.
FOR_PROGRAMS = {"hook"}


@pytest.mark.parametrize("name", ["add", "drill", "open", "serve", "store"])
def test_the_json_of_a_command_outside_of_the_golden_session_has_the_documented_keys(reference, succeed, name):
    wanted = {key.removesuffix("[]") for key in reference.JSON_KEYS[name].split()}
    assert wanted == set(succeed(name, "--json").json)


@pytest.mark.parametrize("name", [each for each in COMMANDS if each not in FOR_PROGRAMS])
def test_a_person_is_shown_something_that_fits_80_columns(succeed, name):
    told = succeed(name).out.partition("Next, try")[0]
    # A path or a link that is there to be copied is not broken.
    broken = [line for line in told.splitlines() if len(line) > 80 and len(line.split()[-1]) < 40]
    assert (bool(told.strip()), broken) == (True, [])
