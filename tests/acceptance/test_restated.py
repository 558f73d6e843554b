"""A restatement with better evidence strengthens what is remembered, by the ordinary gates."""

from __future__ import annotations

from typing import Any

import pytest
from outcomes import codes, held, kept

from keepward import Actor, Committed, Duplicate, Memory

FACT = "The ferry leaves at six"


@pytest.fixture
def user(owner: Memory) -> Memory:
    return owner.as_actor(Actor.user("ana"))


@pytest.mark.parametrize("text", [FACT, "the ferry leaves at six."])
def test_user_evidence_reinforces_the_same_fact_of_an_agent(mem: Memory, user: Memory, clock: Any, text: str) -> None:
    first = kept(mem.remember(FACT, confidence=0.5))
    clock.move(days=3)
    outcome = user.remember(text, source="user_message", evidence=["chat:42"], confidence=0.9)
    assert isinstance(outcome, Committed)
    after = outcome.records[0]
    assert (after.id, after.version, after.text) == (first.id, 2, FACT)
    assert (after.trust.label, after.source, after.evidence) == ("user", "user_message", ("chat:42",))
    assert (after.confidence, user.get(first.id).confidence, len(user.list_memories())) == (0.9, 0.9, 1)
    told = next(each.detail for each in outcome.reasons if each.code == "strengthened")
    assert "trust agent -> user, confidence 0.5 -> 0.9, 1 more reference as evidence" in told


def test_strengthening_is_one_commit_that_a_rollback_undoes(mem: Memory, owner: Memory) -> None:
    first = kept(mem.remember(FACT))
    outcome = owner.remember(FACT, evidence=["chat:42"])
    assert isinstance(outcome, Committed)
    assert owner.rollback(outcome.commit.id).applied
    back = owner.get(first.id)
    assert (back.trust, back.evidence, back.confidence) == (first.trust, (), first.confidence)


def test_a_restatement_that_adds_nothing_is_a_duplicate(mem: Memory, owner: Memory) -> None:
    kept(owner.remember(FACT, evidence=["chat:42"]))
    assert isinstance(owner.remember(FACT, evidence=["chat:42"]), Duplicate)
    assert isinstance(owner.remember(FACT), Duplicate)
    assert isinstance(owner.remember(FACT, confidence=0.4), Duplicate)


@pytest.mark.parametrize("source", ["web", "tool", "inference"])
def test_what_is_trusted_less_strengthens_nothing(mem: Memory, owner: Memory, source: str) -> None:
    first = kept(owner.remember(FACT, confidence=0.6))
    outcome = mem.remember(FACT, source=source, evidence=["page:1"], confidence=1.0)
    assert (isinstance(outcome, Duplicate), owner.get(first.id) == first) == (True, True)


def test_fact_restated_as_a_rule_passes_rule_gates(mem: Memory) -> None:
    text = "Never promise a refund before the ferry has left"
    first = kept(mem.remember(text, confidence=0.9))
    assert "rule_without_evidence" in codes(mem.remember(text, kind="rule", confidence=0.9))
    assert mem.get(first.id).kind.value == "fact"
    after = kept(mem.remember(text, kind="rule", evidence=["chat:42"], confidence=0.95))
    assert (after.id, after.kind.value, after.evidence) == (first.id, "rule", ("chat:42",))


def test_strengthening_what_takes_approval_waits_for_a_person(user: Memory, owner: Memory) -> None:
    first = kept(owner.approve(held(user.remember(FACT, access="approval")).id))
    item = held(user.remember(FACT, evidence=["chat:42"], confidence=0.9))
    assert owner.get(first.id).evidence == ()
    assert kept(owner.approve(item.id)).evidence == ("chat:42",)


def test_a_batch_strengthens_too(mem: Memory, owner: Memory) -> None:
    first = kept(mem.remember(FACT))
    outcomes = owner.remember_many([{"text": FACT, "evidence": ["chat:42"]}, "Gulls are loud"])
    assert [each.outcome for each in outcomes] == ["committed", "committed"]
    assert owner.get(first.id).evidence == ("chat:42",)


def test_program_gives_no_trust_to_text_it_may_have_read(mem: Memory) -> None:
    first = kept(mem.remember(FACT, source="web"))
    outcome = mem.remember(FACT, source="user_message", evidence=["chat:42"], confidence=1.0)
    assert (isinstance(outcome, Duplicate), mem.get(first.id).trust.label, mem.get(first.id).evidence) == (
        True,
        "web",
        (),
    )


def test_program_adds_evidence_but_no_confidence_without_any(mem: Memory) -> None:
    first = kept(mem.remember(FACT))
    assert isinstance(mem.remember(FACT, confidence=1.0), Duplicate)
    after = kept(mem.remember(FACT, source="user_message", evidence=["chat:42"]))
    assert (after.id, after.source, after.evidence, after.confidence) == (first.id, "user_message", ("chat:42",), 0.9)
