"""How governance fails elsewhere, each proven through the compiled prompt or the bytes on disk."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item, refused

from keepward import (
    Access,
    Actor,
    Conflict,
    EthicsRule,
    KeepwardError,
    Memory,
    NotFound,
    Outcome,
    Policy,
    StaleVersion,
    Tier,
)
from keepward.interchange.exports import write_vault
from keepward.interchange.imports import load

MISSION: dict[str, Any] = {"tier": "core", "key": "mission"}


def prompt(mem: Memory, objective: str = "where do we sail") -> str:
    """Return everything a model would be given."""
    return "\n".join((mem.context(objective).text, mem.snapshot().text, mem.memory_block(objective).text))


@pytest.mark.promise("Z1")
@pytest.mark.parametrize("objective", ["", "Bergen", "where do we sail"])
def test_a_quarantined_core_edit_is_in_no_prompt(mem: Memory, owner: Memory, objective: str) -> None:
    committed_record(owner.remember("Sail to Oslo", **MISSION))
    item = quarantined_item(mem.remember("Sail to Bergen", **MISSION))
    text = prompt(owner, objective or "Oslo")
    assert ("Oslo" in text, "Bergen" in text) == (True, False)
    assert [each.memory.text for each in owner.recall("Bergen")] == ["Sail to Oslo"] or not owner.recall("Bergen")
    assert (item.id, "quarantine") in [(each.id, each.reason.code) for each in owner.context("Bergen").excluded]


@pytest.mark.promise("Z4")
def test_a_restore_obeys_access(mem: Memory, owner: Memory) -> None:
    locked = committed_record(owner.remember("The crane is red", tier="archival", access="read_only"))
    committed_record(owner.forget(locked.id, reason="sold"))
    assert "read_only" in refused(mem.restore(locked.id, reason="x"))
    assert prompt(mem, "crane").count("red") == 0


def made_up_key() -> str:
    """A text in the form of a cloud access key, made from a seed: it opens nothing."""
    return "AK" + "IA" + "".join(random.Random(7).choices(string.ascii_uppercase + "234567", k=16))


SECRET = made_up_key()
FIELDS: dict[str, Callable[[Memory], Any]] = {
    "text": lambda mem: mem.remember(f"the key is {SECRET}"),
    "reason": lambda mem: mem.remember("The crane is red", reason=f"because {SECRET}"),
    "tags": lambda mem: mem.remember("The crane is red", tags=[SECRET]),
    "metadata": lambda mem: mem.remember("The crane is red", metadata={"a": {"b": [SECRET]}}),
    "metadata key": lambda mem: mem.remember("The crane is red", metadata={SECRET: 1}),
    "evidence": lambda mem: mem.remember("The crane is red", evidence=[f"chat:{SECRET}"]),
    "key": lambda mem: mem.remember("The crane is red", key=SECRET, tier="archival"),
    "subject": lambda mem: mem.remember("The crane is red", subject=SECRET),
    "category": lambda mem: mem.remember("The crane is red", category=SECRET),
    "session": lambda mem: mem.remember("The crane is red", session=SECRET),
    "speaker": lambda mem: mem.remember("The crane is red", kind="event", speaker=SECRET),
    "job": lambda mem: mem.remember("The crane is red", job=SECRET),
    "alias": lambda mem: mem.remember("The crane is red", aliases=[SECRET]),
    "blob": lambda mem: mem.remember("A picture", content_type="image", blob=f"2026/{SECRET}.png"),
    "a held text": lambda mem: mem.remember(f"Use {SECRET} daily", **MISSION),
    "a held reason": lambda mem: mem.remember("Sail to Oslo", reason=f"for {SECRET}", **MISSION),
    "split by a blank line": lambda mem: mem.remember("the key is\n" + SECRET),
    "a query": lambda mem: mem.recall(SECRET) and None,
    "an objective": lambda mem: mem.context(f"use {SECRET}") and None,
}


@pytest.mark.promise("Z6", "T23")
@pytest.mark.parametrize("field", sorted(FIELDS))
def test_secret_in_any_field_is_in_no_file(
    mem: Memory, owner: Memory, tmp_path: Path, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    shown = ""
    try:
        shown = repr(FIELDS[field](mem))
    except KeepwardError as fault:
        shown = str(fault)
    waiting = repr(owner.pending(state="all")) + repr(owner.log())
    owner.close()
    found = [
        file.name
        for file in tmp_path.rglob("*")
        if file.is_file() and any(SECRET.encode(form) in file.read_bytes() for form in ("utf-8", "utf-16-le"))
    ]
    assert found == []
    assert SECRET not in shown + waiting + caplog.text


@pytest.mark.promise("Z6", "T23")
def test_secret_in_an_edit_or_rejection_is_in_no_file(mem: Memory, owner: Memory, tmp_path: Path) -> None:
    made = committed_record(mem.remember("The crane is red", tier="archival"))
    mem.revise(made.id, f"now {SECRET}", reason="x")
    mem.append(made.id, f"and {SECRET}", reason=f"told {SECRET}")
    mem.promote(made.id, f"always {SECRET}", reason="x")
    mem.forget(made.id, reason=f"leaked {SECRET}")
    item = quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    with pytest.raises(KeepwardError):
        owner.reject(item.id, reason=f"it says {SECRET}")
    owner.close()
    assert [file.name for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []


@pytest.mark.promise("T23")
def test_the_gates_read_a_text_before_any_embedder_does(opened: Callable[..., Memory]) -> None:
    import numpy as np

    class Listening:
        id, dim = "listening:8", 8
        heard: list[str] = []

        def embed(self, texts: Any) -> Any:
            self.heard += texts
            return np.ones((len(texts), 8), np.float32) / np.sqrt(8)

    model = Listening()
    with opened("heard", embedder=model) as mem:
        mem.remember(f"the key is {SECRET}")
        mem.remember(f"the key is {SECRET}", **MISSION)
        mem.remember("The crane is red", tags=[SECRET])
        committed_record(mem.remember("The ferry is blue"))
    assert any("ferry" in text for text in model.heard)
    assert SECRET not in repr(model.heard)


@pytest.mark.promise("Z7", "C94")
def test_what_is_stored_is_the_redacted_text(mem: Memory, owner: Memory) -> None:
    made = committed_record(mem.remember("Write to ines.silva@mail.example.org about the crane", tier="archival"))
    assert ("ines.silva" in made.text, "crane" in made.text) == (False, True)
    stored = [event.payload for _, events in owner.journal() for event in events]
    assert all(b"ines.silva" not in payload for payload in stored if payload)
    assert "ines.silva" not in prompt(mem, "whom to write to about the crane")


#: An agent changes what is sensitive only where it may read it.
READER = Actor.agent(also=["sensitive"])
SENSITIVE: dict[str, Callable[[Memory, str], str]] = {
    "update": lambda owner, name: _approved(owner, owner.as_actor(READER).revise(name, "Ana owes 50", reason="x")),
    "update that says it is not": lambda owner, name: _approved(
        owner, owner.as_actor(READER).revise(name, "Ana owes 50", sensitivity="normal", reason="x")
    ),
    "append": lambda owner, name: _approved(owner, owner.as_actor(READER).append(name, "and 10 to Bo", reason="x")),
    "upsert": lambda owner, name: _approved(
        owner, owner.as_actor(READER).remember("Ana owes 60", key="debt", tier="archival")
    ),
    "merge": lambda owner, name: _merged(owner, name),
    "promotion": lambda owner, name: committed_record(owner.promote(name, "Ana owes 50", reason="x")).id,
    "derived note": lambda owner, name: (
        committed_record(owner.remember("Somebody owes something", tier="archival", derived_from=[name])).id
    ),
    "move": lambda owner, name: committed_record(owner.move(name, tier="working", reason="x")).id,
    "retirement and return": lambda owner, name: (
        committed_record(owner.forget(name, reason="x")),
        committed_record(owner.restore(name, reason="x")).id,
    )[1],
}


def _approved(owner: Memory, outcome: Outcome) -> str:
    return committed_record(owner.approve(quarantined_item(outcome).id)).id


def _merged(owner: Memory, name: str) -> str:
    other = committed_record(
        owner.remember("Ana owes the museum", tier="archival", sensitivity="sensitive", subject="Ana")
    ).id
    committed_record(owner.merge([name, other], "Ana owes a lot", reason="x"))
    return owner.list_memories(kinds=["summary"])[0].id


@pytest.mark.promise("Z8", "B39")
@pytest.mark.parametrize("way", sorted(SENSITIVE))
def test_sensitivity_survives(owner: Memory, way: str) -> None:
    made = committed_record(
        owner.remember("Ana owes 40", tier="archival", key="debt", sensitivity="sensitive", subject="Ana")
    )
    assert owner.get(SENSITIVE[way](owner, made.id)).sensitivity.value == "sensitive"
    assert "owes" not in prompt(owner, "what does Ana owe")


@pytest.mark.promise("Z8")
def test_sensitivity_survives_export_and_import(owner: Memory, opened: Callable[..., Memory], tmp_path: Path) -> None:
    committed_record(owner.remember("Ana owes 40", tier="archival", sensitivity="sensitive"))
    write_vault(owner, tmp_path / "vault.jsonl")
    for name, actor in (("owned", Actor.operator("olga")), ("other", Actor.agent(also=["sensitive"]))):
        with opened(name, actor=actor) as copy:
            load(copy, tmp_path / "vault.jsonl")
            assert [each.sensitivity.value for each in copy.list_memories()] == ["sensitive"]
            assert "owes" not in prompt(copy, "what does Ana owe")


@pytest.mark.promise("Z9")
def test_expiry_survives_a_merge(mem: Memory, clock: Any) -> None:
    first = committed_record(mem.remember("The crane is out of order", tier="archival", ttl="2h"))
    second = committed_record(mem.remember("The crane has a new rope", tier="archival", ttl="5d"))
    committed_record(mem.merge([first.id, second.id], "Crane: rope new, out of order", reason="tidy"))
    (summary,) = mem.list_memories(kinds=["summary"])
    assert summary.expires_at == first.expires_at
    clock.move(hours=2)
    assert "rope" not in prompt(mem, "how is the crane")


@pytest.mark.promise("Z12")
def test_best_hits_are_chosen_after_tenant_and_scope_filters(owner: Memory) -> None:
    for n in range(30):
        committed_record(owner.at(scope="elysia").remember(f"ferry ferry ferry number {n} leaves", tier="archival"))
        committed_record(owner.at(tenant="acme").remember(f"ferry ferry ferry number {n} leaves", tier="archival"))
    committed_record(owner.at(scope="orion").remember("one ferry among many other things", tier="archival"))
    orion = owner.at(scope="orion").as_actor(Actor.agent("orion"))
    assert [hit.memory.text for hit in orion.recall("ferry ferry ferry number", limit=1)] == [
        "one ferry among many other things"
    ]


@pytest.mark.promise("Z45")
def test_an_ignored_proposal_shows_in_the_status(mem: Memory, owner: Memory, clock: Any) -> None:
    quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    fresh = owner.status()
    clock.move(days=8)
    old = owner.status()
    assert (fresh["stuck_drafts"], old["stuck_drafts"], old["quarantine"]["depth"]) == (0, 1, 1)
    assert old["quarantine"]["oldest_age_seconds"] == 8 * 86_400


@pytest.mark.promise("Z45")
def test_expired_proposals_are_counted_as_long_as_readable(mem: Memory, owner: Memory, clock: Any) -> None:
    quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    counts = []
    for days in (29, 2, 30):
        clock.move(days=days)
        counts.append((owner.status()["quarantine"]["depth"], owner.status()["quarantine"]["expired"]))
    owner.run_job("sweep_blobs", force=True)
    clock.move(days=31)
    owner.run_job("sweep_blobs", force=True)
    assert counts == [(1, 0), (0, 1), (0, 1)]
    assert owner.status()["quarantine"]["expired"] == 0


@pytest.mark.promise("F16", "D8")
@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"text": "  "}, "refused"),
        ({"text": "x" * 5_000}, "refused"),
        ({"text": "no changes"}, "refused"),
        ({"text": "Sail to Oslo", **MISSION}, "quarantined"),
        ({"text": "The crane is red", "tier": "archival", "confidence": 0.1}, "quarantined"),
        ({"text": "The ferry is blue", "tier": "archival"}, "duplicate"),
        ({"text": f"the key is {SECRET}"}, "refused"),
    ],
)
def test_a_write_that_stores_nothing_says_so_and_why(mem: Memory, fields: dict[str, Any], outcome: str) -> None:
    committed_record(mem.remember("The ferry is blue", tier="archival"))
    said = mem.remember(**fields)
    assert said.outcome == outcome
    assert said.reasons
    assert all(each.code and each.detail for each in said.reasons)
    assert mem.receipt(said.receipt.id)["reasons"]
    assert [each.text for each in mem.list_memories()] == ["The ferry is blue"]


@pytest.mark.promise("F17")
def test_text_cannot_contain_our_own_markers(mem: Memory, owner: Memory) -> None:
    texts = ["## mission", "[fact] The ferry is blue", "The crane is red"]
    made = [committed_record(mem.remember(text, tier="archival")) for text in texts]
    for record in made:
        mem.recall(record.text)
        mem.context(record.text)
        mem.reinforce(record.id)
    committed_record(mem.append(made[2].id, "and old", reason="x"))
    assert [mem.get(each.id).text for each in made] == [*texts[:2], "The crane is red\nand old"]
    committed_record(owner.forget(made[0].id, reason="x"))
    assert owner.get(made[0].id).text == "## mission"


@pytest.mark.promise("T18", "C64")
def test_approval_is_tiered(mem: Memory) -> None:
    assert [
        mem.remember("The tide turns at six", tier=tier).outcome for tier in ("working", "episodic", "archival")
    ] == ["committed"] * 3
    assert mem.remember("Sail to Oslo", **MISSION).outcome == "quarantined"
    assert mem.remember("I am Orion", kind="identity").outcome == "refused"


HIDDEN: dict[str, Callable[[Memory], Any]] = {
    "recall": lambda mem: [hit.memory.text for hit in mem.recall("zephyr", include_sensitive=True)],
    "list_memories": lambda mem: mem.list_memories(include_ended=True, limit=None),
    "context": lambda mem: mem.context("zephyr", include_sensitive=True).text,
    "snapshot": lambda mem: mem.snapshot().text,
    "memory block": lambda mem: mem.memory_block("zephyr").text,
    "an outcome of the same text": lambda mem: mem.remember("zephyr wind blows", tier="archival").outcome,
    "export": lambda mem: list(mem.journal()),
    "status": lambda mem: mem.status()["live"],
}


@pytest.mark.promise("T22", "A36", "A51", "C56")
@pytest.mark.parametrize("route", sorted(HIDDEN))
def test_what_waits_is_invisible(mem: Memory, owner: Memory, route: str) -> None:
    before = HIDDEN[route](owner) if route != "an outcome of the same text" else None
    quarantined_item(mem.remember("zephyr wind blows", tier="archival", confidence=0.1))
    if route == "an outcome of the same text":
        assert HIDDEN[route](mem) == "committed"
    else:
        assert HIDDEN[route](owner) == before


@pytest.mark.promise("T22")
@pytest.mark.parametrize("source", ["web", "import", "unknown", "document", "tool"])
def test_untrusted_channel_is_quarantined_before_state_rule_or_core(mem: Memory, source: str) -> None:
    for fields in (
        {"kind": "state", "key": "wind", "tier": "working"},
        {"kind": "rule", "confidence": 0.9, "evidence": ["x:1"]},
        {**MISSION, "confidence": 0.9},
    ):
        quarantined_item(mem.remember("The wind is always north", source=source, **fields))
    assert prompt(mem, "wind").strip() == ""


STRICTER: dict[str, Policy] = {
    "another list of blocks": Policy(core_keys=("workspace_state",)),
    "a read-only block": Policy(block_access={"mission": Access.READ_ONLY}),
    "a shorter limit": Policy(text_limit={**Policy().text_limit, Tier.CORE: 5}),
    "a rule of the owner's own": Policy(memory_ethics=(EthicsRule(name="no oslo", pattern="oslo", action="refuse"),)),
    "other scopes": Policy(scopes=("/agents/orion",)),
}


@pytest.mark.promise("T19")
@pytest.mark.parametrize("change", sorted(STRICTER))
def test_approval_is_checked_by_the_current_policy_and_says_so(
    mem: Memory, owner: Memory, entering: Callable[..., Memory], change: str
) -> None:
    item = quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    today = entering(Actor.operator("bob"), policy=STRICTER[change])
    with pytest.raises(StaleVersion, match="refuses it now"):
        today.approve(item.id)
    assert [(each.state, "refuses" in (each.decision or "")) for each in owner.pending(state="all")] == [
        ("stale", True)
    ]
    assert owner.list_memories() == []


@pytest.mark.promise("T19")
def test_fact_remembered_meanwhile_is_not_approved_twice(mem: Memory, owner: Memory) -> None:
    item = quarantined_item(mem.remember("The wind is always north", tier="archival", confidence=0.1))
    committed_record(owner.remember("The wind is always north", tier="archival"))
    with pytest.raises(StaleVersion):
        owner.approve(item.id)
    assert len(owner.list_memories()) == 1


@pytest.mark.promise("T19")
def test_disabled_store_approves_nothing_and_proposals_stay_pending(
    mem: Memory, owner: Memory, entering: Callable[..., Memory]
) -> None:
    item = quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    with pytest.raises(Conflict, match="switched off"):
        entering(Actor.operator("bob"), policy=Policy(capture=False)).approve(item.id)
    committed_record(owner.approve(item.id))


def test_an_unknown_proposal_is_named_as_such(owner: Memory) -> None:
    with pytest.raises(NotFound):
        owner.approve("nobody")
