"""With memory switched off by policy, every surface says that nothing was stored, and names no receipt."""

from __future__ import annotations

import json

import pytest
from http_fixtures import HttpTestServer
from mcp_made import opened, served, talk

from keepward import Policy


@pytest.fixture
def off(run, saved, monkeypatch):
    """The command line on a store with one memory, with memory switched off since."""
    monkeypatch.setenv("KEEPWARD_ENABLED", "false")
    return run


def test_remember_at_the_terminal_names_no_receipt(off):
    told = off("remember", "The crane is red")
    assert (told.code, "nothing was stored, not even a receipt" in told.err) == (5, True)
    assert ("but the receipt" in told.err, "\nreceipt" in told.out) == (False, False)


def test_json_at_the_terminal_has_no_receipt(off):
    written, compiled = off("remember", "The crane is red", "--json").json, off("context", "tabs", "--json").json
    assert (written["receipt"], compiled["receipt"], compiled["kept"]) == (None, None, False)
    assert "the receipt was not stored: memory is switched off by policy" in compiled["notes"]


def test_the_library_has_no_receipt(tmp_path):
    memory = opened(tmp_path, Policy(enabled=False))
    written, compiled = memory.remember("The crane is red"), memory.context("crane")
    recalled = memory.recall("crane", receipt=True)
    memory.close()
    assert (written.receipt, compiled.receipt, recalled.receipt) == (None, None, None)
    assert (written.to_dict()["receipt"], compiled.to_dict()["receipt"]) == (None, None)
    assert "not even a receipt" in str(written.reasons)


def test_add_and_import_say_that_no_receipt_was_stored(off, tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\n- The crane is red\n")
    (tmp_path / "talk.json").write_text(json.dumps([{"role": "user", "content": "The crane is red"}]))
    added, brought = off("add", str(tmp_path / "talk.json")), off("import", str(tmp_path / "notes.md"))
    assert [" ".join(each.out.split()).count("not even a receipt") for each in (added, brought)] == [1, 1]


def test_hooks_claim_nothing_was_stored(off):
    event = json.dumps({"session_id": "s", "prompt": "The crane is red", "cwd": "/"}).encode()
    told = off("hook", "prompt", stdin=event)
    assert (told.code, "receipt" in told.out, len(off("list", "--json").json["items"])) == (0, False, 1)


def test_http_says_that_no_receipt_was_stored(tmp_path):
    world = HttpTestServer(tmp_path, policy=Policy(enabled=False))
    answer = world.owner.post("/memory/items", json={"text": "The crane is red"})
    compiled = world.owner.post("/memory/compile", json={"objective": "crane"}).json()
    world.memory.close()
    assert (answer.status_code, "not even a receipt" in answer.text) == (422, True)
    assert [each["receipt"] for each in (answer.json(), compiled)] == [None, None]


def test_mcp_answers_hold_no_receipt(tmp_path):
    memory = opened(tmp_path, Policy(enabled=False))

    async def both(client):
        written = await client.call_tool("remember", {"text": "The crane is red"})
        return written, await client.call_tool("get_context", {"objective": "crane"})

    answers = [each.structured_content for each in talk(served(memory), both)]
    memory.close()
    assert ["receipt" in each for each in answers] == [False, False]
    assert "the receipt was not stored: memory is switched off by policy" in answers[1]["notes"]


def test_capture_off_alone_preserves_the_receipt(tmp_path):
    memory = opened(tmp_path, Policy(capture=False))
    outcome = memory.remember("The crane is red")
    told = [each.detail for each in outcome.reasons], memory.receipt(outcome.receipt.id)["kind"]
    memory.close()
    assert told == (["capture is switched off by policy"], "refusal")
