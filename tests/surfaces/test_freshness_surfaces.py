"""A changed source at the command line, over HTTP, as a tool, and in a prompt, with no model installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from http_fixtures import HttpTestServer
from mcp_made import call, result_text, served

from keepward import Actor, Memory, Policy

PORT, QUESTION = "The service listens on port 8080", "Which port does the service use?"


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "conf.py").write_text("PORT = 8080\n")
    return folder


def edit(root: Path) -> None:
    (root / "conf.py").write_text("PORT = 9090\n")


def test_check_at_the_command_line(run, root, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text(f"[policy]\nevidence_roots = [{json.dumps(str(root))}]\n")
    common = ("--config", str(settings))
    name = run("remember", PORT, "--evidence", "file:conf.py#PORT", "--as", "operator", "--json", *common).json["id"]
    fresh = run("check", *common)
    assert (fresh.code, fresh.out) == (0, "")
    assert "1 source checked, 1 as cited; 0 memories are stale" in fresh.err
    edit(root)
    found = run("check", *common)
    assert found.code == 1
    assert [part in found.out for part in ("changed", PORT, "- PORT = 8080", "+ PORT = 9090")] == [True] * 4
    again = run("check", "--json", *common)
    assert (again.code, again.json["stale"], again.json["items"][0]["after"]) == (1, [name], "PORT = 9090")
    told = {purpose: run("context", QUESTION, "--purpose", purpose, *common).out for purpose in ("answer", "act")}
    assert "(its source changed on 20" in told["answer"]
    assert PORT not in told["act"]
    assert "its source changed on 20" in " ".join(run("recall", QUESTION, *common).out.split())
    assert "Nothing found" in run("recall", QUESTION, "--purpose", "act", *common).out
    assert run("check", "--as", "agent", *common).code != 0


def test_pages_are_handed_in_at_the_command_line(run):
    address = "https://example.org/terms"
    run("remember", "Refunds take 14 days", "--evidence", f"url:{address}", "--as", "operator")
    assert run("check", "--contents", json.dumps({address: "14 days"})).code == 0
    found = run("check", "--contents", json.dumps({address: "30 days"}))
    assert (found.code, "+ 30 days" in found.out) == (1, True)
    assert "--contents is not JSON" in run("check", "--contents", "{").err


def test_a_folder_is_accepted_in_settings_and_nowhere_else(run, root):
    run("remember", PORT, "--evidence", f"file:{root}/conf.py#PORT", "--as", "operator")
    (state,) = run("check", "--json").json["items"]
    assert (state["state"], "evidence_roots" in state["why"]) == ("unread", True)


def test_check_over_http(tmp_path, root):
    (tmp_path / "served").mkdir()
    world = HttpTestServer(tmp_path / "served", policy=Policy(evidence_roots=(str(root),)))
    body = {"text": PORT, "evidence": ["file:conf.py#PORT"]}
    name = world.owner.post("/memory/items", json=body).json()["id"]
    assert world.owner.post("/memory/check", json={}).json()["items"] == []
    edit(root)
    found = world.owner.post("/memory/check", json={}).json()
    assert (found["marked"], found["items"][0]["before"]) == ([name], "PORT = 8080")
    told = {
        purpose: world.owner.post("/memory/compile", json={"objective": QUESTION, "purpose": purpose}).json()
        for purpose in ("answer", "act")
    }
    assert f"{PORT} (its source changed on " in told["answer"]["text"]
    assert PORT not in told["act"]["text"]
    assert [each["reason"]["code"] for each in told["act"]["excluded"]] == ["stale"]
    assert world.bearer().post("/memory/check", json={}).status_code == 403
    assert world.owner.post("/memory/check", json={"contents": {"https://a.example": 7}}).status_code == 422
    world.memory.close()


def test_a_model_is_told_and_acts_on_nothing_stale(tmp_path, root):
    given = {"embedder": None, "policy": Policy(evidence_roots=(str(root),)), "config_dir": tmp_path / "c"}
    with Memory.open(tmp_path / "m.db", actor=Actor.operator(), **given) as owner:
        agent = owner.as_actor(Actor.agent("bot"))
        call(served(agent), "remember", {"text": PORT, "evidence": ["file:conf.py#PORT"]})
        edit(root)
        owner.check()
        server = served(agent)
        assert "its source changed on 20" in result_text(call(server, "recall", {"query": QUESTION}))
        assert PORT not in result_text(call(server, "recall", {"query": QUESTION, "purpose": "act"}))
        assert "(its source changed on 20" in result_text(call(server, "get_context", {"objective": QUESTION}))
        acts = call(server, "get_context", {"objective": QUESTION, "purpose": "act"})
        assert PORT not in result_text(acts)


def test_another_process_sees_the_mark(tmp_path, root):
    import subprocess

    given = {"embedder": None, "policy": Policy(evidence_roots=(str(root),)), "config_dir": tmp_path / "c"}
    with Memory.open(tmp_path / "m.db", actor=Actor.operator(), **given) as owner:
        owner.remember(PORT, evidence=["file:conf.py#PORT"])
        assert len(owner.recall(QUESTION, purpose="act")) == 1
        edit(root)
        code = (
            "import sys; from keepward import *; "
            "m = Memory.open(sys.argv[1], actor=Actor.operator(), embedder=None, config_dir=sys.argv[2], "
            "policy=Policy(evidence_roots=(sys.argv[3],))); print(len(m.check().marked)); m.close()"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "m.db"), str(tmp_path / "c"), str(root)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"
        assert len(owner.recall(QUESTION, purpose="act")) == 0
        assert "its source changed on" in owner.context(QUESTION).text
