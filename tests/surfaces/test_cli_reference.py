"""The reference pages: up to date, whole, and true."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from keepward.cli.main import command_tree

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = list(command_tree().paths)
#: What commands print for a person, in the order in which one store passes through them.
TOLD = """
version
status
config
identity
jobs
doctor
verify
tenants
list
recall tabs
context tabs
get {id}
history {id}
block mission
pending
log
show 1
diff 0 1
receipt {receipt}
impact --memory {id}
contain --memory {id}
blame {id}
bisect tabs --contains tabs
contradictions
adopt
erase {id}
train
token create --name claude --scope claude
token list
model list
mcp --list
connect claude --project . --dry-run
remember "Bo prefers spaces"
revise {id} "Ana prefers spaces" --reason new
approve {proposal}
rollback {commit} --dry-run
backup copy.db
export vault.jsonl
drill
"""
#: Arguments under which a command whose keys no golden session holds succeeds.
ARGUMENTS = {"serve": ("--port", "0"), "add": ("chat.json",), "store": ("migrate", "--to", "moved.db")}


@pytest.mark.parametrize("name", ["cli.md", "settings.md"])
def test_a_reference_page_is_up_to_date(reference, name):
    assert (ROOT / "docs" / "reference" / name).read_text("utf-8") == reference.PAGES[name]()


def test_every_command_is_in_the_reference():
    told = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"\n### {name}\n" not in told] == []


@pytest.mark.parametrize("name", ["add", "drill", "open", "serve", "store"])
def test_json_of_other_commands_has_the_documented_keys(reference, run, saved, tmp_path, monkeypatch, name):
    monkeypatch.setattr("keepward.http.server.Server.answer", lambda server, bound: None)
    monkeypatch.setattr("keepward.cli.serve._fresh_link", lambda options, token: f"{options.url}/#code=x")
    monkeypatch.setattr("webbrowser.open", lambda link: True)
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": "I like green tea"}]))
    wanted = {key.removesuffix("[]") for key in reference.JSON_KEYS[name].split()}
    assert wanted == set(run(name, *ARGUMENTS.get(name, ()), "--json").json)


def test_what_a_person_is_shown_fits_80_columns(run, saved, held):
    wrong = {}
    for line in TOLD.strip().splitlines():
        told = run(*shlex.split(line.format(**{**saved, "proposal": held["proposal"]})))
        # A path or a link that is there to be copied is not broken.
        shown = told.out.partition("Next, try")[0].splitlines()
        long = [each for each in shown if len(each) > 80 and len(each.split()[-1]) < 40]
        if long or not shown:
            wrong[line] = long or told.err
    assert wrong == {}
