"""Who a command acts as: `--as`, KEEPWARD_ACTOR and `--agent`, each with each class of actor and with each command."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path

import pytest

from keepward.cli.main import command_tree

#: Actors by the actors that `--as` may name where KEEPWARD_ACTOR names them.
MAY_NAME = {
    "agent:a": {"agent:a"},
    "agent:b": {"agent:b"},
    "user:a": {"user:a", "agent:a", "agent:b"},
    "user:b": {"user:b", "agent:a", "agent:b"},
    "reviewer": {"reviewer", "user:a", "user:b", "agent:a", "agent:b"},
    "operator": {"operator", "reviewer", "user:a", "user:b", "agent:a", "agent:b"},
}


@pytest.mark.parametrize("given", MAY_NAME)
def test_as_names_the_actor_of_the_environment_or_one_with_fewer_rights(run, saved, monkeypatch, given):
    monkeypatch.setenv("KEEPWARD_ACTOR", given)
    codes = {asked: run("get", saved["id"], "--as", asked).code for asked in MAY_NAME}
    assert codes == {asked: 0 if asked in MAY_NAME[given] else 7 for asked in MAY_NAME}


#: Commands that an agent may not run, in a store with a pending proposal; all others are in ``ALLOWED``.
REFUSED = {
    "approve": "approve {proposal}",
    "amend": "amend {proposal} 'Ship it'",
    "reject": "reject {proposal} --reason no",
    "reopen": "reopen {proposal} --reason again",
    "rollback": "rollback {commit}",
    "impact": "impact --memory {id}",
    "contain": "contain --memory {id}",
    "token": "token create --name planner --rights owner",
    "tenants": "tenants",
    "jobs": "jobs run prune",
    "train": "train",
    "erase": "erase {id}",
    "backup": "backup copy.db",
    "restore-backup": "restore-backup there.db --to back.db",
    "store": "store migrate --to moved.db",
    "drill": "drill",
    "rebuild": "rebuild",
    "reindex": "reindex",
    "export": "export vault.jsonl",
    "restore-export": "restore-export there.jsonl",
    "adopt": "adopt",
    "key": "key export key.file",
    "config": "config --accept 0000",
    "serve": "serve --port {port}",
    "open": "open --port {port}",
    "connect": "connect claude",
    "test": "test agent.memory.yaml",
    "check": "check",
}
#: What an agent may run, or what opens no store.
ALLOWED = {
    *("init", "model", "demo", "status", "mcp", "hook", "shadow", "version", "verify", "doctor"),
    *("remember", "add", "revise", "move", "promote", "merge", "reinforce", "block", "forget", "supersede", "archive"),
    *("restore", "blob", "identity", "import", "recall", "context", "replay", "list", "get", "history", "feedback"),
    *("branch", "pending", "log", "show", "diff", "receipt", "blame", "bisect", "context-diff", "contradictions"),
}


def test_every_command_is_in_the_table() -> None:
    assert REFUSED.keys() | ALLOWED == command_tree().paths.keys()
    assert not REFUSED.keys() & ALLOWED


def test_agent_option_acts_as_the_agent_in_each_command_of_people(run, saved, held):
    run("backup", "there.db")
    run("export", "there.jsonl")
    Path("agent.memory.yaml").write_text("tests: [{objective: tabs, lacks: spaces}]")
    before, wrong = run("status", "--json").json, []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        names = {
            **saved,
            "commit": saved["commit"]["id"],
            "receipt": saved["receipt"]["id"],
            "proposal": held["item"]["id"],
            "port": taken.getsockname()[1],
        }
        for words in REFUSED.values():
            # The option is taken before the command too.
            for arguments in (f"{words} --agent planner", f"--agent planner {words}"):
                ran = run(*shlex.split(arguments.format(**names)))
                if ran.code != 7 or "--as operator" not in ran.err:
                    wrong.append((arguments, ran.code, ran.err))
    assert wrong == []
    after = run("status", "--json").json
    assert (after["head"], after["quarantine"]["depth"]) == (before["head"], before["quarantine"]["depth"])
    assert run("token", "list", "--json").json["tokens"] == []


@pytest.mark.parametrize("name", ["approve", "token", "rollback", "backup"])
def test_operator_acts_in_the_scope_of_the_agent(run, saved, held, name):
    words = (
        REFUSED[name]
        .replace(" --rights owner", "")
        .format(
            **{
                **saved,
                "commit": saved["commit"]["id"],
                "receipt": saved["receipt"]["id"],
                "proposal": held["item"]["id"],
            }
        )
    )
    assert run(*shlex.split(words), "--agent", "planner", "--as", "operator").code == 0


def test_agent_option_acts_as_the_agent_in_commands_that_read_or_propose(run, saved):
    run("remember", "The crane is red", "--agent", "planner", "--tier", "archival")
    written = run("list", "--agent", "planner", "--json").json["items"][0]
    assert (written["author"], written["scope"]) == ("agent:planner", "/agents/planner")
    assert run("status", "--agent", "planner", "--json").json["actor"] == "agent:planner"
    for words in (
        "pending",
        "log",
        "doctor",
        f"show {saved['commit']['id']}",
        "diff 0 1",
        "verify",
        "contradictions",
        "list",
    ):
        assert run(*words.split(), "--agent", "planner").code in {0, 1}


def test_agent_option_does_not_replace_the_actor_of_the_environment(run, saved, monkeypatch):
    monkeypatch.setenv("KEEPWARD_ACTOR", "user:ana")
    assert run("status", "--agent", "planner", "--json").json["actor"] == "user:ana"
    refused = run("tenants", "--agent", "planner")
    assert (refused.code, "--as operator" in refused.err) == (7, False)
