"""The reference of the command line and of settings is complete, and what commands print is as it says."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from keepward.cli.main import command_tree
from keepward.core.policy import Policy
from keepward.settings import SETTING_VARIABLES, ServerSettings

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


@pytest.mark.promise("Z47")
def test_every_command_is_documented_and_every_documented_command_exists(reference):
    page = reference.complete_page("cli.md")
    assert sorted(re.findall(r"^### (.+)$", page, re.MULTILINE)) == sorted(command_tree().paths)


def test_every_setting_is_documented(reference):
    page = reference.complete_page("settings.md")
    names = [*SETTING_VARIABLES, *Policy.__struct_fields__, *ServerSettings.__struct_fields__]
    assert [name for name in names if f"\n| `{name}` |" not in page] == []


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
        told = run(
            *shlex.split(
                line.format(
                    **{
                        **saved,
                        "commit": saved["commit"]["id"],
                        "receipt": saved["receipt"]["id"],
                        "proposal": held["item"]["id"],
                    }
                )
            )
        )
        # A path or a link that is there to be copied is not broken.
        shown = told.out.partition("Next, try")[0].splitlines()
        long = [each for each in shown if len(each) > 80 and len(each.split()[-1]) < 40]
        if long or not shown:
            wrong[line] = long or told.err
    assert wrong == {}
