"""What quotes a forgotten memory goes with it, and is shown before: at the terminal, over HTTP, by a client and by MCP."""

from __future__ import annotations

import json

import pytest
from mcp_made import call, opened, result_text, served
from starlette.testclient import TestClient

from keepward import Client
from keepward.http import create_app

TOLD, WORD = "I am allergic to latex.", "latex"
TALK = [TOLD, "I bought a red kayak.", "My bike is green."]


@pytest.fixture
def owner(tmp_path):
    with opened(tmp_path) as memory:
        yield memory


def said(memory):
    """Say three messages; return the id of the first, and the summary of all."""
    with memory.session("s1") as talk:
        names = [talk.user(text).turns[0].record.id for text in TALK]
    (summary,) = memory.list_memories(kinds=["summary"])
    return names[0], summary


def shown(memory):
    texts = [each.text for each in memory.list_memories(limit=None)]
    return [*texts, *(hit.memory.text for hit in memory.recall("What am I allergic to?")), memory.context(TOLD).text]


@pytest.mark.promise("A35")
@pytest.mark.parametrize("way", ["words", "id", "contain", "erase"])
def test_a_client_is_shown_what_goes_and_no_reader_anything_after(owner, way):
    with TestClient(create_app(owner)) as server:
        token = owner.create_token("boss", rights="owner")
        with Client("http://127.0.0.1:8321", token.secret, transport=server) as client:
            name, summary = said(client)
            if way == "id":
                assert {each.id for each in client.forget(name).records} == {name, summary.id}
            else:
                plan = {
                    "words": lambda: client.plan_forget_matching(WORD),
                    "contain": lambda: client.plan_contain(memory=name),
                    "erase": lambda: client.plan_erase([name]),
                }[way]()
                assert [(each.id, each.text) for each in plan.shortened] == [(summary.id, TOLD)]
                done = {
                    "words": lambda: client.forget_matching(WORD, plan.digest).outcome.commit,
                    "contain": lambda: owner.contain(plan.digest, memory=name).commit,
                    "erase": lambda: owner.erase(plan.digest, [name]).commit,
                }[way]()
                assert {step.after.id for step in owner.show(done.id).steps} == {name, summary.id}
            assert not [text for text in (*shown(client), *shown(owner)) if WORD in text]
            assert TALK[1] in client.get(summary.id).text


@pytest.mark.promise("A35")
def test_the_terminal_shows_the_lines_that_go(run):
    messages = json.dumps([{"role": "user", "content": text} for text in (*TALK, "It is late.", "The lamp is on.")])
    run("add", "-", "--session", "s1", stdin=messages.encode())
    run("jobs", "run", "summarize_episodic", "--force", "--as", "operator")
    plan = run("forget", "--matching", WORD, "--json", "--as", "operator").json
    assert [each["text"] for each in plan["shortened"]] == [TOLD]
    name = plan["matches"][0]["id"]
    assert TOLD in run("forget", "--matching", WORD, "--as", "operator").out
    assert [each["text"] for each in run("contain", "--memory", name, "--json", "--as", "operator").json["shortened"]]
    assert [each["text"] for each in run("erase", name, "--json", "--as", "operator").json["plan"]["shortened"]]
    done = run("forget", "--matching", WORD, "--yes", "--as", "operator")
    assert done.code == 0
    assert not any(WORD in run(*words).out for words in (("list",), ("recall", "allergic"), ("context", TOLD)))
    run("rollback", done.err.split("rollback ")[1].split("`")[0], "--as", "operator")
    assert run("list").out.count(WORD) == 2


@pytest.mark.promise("A35")
def test_an_mcp_tool_forgets_what_quotes(owner):
    name, summary = said(owner)
    server = served(owner)
    answer = call(server, "forget", {"id": name})
    assert summary.id in result_text(answer)
    assert WORD not in result_text(call(server, "recall", {"query": "What am I allergic to?"}))
    assert WORD not in result_text(call(server, "get_context", {"objective": TOLD}))
