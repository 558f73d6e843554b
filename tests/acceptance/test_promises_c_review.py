"""The review queue: what waits, who decides, and what a decision does (promises C62-C68)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Actor, Conflict, Memory, Unauthorised
from keepward.cli.main import main

MISSION: dict[str, Any] = {"key": "mission", "tier": "core"}


@pytest.mark.promise("C62")
def test_what_is_approved_is_in_the_next_prompt_byte_for_byte(mem: Memory, owner: Memory) -> None:
    waiting = held(mem.remember("Sail to Oslo, ünder flag", **MISSION))
    record = kept(owner.approve(waiting.id, digest=waiting.digest))
    assert mem.context("").text == "## mission\n\nSail to Oslo, ünder flag"
    assert mem.get(record.id) == record == waiting.steps[0].after
    assert mem.pending() == []


@pytest.mark.promise("C63")
def test_what_is_rejected_is_in_no_prompt_leaves_a_receipt_and_the_earlier_text_holds(
    mem: Memory, owner: Memory
) -> None:
    first = kept(owner.remember("Sail to Oslo", **MISSION))
    waiting = held(mem.remember("Sail to Bergen", **MISSION))
    receipt = owner.reject(waiting.id, reason="Oslo it is")
    assert owner.receipt(receipt.id)["kind"] == "rejection"
    assert owner.receipt(receipt.id)["proposal"] == waiting.id
    assert mem.context("where to sail, Bergen").text == "## mission\n\nSail to Oslo"
    assert {hit.memory.text for hit in mem.recall("Bergen")} <= {"Sail to Oslo"}
    assert mem.get(first.id) == first
    assert len(mem.history(first.id)) == 1
    with pytest.raises(Conflict, match="rejected already"):
        owner.approve(waiting.id)


@pytest.mark.promise("C64")
def test_a_safe_write_holds_at_once_without_anybodys_decision(mem: Memory) -> None:
    record = kept(mem.remember("The tide turns at six", tier="archival"))
    assert mem.pending() == []
    assert mem.recall("tide")[0].memory == record


@pytest.mark.promise("C65")
def test_the_queue_shows_what_why_from_whom_and_on_which_grounds(mem: Memory, owner: Memory) -> None:
    held(
        owner.acting_as(Actor.agent("orion")).remember(
            "Sail to Oslo", source="inference", evidence=["chat:42"], reason="the captain said so", **MISSION
        )
    )
    (waiting,) = mem.pending()
    record = waiting.steps[0].after
    assert (waiting.reason, waiting.proposer.label) == ("the captain said so", "agent:orion")
    assert (record.text, record.key, record.source, record.evidence) == (
        "Sail to Oslo",
        "mission",
        "inference",
        ("chat:42",),
    )
    assert [(each.gate, each.code) for each in waiting.reasons] == [("authority", "needs_approval")]


@pytest.mark.promise("C66", "C67")
@pytest.mark.parametrize("actor", [Actor.agent(), Actor.agent("other"), Actor.user(), Actor.importer()])
def test_nobody_without_the_right_to_decide_approves_or_rejects(mem: Memory, owner: Memory, actor: Actor) -> None:
    waiting = held(mem.remember("Sail to Oslo", **MISSION))
    other = owner.acting_as(actor)
    with pytest.raises(Unauthorised):
        other.approve(waiting.id)
    with pytest.raises(Unauthorised):
        other.reject(waiting.id, reason="no")
    assert [each.id for each in mem.pending()] == [waiting.id]
    assert mem.context("").text == ""


@pytest.mark.promise("C66", "C67")
@pytest.mark.parametrize("actor", [Actor.operator("olga"), Actor.reviewer("rita")])
def test_an_agents_handle_cannot_turn_itself_into_one_that_decides(mem: Memory, actor: Actor) -> None:
    held(mem.remember("Sail to Oslo", **MISSION))
    with pytest.raises(Unauthorised):
        mem.acting_as(actor)


@pytest.mark.promise("C66", "C67")
def test_a_reviewer_approves_one_and_rejects_another_and_the_journal_names_them(mem: Memory, owner: Memory) -> None:
    good = held(mem.remember("Sail to Oslo", **MISSION))
    bad = held(mem.remember("Crash into Oslo", key="workspace_state", tier="core"))
    reviewer = owner.acting_as(Actor.reviewer("rita"))
    approval = reviewer.approve(good.id)
    kept(approval)
    reviewer.reject(bad.id, reason="dangerous")
    details = mem.show(approval.commit.id).details  # type: ignore[union-attr]
    assert (details.actor, details.approved_by, details.proposal) == ("operator:rita", "operator:rita", good.id)
    assert [each.state for each in mem.pending(state=None)] == ["approved", "rejected"]
    assert mem.context("").text == "## mission\n\nSail to Oslo"


@pytest.mark.promise("C68")
def test_many_are_decided_at_once_and_each_gets_its_own_answer(
    mem: Memory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    db = str(tmp_path / "queue.db")

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        code = main(["--db", db, "--embedder", "hashed", "--json", *words])
        return code, json.loads(capsys.readouterr().out)

    ids = []
    for block, text in (
        ("mission", "Sail to Oslo"),
        ("workspace_state", "At the quay"),
        ("operating_rules", "Wear vests"),
    ):
        code, answer = call(
            "remember", text, "--tier", "core", "--key", block, "--evidence", "chat:1", "--confidence", "0.9"
        )
        assert code == 6
        ids.append(answer["proposal"])
    code, answer = call("approve", ids[0], ids[1], "no-such-proposal")
    assert code == 3
    assert len(json.dumps(answer).split("committed")) - 1 == 2
    assert "not_found" in json.dumps(answer)
    code, answer = call("reject", ids[2], "--reason", "not now")
    assert code == 0
    code, answer = call("context", "anything")
    assert answer["text"] == "## mission\n\nSail to Oslo\n\n## workspace_state\n\nAt the quay"
