"""`keepward connect --hooks`: one entry for each event in a client's settings, and the rest of the file as it was."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from keepward.hooks.events import CLIENTS
from keepward.mcp.connect_hooks import HOOK_SETTINGS

ROOT = Path(__file__).parents[2]
#: Settings that people have.
THEIRS = {
    "claude": '{\n  "model": "opus",\n  "hooks": {\n    "SessionStart": [ {"hooks": [{"type": "command", "command": "true"}]} ]\n  }\n}\n',
    "codex": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}\n',
    "gemini": '{\r\n    "theme": "dark",\r\n    "a": [1,2]\r\n}\r\n',
    "cursor": '{\n  "version": 1,\n  "hooks": {\n    "stop": [{ "command": "./audit.sh" }],\n    "sessionStart": [{ "command": "./hello.sh" }]\n  }\n}\n',
}


@pytest.fixture
def home(run, home):
    run("init")
    # Codex is not installed, so the user pastes its entry.
    (home / ".codex").mkdir()
    snippet = run("connect", "codex", "--no-token").err.partition("end:\n")[2]
    (home / ".codex" / "config.toml").write_text(snippet)
    return home


#: Clients that list calls in their settings; OpenCode loads a file instead.
LISTING = sorted(THEIRS)
PLUGIN = ".config/opencode/plugins/keepward.js"


def written(home, client, text=None):
    path = home / HOOK_SETTINGS[client].file
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return path


def lines(path):
    """Return our command lines by event."""
    found = {}
    for name, entries in json.loads(path.read_text())["hooks"].items():
        for entry in entries:
            for each in entry.get("hooks", [entry]):
                if " hook " in each["command"]:
                    found[name] = shlex.split(each["command"])
    return found


@pytest.mark.parametrize("client", LISTING)
@pytest.mark.parametrize("before", [False, True])
def test_each_event_of_the_client_calls_us_once(run, home, client, before):
    path = written(home, client, THEIRS[client] if before else None)
    run("connect", client, "--hooks", "--no-token")
    told = {name: words[words.index("hook") + 1] for name, words in lines(path).items()}
    assert told == dict(CLIENTS[client].events)


@pytest.mark.parametrize("client", LISTING)
def test_connecting_and_removing_leaves_what_was_there(run, home, client):
    path = written(home, client, THEIRS[client])
    assert run("connect", client, "--hooks", "--no-token").code == 0
    run("connect", client, "--remove")
    assert json.loads(path.read_text()) == json.loads(THEIRS[client])


@pytest.mark.parametrize("client", LISTING)
def test_without_hooks_nothing_is_called(run, home, client):
    run("connect", client)
    path = home / HOOK_SETTINGS[client].file
    assert not path.exists() or " hook " not in path.read_text()


def test_a_dry_run_writes_nothing(run, home):
    assert run("connect", "claude", "--hooks", "--dry-run", "--json").json["hooks"]["action"] == "added"
    assert not (home / ".claude" / "settings.json").exists()


def test_a_token_is_in_no_command_line(run, home):
    run("connect", "claude", "--hooks")
    assert "kw_" not in (home / ".claude" / "settings.json").read_text()


def test_earlier_entries_survive_with_both_in_one_file(run, home):
    path = written(home, "gemini", THEIRS["gemini"])
    run("connect", "gemini", "--hooks")
    assert path.with_name("settings.json.before-keepward").read_bytes() == THEIRS["gemini"].encode()


def test_who_has_to_trust_new_hooks_is_told_once(run, home):
    told = [run("connect", "codex", "--hooks", "--no-token", "--json").json["hooks"] for _ in range(2)]
    assert [(each["action"], "trust them" in (each["next"] or "")) for each in told] == [
        ("added", True),
        ("unchanged", False),
    ]


def test_a_client_without_hooks_is_reported(run, home):
    done = run("connect", "vscode", "--hooks")
    assert (done.code, "hooks are supported for" in done.err) == (2, True)


def test_the_command_that_is_written_answers(run, home):
    run("remember", "The deploy target is db-7")
    run("connect", "claude", "--hooks", "--embedder", "hashed")
    words = lines(home / ".claude" / "settings.json")["UserPromptSubmit"]
    event = json.dumps({"session_id": "s1", "prompt": "What is the deploy target?"})
    assert "db-7" in run(*words[words.index("hook") :], stdin=event.encode()).out


def test_opencode_loads_a_file_that_calls_this_program(run, home):
    run("connect", "opencode", "--hooks", "--name", "ben")
    text = (home / PLUGIN).read_text()
    (command,) = re.findall("const COMMAND = (.*)", text)
    (options,) = re.findall("const OPTIONS = (.*)", text)
    assert (json.loads(command)[-1], "ben" in json.loads(options)) == ("hook", True)


def test_removing_leaves_no_file_for_opencode(run, home):
    run("connect", "opencode", "--hooks")
    run("connect", "opencode", "--remove")
    assert list((home / PLUGIN).parent.iterdir()) == []


def test_hooks_are_removed_although_the_entry_needs_manual_removal(run, home):
    run("connect", "opencode", "--hooks")
    settings = home / ".config" / "opencode" / "opencode.json"
    settings.write_text("mine\n" + settings.read_text())
    done = run("connect", "opencode", "--remove")
    assert (done.code, "keepward token revoke" in done.err, list((home / PLUGIN).parent.iterdir())) == (2, True, [])


def test_file_with_comments_without_our_entry_needs_no_removal(run, home):
    written(home, "gemini", '{\n  // mine\n  "theme": "dark"\n}\n')
    assert run("connect", "gemini", "--remove", "--json").json["action"] == "absent"


def test_hooks_are_in_the_folder_that_the_client_is_told(run, home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    told = run("connect", "claude", "--hooks", "--no-token", "--json").json
    assert told["hooks"]["path"] == str(home / "elsewhere" / "settings.json")


def test_where_hooks_cannot_be_written_nothing_is_connected(run, home):
    written(home, "claude", '{"hooks": 3}')
    run("connect", "claude", "--hooks")
    assert ((home / ".claude.json").exists(), "claude" in run("token", "list").out) == (False, False)


def test_foreign_opencode_file_is_left_unchanged(run, home):
    (home / PLUGIN).parent.mkdir(parents=True)
    (home / PLUGIN).write_text("export const Mine = async () => ({})\n")
    assert run("connect", "opencode", "--hooks").code == 2
    assert (home / PLUGIN).read_text() == "export const Mine = async () => ({})\n"


def test_the_plugin_calls_what_there_is():
    folder = ROOT / "plugins" / "keepward"
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    told = {name: entries[0]["hooks"][0]["command"].split()[2] for name, entries in hooks.items()}
    assert told == dict(CLIENTS["claude"].events)


def test_the_plugin_is_the_one_of_the_marketplace():
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    folder = ROOT / market["plugins"][0]["source"]
    assert json.loads((folder / ".claude-plugin" / "plugin.json").read_text())["name"] == market["plugins"][0]["name"]
