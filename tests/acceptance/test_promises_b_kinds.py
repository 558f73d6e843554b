"""What a memory is: kinds, stability, fields and their defaults (promises B1-B22, B55-B66)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from outcomes import codes, held, kept, refused

from keepward import Insert, InvalidInput, Memory


@pytest.mark.promise("B1")
def test_fact_from_one_session_is_in_a_later_prompt(opened: Callable[..., Memory]) -> None:
    with opened("first") as before:
        kept(before.remember("Ana indents with tabs", tier="archival", session="monday"))
    with opened("first") as later:
        assert "Ana indents with tabs" in later.context("how should I indent Ana's file").text


@pytest.mark.promise("B2", "B68")
def test_each_kind_is_found_by_its_name_alone(mem: Memory) -> None:
    texts = {"event": "asked for the invoice", "summary": "invoice was sent", "fact": "invoices are due in May"}
    for kind, text in texts.items():
        kept(mem.remember(text, kind=kind, tier="archival" if kind == "fact" else "episodic"))
    kept(mem.remember("Send invoices on Monday", kind="rule", confidence=0.9, evidence=["chat:1"]))
    texts["rule"] = "Send invoices on Monday"
    assert {kind: [each.text for each in mem.list_memories(kinds=[kind])] for kind in texts} == {
        kind: [text] for kind, text in texts.items()
    }


@pytest.mark.promise("B2", "B56")
@pytest.mark.parametrize("kind", ["log", "soul", "note", "FACT", " "])
def test_unknown_kind_is_refused_and_the_known_ones_are_named(mem: Memory, kind: str) -> None:
    with pytest.raises(InvalidInput, match="identity, rule, fact, state, event, summary, document"):
        mem.remember("The harbour opens at six", kind=kind)
    outcome = mem.propose([Insert(id="n", text="The harbour opens at six", kind=kind)], reason="seen")
    assert refused(outcome) == {"unknown_name"}
    assert mem.list_memories() == []


@pytest.mark.promise("B56")
def test_write_without_a_kind_gets_the_default_of_its_tier(owner: Memory) -> None:
    tiers = {"archival": "fact", "working": "state", "episodic": "event"}
    got = {tier: kept(owner.remember(f"the crane is {tier}", tier=tier)).kind.value for tier in tiers}
    assert got == tiers


@pytest.mark.promise("B5")
def test_raw_request_is_stored_and_listed_as_an_event(mem: Memory) -> None:
    kept(mem.remember("Please book the ferry", kind="event", source="user_message", session="s1", speaker="Ana"))
    (event,) = mem.list_memories(kinds=["event"])
    assert (event.text, event.tier.value, event.speaker) == ("Please book the ferry", "episodic", "Ana")


@pytest.mark.promise("B6")
def test_a_summary_preserves_goal_actions_and_next_steps(mem: Memory) -> None:
    parts = {"goal": "ship 2.0", "actions": ["tagged", "built"], "next": ["announce"]}
    kept(mem.remember("Release 2.0 is built", kind="summary", job="job-7", metadata=parts))
    (found,) = mem.list_memories(kinds=["summary"], job="job-7")
    assert found.metadata == parts


@pytest.mark.promise("B7", "B22")
def test_a_rule_is_stored_with_its_confidence_and_evidence(mem: Memory) -> None:
    kept(mem.remember("Never deploy on a Friday", kind="rule", confidence=0.8, evidence=["chat:9", "chat:3"]))
    (rule,) = mem.list_memories(kinds=["rule"])
    assert (rule.confidence, rule.evidence) == (0.8, ("chat:3", "chat:9"))


@pytest.mark.promise("B22")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"confidence": 0.79, "evidence": ["chat:1"]}, "rule_below_floor"),
        ({"confidence": 0.95, "evidence": []}, "rule_without_evidence"),
    ],
)
def test_unsure_or_unfounded_rule_is_quarantined_and_in_no_prompt(
    mem: Memory, fields: dict[str, Any], code: str
) -> None:
    outcome = mem.remember("Never deploy on a Friday", kind="rule", **fields)
    held(outcome)
    assert code in codes(outcome)
    assert "Friday" not in mem.context("may I deploy on Friday").text
    assert mem.list_memories() == []


@pytest.mark.promise("B22")
def test_edit_cannot_lower_a_rule_below_its_minimum(mem: Memory) -> None:
    rule = kept(mem.remember("Never deploy on a Friday", kind="rule", confidence=0.9, evidence=["chat:1"]))
    held(mem.revise(rule.id, confidence=0.5, reason="less sure"))
    held(mem.revise(rule.id, evidence=(), reason="lost it"))
    assert mem.get(rule.id) == rule


@pytest.mark.promise("B8", "B15", "B19", "B43")
def test_identity_opens_every_prompt_and_is_never_a_memory(
    opened: Callable[..., Memory], clock: Any, tmp_path: Any
) -> None:
    (tmp_path / "identity.md").write_text("I am Orion. I keep my word.")
    with opened("own", identity=tmp_path / "identity.md") as memory:
        clock.move(days=3650)
        assert memory.context("who are you").text.startswith("## persona\n\nI am Orion. I keep my word.")
        for stability in ("volatile", "stable", "permanent"):
            refused(memory.remember("I am Nova", kind="identity", stability=stability))
        assert memory.list_memories() == []


@pytest.mark.promise("B10", "B62")
def test_lasting_knowledge_is_stable_when_nothing_is_said(mem: Memory) -> None:
    fact = kept(mem.remember("The harbour opens at six", tier="archival"))
    assert (fact.stability.value, fact.expires_at) == ("stable", None)


@pytest.mark.promise("B11")
def test_a_time_to_live_on_something_permanent_is_refused(owner: Memory) -> None:
    assert "ttl_on_permanent" in refused(
        owner.remember("The harbour is ours", tier="archival", stability="permanent", ttl="1d")
    )
    lasting = kept(owner.remember("The harbour is ours", tier="archival", stability="permanent"))
    assert "ttl_on_permanent" in refused(owner.revise(lasting.id, ttl="1d", reason="tidy"))
    assert owner.get(lasting.id).expires_at is None


@pytest.mark.promise("B12", "B16")
def test_an_event_is_volatile_for_thirty_days_by_default(mem: Memory) -> None:
    event = kept(mem.remember("Please book the ferry", kind="event"))
    assert event.stability.value == "volatile"
    assert event.expires_at == event.created_at + timedelta(days=30)


@pytest.mark.promise("B13", "B17")
def test_summary_lasts_a_week_or_stably_never_permanently(mem: Memory) -> None:
    week = kept(mem.remember("The ferry was booked", kind="summary"))
    assert week.expires_at == week.created_at + timedelta(days=7)
    stable = kept(mem.remember("The crane was sold", kind="summary", stability="stable"))
    assert stable.expires_at is None
    assert "stability_of_kind" in refused(mem.remember("All is well", kind="summary", stability="permanent"))


@pytest.mark.promise("B14", "B18")
def test_a_rule_is_stable_without_an_end_and_never_volatile(mem: Memory) -> None:
    given: dict[str, Any] = {"kind": "rule", "confidence": 0.9, "evidence": ["chat:1"]}
    rule = kept(mem.remember("Never deploy on a Friday", **given))
    assert (rule.stability.value, rule.expires_at) == ("stable", None)
    assert "stability_of_kind" in refused(mem.remember("Greet in Danish", stability="volatile", **given))
    assert "permanence_needs_approval" in codes(mem.remember("Greet in Danish", stability="permanent", **given))


@pytest.mark.promise("B55", "B60", "B64", "B65")
def test_write_returns_the_memory_as_later_read(mem: Memory) -> None:
    record = kept(mem.remember("The harbour opens at six", tier="archival", category="hours"))
    assert mem.get(record.id) == record
    assert (record.text, record.category, record.version) == ("The harbour opens at six", "hours", 1)
    assert (record.tags, record.evidence, record.sensitivity.value) == ((), (), "normal")


@pytest.mark.promise("B58")
def test_write_at_the_top_scope_is_shared(mem: Memory) -> None:
    assert kept(mem.remember("The harbour opens at six")).scope == "/"
    assert kept(mem.remember("The crane is green", scope="user")).scope == "/"


@pytest.mark.promise("B59", "B67")
def test_memories_about_a_person_are_filtered_by_that_person(mem: Memory) -> None:
    for text, subject in (("prefers tea", "ana"), ("prefers coffee", "bo"), ("the kettle is old", None)):
        assert kept(mem.remember(text, tier="archival", subject=subject)).subject == subject
    assert [each.text for each in mem.list_memories(subject="ana")] == ["prefers tea"]
    assert [hit.memory.text for hit in mem.recall("prefers", subject="bo")] == ["prefers coffee"]


@pytest.mark.promise("B61")
@pytest.mark.parametrize(
    ("source", "confidence"),
    [("user_message", 0.9), ("tool", 0.8), ("document", 0.7), ("inference", 0.5), (None, 0.5)],
)
def test_confidence_left_out_follows_from_where_it_came(mem: Memory, source: str | None, confidence: float) -> None:
    assert kept(mem.remember("The harbour opens at six", tier="archival", source=source)).confidence == confidence


@pytest.mark.promise("B61")
def test_what_the_owner_says_is_certain(owner: Memory) -> None:
    assert kept(owner.remember("The harbour opens at six")).confidence == 1.0


@pytest.mark.promise("B66")
def test_everything_of_one_job_is_found_by_its_id(mem: Memory) -> None:
    ours = [kept(mem.remember(f"step {n} of the move went well", job="job-7", tier="archival")).id for n in (1, 2)]
    kept(mem.remember("the other job failed", job="job-8", tier="archival"))
    assert sorted(each.id for each in mem.list_memories(job="job-7")) == sorted(ours)


@pytest.mark.promise("B70", "A24")
def test_any_tag_matches_regardless_of_later_memories(mem: Memory) -> None:
    for text, tags in (("first", ["red"]), ("second", ["blue"])):
        kept(mem.remember(f"the {text} buoy", tier="archival", tags=tags))
    mem.remember_many([{"text": f"crate number {n} is full", "tier": "archival"} for n in range(60)])
    assert {each.text for each in mem.list_memories(tags=["red", "blue"], limit=2)} == {
        "the first buoy",
        "the second buoy",
    }


@pytest.mark.promise("B71")
def test_list_returns_fifty_by_default_and_limits_below_one_fail(mem: Memory) -> None:
    mem.remember_many([{"text": f"crate number {n} is full", "tier": "archival"} for n in range(51)])
    assert len(mem.list_memories()) == 50
    assert len(mem.list_memories(limit=None)) == 51
    with pytest.raises(InvalidInput, match="at least 1"):
        mem.list_memories(limit=0)


@pytest.mark.promise("B83")
def test_every_argument_of_a_note_goes_through_the_public_call(mem: Memory) -> None:
    record = kept(
        mem.remember(
            "Ana sails at dawn",
            kind="fact",
            tier="archival",
            scope="orion",
            subject="ana",
            tags=["sea", "sea", "dawn"],
            confidence=0.6,
            stability="volatile",
            ttl=timedelta(days=3),
            sensitivity="sensitive",
            evidence=["chat:1"],
            job="job-7",
        )
    )
    assert (record.scope, record.subject, record.tags) == ("/agents/orion", "ana", ("dawn", "sea"))
    assert (record.confidence, record.stability.value, record.sensitivity.value) == (0.6, "volatile", "sensitive")
    assert (record.expires_at, record.evidence, record.job) == (
        record.created_at + timedelta(days=3),
        ("chat:1",),
        "job-7",
    )
